"""Tables of version 0.1: pylance reads and validates the commits of Pennon, and the reverse."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.core.units import FieldId
from pennon.errors import FormatError
from pennon.io import open_store
from pennon.table.manifest import Manifest
from pennon.table.manifest_wire import serialize_manifest_file
from pennon.table.versions import latest_location, read_manifest

ROWS = pa.table(
    {
        "id": pa.array([1, 2], pa.int64()),
        "s": pa.array([{"a": 1, "b": 2}, {"a": 3, "b": 4}]),
        "k": ["a", "b"],
        "l": pa.array([[1, 2], [3]], pa.list_(pa.int64())),
    }
)
COLORS = pa.dictionary(pa.int32(), pa.string())


def _both_read(uri: str) -> list[dict[str, Any]]:
    """Return the rows, as both read them; both find the table whole."""
    lance.dataset(uri).validate()
    pennon.dataset(uri).validate()
    rows: list[dict[str, Any]] = lance.dataset(uri).to_table().to_pylist()
    assert pennon.dataset(uri).to_table().to_pylist() == rows
    return rows


def _field_ids(uri: str) -> list[list[list[int]]]:
    return [[file.fields for file in f.metadata.files] for f in lance.dataset(uri).get_fragments()]


@pytest.mark.parametrize("order", [["l", "k", "s", "id"], ["s", "id", "l", "k"]])
def test_an_append_with_columns_in_another_order(tmp_path: Path, order: list[str]) -> None:
    uri = str(tmp_path / "t.lance")
    pennon.write_dataset(ROWS, uri, data_storage_version="legacy")
    pennon.write_dataset(ROWS.select(order), uri, mode="append")
    assert _both_read(uri) == ROWS.to_pylist() * 2
    lance.write_dataset(ROWS, uri, mode="append")
    pennon.dataset(uri).optimize.compact_files()
    assert _both_read(uri) == ROWS.to_pylist() * 3


@pytest.mark.parametrize("path", ["id", "s.a", "s.b", "l.item"])
def test_append_after_cast_at_0_1(tmp_path: Path, path: str) -> None:
    uri = str(tmp_path / "t.lance")
    pennon.write_dataset(ROWS, uri, data_storage_version="legacy")
    pennon.dataset(uri).alter_columns({"path": path, "data_type": pa.int32()})
    pennon.write_dataset(pennon.dataset(uri).to_table(), uri, mode="append")
    assert _both_read(uri) == ROWS.to_pylist() * 2
    pennon.dataset(uri).optimize.compact_files()
    assert _both_read(uri) == ROWS.to_pylist() * 2


def _damaged(uri: str, change: Any) -> None:
    """Write the newest manifest anew, changed."""
    store = open_store(uri)
    place = latest_location(store)
    manifest: Manifest = change(read_manifest(store))
    Path(uri, place.path).write_bytes(serialize_manifest_file(manifest))


def _with_ids(manifest: Manifest, ids: list[int]) -> Manifest:
    *first, last = manifest.fragments
    (file,) = last.files
    damaged = replace(file, field_ids=tuple(map(FieldId, ids)))
    return replace(manifest, fragments=(*first, replace(last, files=(damaged,))))


def test_field_ids_out_of_order_are_read_reported_and_repaired(tmp_path: Path) -> None:
    """Pennon wrote such tables for a while: the bytes are good, the entry has the order of the data."""
    uri = str(tmp_path / "t.lance")
    rows = ROWS.select(["id", "k"])
    pennon.write_dataset(rows, uri, data_storage_version="legacy")
    pennon.write_dataset(rows, uri, mode="append")
    _damaged(uri, lambda manifest: _with_ids(manifest, [1, 0]))
    with pytest.raises(OSError, match="unsorted or duplicate field ids"):
        lance.dataset(uri).validate()
    table = pennon.dataset(uri)
    with pytest.raises(FormatError, match=r"repair=True"):
        table.validate()
    assert table.to_table().to_pylist() == rows.to_pylist() * 2
    table.validate(repair=True)
    assert _field_ids(uri) == [[[0, 1]], [[0, 1]]]
    assert _both_read(uri) == rows.to_pylist() * 2
    version = table.version
    table.validate(repair=True)
    assert table.version == version, "a table that is whole gets no version"


@pytest.mark.parametrize("ids", [[0, 1, 2], [-2, 1, 2], [0, -2, 2], [-2, -2, 2]])
def test_field_ids_with_tombstones_are_valid_in_both(tmp_path: Path, ids: list[int]) -> None:
    uri = str(tmp_path / "t.lance")
    rows = pa.table({"a": [1], "b": [2], "c": [3]})
    pennon.write_dataset(rows, uri, data_storage_version="legacy")
    _damaged(uri, lambda manifest: _with_ids(manifest, ids))
    lance.dataset(uri).validate()
    pennon.dataset(uri).validate()


@pytest.mark.parametrize("ids", [[1, 0, 2], [0, 2, 1], [0, 1, 1], [2, -2, 1], [0, -2, 0]])
def test_field_ids_out_of_order_are_refused_by_both(tmp_path: Path, ids: list[int]) -> None:
    uri = str(tmp_path / "t.lance")
    rows = pa.table({"a": [1], "b": [2], "c": [3]})
    pennon.write_dataset(rows, uri, data_storage_version="legacy")
    _damaged(uri, lambda manifest: _with_ids(manifest, ids))
    with pytest.raises(OSError, match="corrupt file"):
        lance.dataset(uri).validate()
    with pytest.raises(FormatError):
        pennon.dataset(uri).validate()


# --- dictionaries ---------------------------------------------------------------------------------


def _colors(keys: list[int], colors: list[str]) -> pa.Table:
    column = pa.array(colors, pa.string()).dictionary_encode().cast(COLORS)
    return pa.table({"k": pa.array(keys, pa.int64()), "c": column})


def _empty_then_rows(uri: str) -> None:
    pennon.write_dataset(_colors([], []), uri, data_storage_version="legacy")
    pennon.write_dataset(_colors([1, 2], ["red", "blue"]), uri, mode="append")


def test_rows_written_after_empty_create_keep_the_dictionary(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    _empty_then_rows(uri)
    assert [row["c"] for row in _both_read(uri)] == ["red", "blue"]
    pennon.write_dataset(_colors([3], ["blue"]), uri, mode="append")
    merge = lance.dataset(uri).merge_insert("k")
    merge.when_matched_update_all().when_not_matched_insert_all().execute(
        _colors([3, 4], ["red", "blue"])
    )
    assert sorted((row["k"], row["c"]) for row in _both_read(uri)) == [
        (1, "red"),
        (2, "blue"),
        (3, "red"),
        (4, "blue"),
    ]


def test_merge_insert_into_empty_table_writes_the_dictionary(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    pennon.write_dataset(_colors([], []), uri, data_storage_version="legacy")
    merge = pennon.dataset(uri).merge_insert("k")
    merge.when_matched_update_all().when_not_matched_insert_all().execute(_colors([3], ["red"]))
    assert [row["c"] for row in _both_read(uri)] == ["red"]


def test_validate_repairs_a_missing_dictionary(tmp_path: Path) -> None:
    """Pennon wrote such tables for a while."""
    uri = str(tmp_path / "t.lance")
    _empty_then_rows(uri)
    _damaged(uri, lambda manifest: replace(manifest, dictionaries={}, fields_wire=None))
    table = pennon.dataset(uri)
    with pytest.raises(FormatError, match=r"column 'c'.*repair=True"):
        table.validate()
    table.validate(repair=True)
    assert [row["c"] for row in _both_read(uri)] == ["red", "blue"]


def test_append_to_table_with_missing_dictionary_repairs_it(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    _empty_then_rows(uri)
    _damaged(uri, lambda manifest: replace(manifest, dictionaries={}, fields_wire=None))
    pennon.write_dataset(_colors([3], ["blue"]), uri, mode="append")
    assert [row["c"] for row in _both_read(uri)] == ["red", "blue", "blue"]


def test_concurrent_appends_with_different_dictionaries_conflict(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    pennon.write_dataset(_colors([], []), uri, data_storage_version="legacy")
    early = pennon.dataset(uri)
    fragments = [
        pennon.fragment.write_fragments(_colors([number], [color]), early)
        for number, color in enumerate(["red", "blue"])
    ]
    append = pennon.LanceOperation.Append
    pennon.LanceDataset.commit(uri, append(fragments[0]), read_version=1)
    with pytest.raises((pennon.errors.CommitError, pennon.errors.ArgumentError)):
        pennon.LanceDataset.commit(uri, append(fragments[1]), read_version=1)
    assert [row["c"] for row in _both_read(uri)] == ["red"]


# --- sizes ----------------------------------------------------------------------------------------


def test_wrong_file_sizes_of_old_release_are_read_and_repaired(tmp_path: Path) -> None:
    """Lance 1.0.4 counts what was written when it closed the file, and forgets the rest (59 of 635 bytes)."""
    uri = str(tmp_path / "t.lance")
    rows = ROWS.select(["id", "k"])
    pennon.write_dataset(rows, uri, data_storage_version="legacy")

    def shrink(manifest: Manifest) -> Manifest:
        (fragment,) = manifest.fragments
        (file,) = fragment.files
        return replace(
            manifest, fragments=(replace(fragment, files=(replace(file, size_bytes=59),)),)
        )

    _damaged(uri, shrink)
    lance.dataset(uri).validate()
    table = pennon.dataset(uri)
    with pytest.warns(UserWarning, match="the manifest says 59 bytes"):
        table.validate()
    assert table.to_table() == rows
    table.validate(repair=True)
    assert _both_read(uri) == rows.to_pylist()


def test_restore_of_empty_version_keeps_the_dictionary(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    _empty_then_rows(uri)
    pennon.dataset(uri, version=1).restore()
    merge = lance.dataset(uri).merge_insert("k")
    merge.when_not_matched_insert_all().execute(_colors([3, 4], ["red", "blue"]))
    assert sorted(row["c"] for row in _both_read(uri)) == ["blue", "red"]


def test_a_merge_of_batches_with_a_dictionary_each(tmp_path: Path) -> None:
    """pylance 14.0.2 writes indices of a joined dictionary, and rows get other values."""
    table, *batches = (
        pa.record_batch({"k": [key], "c": _words(index)}) for key, index in ((0, 0), (4, 1), (3, 0))
    )
    source = pa.Table.from_batches(batches)
    found = []
    for library in (pennon, lance):
        uri = str(tmp_path / library.__name__)
        lance.write_dataset(pa.Table.from_batches([table]), uri, data_storage_version="legacy")
        library.dataset(uri).merge_insert("k").when_not_matched_insert_all().execute(source)
        found.append({row["k"]: row["c"] for row in _both_read(uri)})
    assert found == [{0: "red", 4: "green", 3: "red"}, {0: "red", 4: "red", 3: "green"}]


def _words(*indices: int) -> pa.Array:
    words = pa.array(["red", "green", "blue"])
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), words)


def test_added_binary_column_with_nulls_at_0_1(tmp_path: Path) -> None:
    """A file holds them, but of a column that is added pylance refuses them in large binary values."""
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"k": [1, 2]}), uri, data_storage_version="legacy")
    new = pa.table({"b": pa.array([b"x", None], pa.large_binary())})
    with pytest.raises(OSError, match="storing nulls for this data type is not supported"):
        lance.dataset(uri).add_columns(new.to_reader())
    pennon.dataset(uri).add_columns(new.to_reader())
    assert [row["b"] for row in _both_read(uri)] == [b"x", None]
