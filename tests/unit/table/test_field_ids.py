"""Field ids: the highest one, and those that stand twice."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from pennon.core.units import DatasetVersion, FieldId, FragmentId
from pennon.schema.arrow import schema_from_arrow
from pennon.table.field_ids import highest_field_id, with_distinct_ids, without_unused_files
from pennon.table.fragment import DataFileRef, Fragment
from pennon.table.manifest import Manifest, WriterVersion

SCHEMA = schema_from_arrow(pa.schema([("a", pa.int64()), ("b", pa.int64()), ("c", pa.int64())]))
OLD = WriterVersion("lance", "0.10.5")


def _file(name: str, *ids: int) -> DataFileRef:
    return DataFileRef(name, tuple(map(FieldId, ids)), (), 0, 2)


def _fragment(number: int, *files: DataFileRef) -> Fragment:
    return Fragment(FragmentId(number), files, 10)


def _manifest(*fragments: Fragment) -> Manifest:
    return Manifest(SCHEMA, DatasetVersion(3), fragments, (b"wire",), writer=OLD)


def test_highest_field_id_includes_dropped_columns() -> None:
    assert highest_field_id(Manifest(SCHEMA, DatasetVersion(1))) == 2
    assert highest_field_id(_manifest(_fragment(0, _file("x", 0, -2, 9), _file("y", 1)))) == 9


def test_duplicate_field_id_of_the_newest_file_is_renumbered() -> None:
    manifest = _manifest(
        _fragment(0, _file("p", 0, 1, 2), _file("unused", 9)),
        _fragment(1, _file("q", 0, 1, 2), _file("r", 2)),
    )
    repaired = with_distinct_ids(manifest)
    assert [field.id for field in repaired.schema.walk()] == [0, 1, 10]
    assert repaired.fields_wire is None
    ids = [[(f.path, f.field_ids) for f in each.files] for each in repaired.fragments]
    assert ids == [[("p", (0, 1, 10))], [("q", (0, 1, 2)), ("r", (10,))]]
    assert with_distinct_ids(repaired) == repaired


@pytest.mark.parametrize("writer", [WriterVersion("lance", "0.11.0"), WriterVersion("pennon", "1")])
def test_duplicate_field_ids_of_newer_writers_are_unchanged(writer: WriterVersion) -> None:
    manifest = replace(_manifest(_fragment(0, _file("p", 0), _file("q", 0))), writer=writer)
    assert with_distinct_ids(manifest) is manifest


def test_distinct_field_ids_are_unchanged() -> None:
    manifest = _manifest(_fragment(0, _file("p", 0, -2, -2), _file("q", 1, 2)))
    assert with_distinct_ids(manifest) is manifest


def test_unused_files_are_removed_except_the_last() -> None:
    fragment = _fragment(0, _file("p", 7), _file("q", 8))
    assert without_unused_files(fragment, frozenset([FieldId(8)])).files == fragment.files[1:]
    assert without_unused_files(fragment, frozenset([FieldId(1)])).files == fragment.files[:1]
