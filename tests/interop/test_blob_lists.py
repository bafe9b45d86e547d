"""Lists of blobs of version 2: the same descriptions, files of blobs and bytes as pylance's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.errors import UnsupportedError
from tests.interop.blob_tables import SMALL, files_of_blobs, make_outside, named, written

VALUES = [b"ab", b"packed", None, b"D" * 40, b"", b"12345", b"x" * 50, b"also packed", b"end"]
BORDERS = [0, 1, 3, 3, None, 7, 9]
LISTS = [[b"ab"], [b"packed", None], [], None, [b"D" * 40, b"", b"12345", b"x" * 50], VALUES[7:]]


def _blobs(name: str) -> tuple[pa.Array, pa.Field]:
    return lance.blob_array(VALUES), lance.blob_field(name, **SMALL)


def _lists(items: pa.Array, field: pa.Field, *, large: bool = False) -> pa.Array:
    """Return lists of the values; a NULL among the offsets is a NULL list."""
    if large:
        offsets = pa.array(BORDERS, pa.int64())
        return pa.LargeListArray.from_arrays(offsets, items, type=pa.large_list(field))
    return pa.ListArray.from_arrays(pa.array(BORDERS, pa.int32()), items, type=pa.list_(field))


def _in_lists(*, large: bool = False) -> pa.Table:
    array = _lists(*_blobs("item"), large=large)
    return named("c", array)


def _of_structs() -> pa.Table:
    blobs, field = _blobs("b")
    numbers = pa.array(range(len(VALUES)))
    rows = pa.StructArray.from_arrays(
        [numbers, blobs],
        fields=[pa.field("n", pa.int64()), field],
        mask=pa.array([row == 5 for row in range(len(VALUES))]),
    )
    return named("c", _lists(rows, pa.field("item", rows.type)))


def _of_lists() -> pa.Table:
    inner = _lists(*_blobs("item"))
    kind = pa.list_(inner.type)
    return named(
        "c", pa.ListArray.from_arrays(pa.array([0, 2, None, 5, 6], pa.int32()), inner, kind)
    )


def _version_1() -> pa.Table:
    return _of_items(LISTS)


def _of_items(lists: list[Any]) -> pa.Table:
    """Return lists of bytes that are marked as blobs of version 1."""
    metadata = {"lance-encoding:blob": "true"}
    kind = pa.list_(pa.field("item", pa.large_binary(), metadata=metadata))
    return named("c", pa.array(lists, kind), pa.field("c", kind))


TABLES: dict[str, Callable[[], pa.Table]] = {
    "lists": _in_lists,
    "large lists": lambda: _in_lists(large=True),
    "sliced": lambda: _in_lists().slice(1, 4),
    "structs": _of_structs,
    "lists of lists": _of_lists,
    "version 1": _version_1,
    "no items": lambda: _in_lists().slice(2, 1),
    "NULLs and no items": lambda: _version_1().slice(2, 2),
    "NULL items": lambda: _of_items([[None], [], None, [None, None]]),
}


@pytest.mark.parametrize("name", TABLES)
def test_lists_of_blobs_equal_those_of_pylance(name: str, tmp_path: Path) -> None:
    table = TABLES[name]()
    theirs = written(lance, table, tmp_path / "theirs")
    ours = written(pennon, table, tmp_path / "ours")
    assert ours.to_table() == theirs.to_table()
    whole = theirs.to_table(blob_handling="all_binary")
    assert ours.to_table(blob_handling="all_binary") == whole
    assert files_of_blobs(tmp_path / "ours") == files_of_blobs(tmp_path / "theirs")
    for folder in ("ours", "theirs"):
        mine = pennon.dataset(tmp_path / folder)
        mine.validate()
        assert mine.to_table() == theirs.to_table()
        assert mine.to_table(blob_handling="all_binary") == whole
    ours.validate()


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("module", [lance, pennon])
def test_update_delete_and_compaction_keep_lists_of_blobs(
    module: Any, name: str, tmp_path: Path
) -> None:
    uri, table = str(tmp_path), TABLES[name]()
    table = table.append_column("i", pa.array(range(table.num_rows)))
    module.write_dataset(table, uri, data_storage_version="2.2")
    pennon.write_dataset(table, uri, mode="append")
    before = pennon.dataset(uri).to_table(blob_handling="all_binary").to_pylist()
    pennon.dataset(uri).update({"i": "i + 100"}, where="i = 1")
    pennon.dataset(uri).delete("i = 0")
    pennon.dataset(uri).optimize.compact_files()
    lance.dataset(uri).optimize.compact_files()
    left = [row["c"] for row in before if row["i"] not in (0, 1)]
    moved = [row["c"] for row in before if row["i"] == 1]
    for reader in (lance, pennon):
        dataset: Any = reader.dataset(uri)
        dataset.validate()
        found = dataset.to_table(blob_handling="all_binary")
        assert found["c"].to_pylist() == left + moved


def test_lists_of_external_blobs_keep_their_references(tmp_path: Path) -> None:
    outside = make_outside(tmp_path)
    place = (outside / "sub" / "a.bin").as_uri()
    items = lance.blob_array([lance.Blob.from_uri(place, 2, 5), b"own", place, b"p" * 20])
    field = lance.blob_field("item", **SMALL)
    lists = pa.ListArray.from_arrays(pa.array([0, 3, 4], pa.int32()), items, pa.list_(field))
    uri = tmp_path / "t"
    base = pennon.DatasetBasePath(str(outside), "x")
    written(pennon, named("c", lists), uri, initial_bases=[base])
    pennon.write_dataset(named("c", lists), uri, mode="append")
    pennon.dataset(uri).optimize.compact_files()
    shown = lance.dataset(str(uri)).to_table()["c"].to_pylist()
    assert [each["kind"] for each in shown[0]] == [3, 0, 3]
    wanted = [[b"23456", b"own", b"0123456789" * 3], [b"p" * 20]] * 2
    for reader in (lance, pennon):
        dataset: Any = reader.dataset(str(uri))
        found = dataset.to_table(blob_handling="all_binary")
        assert found["c"].to_pylist() == wanted


def test_maps_and_fixed_size_lists_of_blobs_are_refused_by_both(tmp_path: Path) -> None:
    items = lance.blob_array([b"a", b"b"])
    keys = pa.array(["x", "y"])
    maps = pa.MapArray.from_arrays(pa.array([0, 2], pa.int32()), keys, items)
    vectors = pa.FixedSizeListArray.from_arrays(items, type=pa.list_(lance.blob_field("item"), 2))
    for array in (maps, vectors):
        with pytest.raises(OSError, match="Blob v2"):
            written(lance, named("c", array), tmp_path / "theirs")
        with pytest.raises(UnsupportedError, match="column 'c'"):
            written(pennon, named("c", array), tmp_path / "ours")


def test_columns_of_lists_of_blobs_are_added(tmp_path: Path) -> None:
    uri = str(tmp_path)
    lance.write_dataset(pa.table({"i": range(len(LISTS))}), uri, max_rows_per_file=4)
    kind = pa.list_(lance.blob_field("item", **SMALL))
    pennon.dataset(uri).add_columns(pa.schema([pa.field("nothing", kind)]))
    joined = _in_lists().append_column("i", pa.array(range(len(LISTS))))
    pennon.dataset(uri).merge(joined, "i")
    pennon.dataset(uri).update({"i": "i"}, where="i = 4")
    pennon.dataset(uri).optimize.compact_files()
    wanted = _in_lists()["c"].combine_chunks().to_pylist()
    for reader in (lance, pennon):
        found: Any = reader.dataset(uri).to_table(blob_handling="all_binary").sort_by("i")
        assert found["nothing"].null_count == len(LISTS)
        assert found["c"].to_pylist() == [
            None if each is None else [blob and blob["data"] for blob in each] for each in wanted
        ]
