"""The manifest after a transaction."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from pennon.core.units import DatasetVersion, FieldId, FragmentId
from pennon.errors import ArgumentError, SchemaMismatchError, UnsupportedError
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.version import V2_0, V2_1
from pennon.table.apply import ApplyContext, apply, create, missing_field
from pennon.table.fragment import BasePath, DeletionFileRef, DeletionKind, Fragment
from pennon.table.manifest import DataFormat, Manifest, WriterVersion
from pennon.table.operations import Append, Other, Overwrite
from pennon.table.row_ids.decode_wire import decode_row_ids, decode_row_versions
from pennon.table.storage_version import storage_version
from pennon.table.transaction import Transaction
from tests.unit.table.tables import (
    SCHEMA,
    append,
    data_file,
    index_section,
    new_fragment,
    overwrite,
)

NOW = ApplyContext(now_ns=123)
DELETION = DeletionFileRef(DeletionKind.ARROW, 1, 5, 2)


def table(*fragments: Fragment, **around: object) -> Manifest:
    transaction = Transaction(0, Overwrite(fragments, SCHEMA))
    return create(transaction, ApplyContext(1, **around))  # type: ignore[arg-type]


def ids(manifest: Manifest) -> list[int]:
    return [fragment.id for fragment in manifest.fragments]


def test_create_makes_the_first_manifest() -> None:
    transaction = replace(overwrite(0, new_fragment(3), team="red"), tag="first")
    manifest = create(transaction, NOW)
    assert manifest.version == 1
    assert ids(manifest) == [0]
    assert manifest.max_fragment_id == 0
    assert manifest.timestamp_ns == 123
    assert manifest.writer is not None
    assert manifest.writer.library == "pennon"
    assert manifest.transaction_file == transaction.file_name
    assert manifest.data_format == DataFormat("lance", "2.0")
    assert (manifest.config, manifest.writer_flags, manifest.tag) == ({"team": "red"}, 8, "first")
    assert table().max_fragment_id is None
    with pytest.raises(ArgumentError, match="'append'"):
        create(append(0), NOW)


def test_append_assigns_fresh_fragment_ids_and_keeps_other_fields() -> None:
    head = replace(
        table(new_fragment(), new_fragment()),
        max_fragment_id=7,
        indices=index_section(("i", (0,))),
        table_metadata={"owner": "me"},
        branch="b",
        unknown=b"\xa2\x1f\x03abc",
        fields_wire=(b"as it was",),
    )
    manifest = apply(head, append(1, new_fragment(), new_fragment()), NOW)
    assert ids(manifest) == [0, 1, 8, 9]
    assert manifest.max_fragment_id == 9
    assert manifest.version == 2
    for name in ("indices", "table_metadata", "branch", "unknown", "fields_wire", "schema"):
        assert getattr(manifest, name) == getattr(head, name)


def test_overwrite_never_reuses_fragment_ids() -> None:
    head = replace(table(new_fragment(), new_fragment()), indices=b"\x0a\x00", config={"a": "1"})
    manifest = apply(head, overwrite(1, new_fragment(), b="2"), NOW)
    assert ids(manifest) == [2]
    assert manifest.indices == b""
    assert manifest.fields_wire is None
    assert manifest.config == {"a": "1", "b": "2"}
    empty = apply(manifest, Transaction(2, Overwrite((), SCHEMA)), NOW)
    assert (ids(empty), empty.max_fragment_id) == ([], 2)
    assert ids(apply(empty, append(3), NOW)) == [3]


def test_overwrite_with_existing_fragments_keeps_their_ids() -> None:
    head = table(new_fragment(), new_fragment(), new_fragment())
    kept = replace(head.fragments[2], deletion_file=DELETION)
    manifest = apply(head, overwrite(1, new_fragment(), kept, new_fragment()), NOW)
    assert ids(manifest) == [3, 2, 4]
    assert manifest.fragments[1] == kept
    assert (manifest.reader_flags, manifest.writer_flags) == (1, 1)
    with pytest.raises(ArgumentError, match="two fragments"):
        apply(head, overwrite(1, kept, kept), NOW)


def test_append_of_fragment_with_deletion_file_is_refused() -> None:
    with pytest.raises(ArgumentError, match="deletion file"):
        apply(table(), append(1, replace(new_fragment(), deletion_file=DELETION)), NOW)


def test_stable_row_ids_continue_after_overwrites() -> None:
    head = table(new_fragment(4), new_fragment(3), stable_row_ids=True)
    assert (head.reader_flags, head.writer_flags, head.next_row_id) == (2, 2, 7)
    more = apply(head, append(1, new_fragment(5)), NOW)
    assert row_ids(more) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    versions = more.fragments[2].created_at_versions
    assert isinstance(versions, bytes)
    assert decode_row_versions(versions, 5).tolist() == [2] * 5
    over = apply(more, overwrite(2, new_fragment(2)), NOW)
    assert row_ids(over) == [12, 13]
    assert over.next_row_id == 14
    assert over.reader_flags == 2


def row_ids(manifest: Manifest) -> list[int]:
    found = []
    for fragment in manifest.fragments:
        assert isinstance(fragment.row_ids, bytes)
        assert fragment.physical_rows is not None
        found += decode_row_ids(fragment.row_ids, fragment.physical_rows).tolist()
    return found


def test_append_ignores_row_ids_of_another_table() -> None:
    foreign = table(new_fragment(), stable_row_ids=True).fragments[0]
    assert apply(table(), append(1, foreign), NOW).fragments[0].row_ids is None
    assert table(foreign).reader_flags == 0
    mine = table(new_fragment(), stable_row_ids=True)
    assert row_ids(apply(mine, append(1, foreign), NOW)) == list(range(20))


def test_stable_row_ids_for_existing_table_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="new table only"):
        apply(table(), overwrite(1), replace(NOW, stable_row_ids=True))


def test_files_of_version_2_may_be_mixed_and_the_table_keeps_its_version() -> None:
    mixed = apply(table(new_fragment()), append(1, new_fragment(minor=1)), NOW)
    assert mixed.data_format == DataFormat("lance", "2.0")
    assert (mixed.reader_flags, mixed.writer_flags) == (256, 256)
    assert str(storage_version(mixed)) == "2.0"
    old = replace(new_fragment(), files=(replace(data_file(), major=0, minor=2),))
    with pytest.raises(ArgumentError, match=r"0\.1 cannot be added to a table of version 2\.0"):
        apply(table(new_fragment()), append(1, old), NOW)
    with pytest.raises(ArgumentError, match=r"2\.1 cannot be added to a table of version 0\.1"):
        apply(table(old), append(1, new_fragment(minor=1)), NOW)


def test_file_versions_of_an_overwrite_must_agree() -> None:
    with pytest.raises(ArgumentError, match=r"files of 2\.0"):
        apply(table(), overwrite(1), replace(NOW, file_version=V2_1))
    newer = apply(table(new_fragment()), overwrite(1, new_fragment(minor=1)), NOW)
    assert newer.data_format == DataFormat("lance", "2.1")
    assert table(file_version=V2_1).data_format == DataFormat("lance", "2.1")


def test_the_version_of_old_tables() -> None:
    blank = Manifest(SCHEMA, DatasetVersion(1))
    preview = replace(new_fragment(), files=(replace(data_file(), major=0, minor=3),))
    assert str(storage_version(blank)) == "0.1"
    assert storage_version(replace(blank, writer_flags=4)) == V2_0
    assert storage_version(replace(blank, fragments=(preview,))) == V2_0
    wrong = replace(blank, fragments=(preview,), data_format=DataFormat("lance", "0.1"))
    assert storage_version(wrong) == V2_0
    signed = replace(wrong, writer=WriterVersion("lance", "0.16.1"))
    assert apply(signed, append(1), NOW).data_format == DataFormat("lance", "2.0")


def test_missing_required_column_is_found() -> None:
    inner = pa.struct([pa.field("x", pa.int32(), nullable=False), ("y", pa.int32())])
    schema = schema_from_arrow(
        pa.schema(
            [
                pa.field("a", pa.int64(), nullable=False),
                pa.field("maybe", inner),
                pa.field("always", inner, nullable=False),
                pa.field("list", pa.list_(pa.int8()), nullable=False),
            ]
        )
    )
    numbers = {f.name: f.id for f in schema.walk()}
    assert numbers["list"] == 7
    everything = [0, 5, 8]  # a, always.x, and of the list only its items, as version 2.1 lists it

    def missing(*field_ids: int) -> int | None:
        file = replace(data_file(), field_ids=tuple(map(FieldId, field_ids)), column_indices=())
        found = missing_field(schema, [replace(new_fragment(), files=(file,))])
        return None if found is None else found.id

    assert missing(*everything) is None
    for number in everything:
        absent = missing(*(i for i in everything if i != number))
        assert absent == {0: 0, 5: 5, 8: 7}[number]


def test_append_without_a_required_column() -> None:
    schema = schema_from_arrow(pa.schema([pa.field("z", pa.int64(), nullable=False)]))
    head = replace(
        table(), schema=replace(schema, fields=(replace(schema.fields[0], id=FieldId(9)),))
    )
    with pytest.raises(SchemaMismatchError, match="'z'"):
        apply(head, append(1), NOW)


def test_unsigned_tables_need_their_rows_counted() -> None:
    head = replace(table(new_fragment(4)), writer=None)
    with pytest.raises(UnsupportedError, match=r"before 0\.8\.15"):
        apply(head, append(1), NOW)

    def count(fragment: Fragment) -> Fragment:
        return replace(fragment, physical_rows=44)

    manifest = apply(head, append(1), replace(NOW, complete=count))
    assert [f.physical_rows for f in manifest.fragments] == [44, 10]
    assert apply(replace(table(), writer=None), append(1), NOW).version == 2


def test_apply_refuses_unknown_operation() -> None:
    with pytest.raises(UnsupportedError, match="'merge'"):
        apply(table(), Transaction(1, Other("merge")), NOW)


def test_base_paths_are_set_by_the_first_version_only() -> None:
    based = Overwrite((), SCHEMA, base_paths=(BasePath(1, "/x"), BasePath(0, "/y")))
    made = create(Transaction(0, based), NOW)
    assert [base.id for base in made.base_paths] == [1, 2]
    assert (made.reader_flags, made.writer_flags) == (16, 16)
    assert apply(made, overwrite(1), NOW).base_paths == made.base_paths
    with pytest.raises(ArgumentError, match="base paths"):
        apply(made, Transaction(1, based), NOW)


def test_fragment_ids_end() -> None:
    head = replace(table(), max_fragment_id=2**32 - 1)
    with pytest.raises(ArgumentError, match="fragment ids"):
        apply(head, Transaction(1, Append((new_fragment(),))), NOW)
    assert FragmentId(2**32 - 1) == head.last_fragment_id
