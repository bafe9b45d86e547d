"""Nested columns of 2.2 in part: projections, filters and takes, of files of both writers."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
from tests.interop.equality import difference

PACKED = {"packed": "true", "lance-encoding:packed": "true"}
POINT = pa.struct([("x", pa.int32()), ("y", pa.string())])
MAP = pa.map_(pa.string(), POINT)
INNER = pa.struct([("m", MAP), ("n", pa.int64()), ("l", pa.list_(POINT))])
ROW = pa.struct([("w", pa.string()), ("v", pa.list_(pa.int16(), 2)), ("k", pa.int64())])
SCHEMA = pa.schema(
    [
        *(pa.field("id", pa.int64()), pa.field("s", INNER), pa.field("m", MAP)),
        pa.field("p", ROW, metadata=PACKED),
        pa.field("deep", pa.list_(pa.map_(pa.int8(), INNER))),
    ]
)
ROWS = 2500


def _point(row: int) -> Any:
    return None if row % 4 == 1 else {"x": row, "y": None if row % 3 else f"y{row}"}


def _map(row: int) -> Any:
    return None if row % 6 == 5 else [(f"k{key}", _point(row + key)) for key in range(row % 3)]


def _inner(row: int) -> Any:
    listed = None if row % 5 == 3 else [_point(row)] * (row % 3)
    return None if row % 7 == 2 else {"m": _map(row), "n": row % 90, "l": listed}


def _row(row: int) -> dict[str, Any]:
    packed = None if row % 8 == 6 else {"w": "w" * (row % 20), "v": [row, 1], "k": row}
    deep = None if row % 9 == 4 else [[(1, _inner(row)), (2, None)], [], None][: row % 4]
    return {"id": row, "s": _inner(row), "m": _map(row), "p": packed, "deep": deep}


TABLE = pa.Table.from_pylist([_row(row) for row in range(ROWS)], SCHEMA)
UNPACKED = ["id", "s", "m", "deep"]
"""Pylance fails where it filters and there are packed rows of any width, in its own files, too."""

READS: list[dict[str, Any]] = [
    *({"columns": [name]} for name in ("s.m", "s.l", "s.n", "m", "p", "deep")),
    {"columns": ["id", "s.m", "m"], "offset": 1020, "limit": 30},
    *(
        {"filter": text, "columns": UNPACKED}
        for text in ("s.n > 88", "m IS NULL AND id < 40", "s IS NULL", "id % 97 = 3")
    ),
    {"filter": "s.n = 7", "columns": ["s.m", "id"]},
]


@pytest.mark.parametrize("writer", [pennon, lance])
def test_parts_of_nested_columns(tmp_path: Path, writer: ModuleType) -> None:
    uri = str(tmp_path / "t.lance")
    writer.write_dataset(TABLE, uri, data_storage_version="2.2", max_rows_per_file=1600)
    ours, theirs = pennon.dataset(uri), lance.dataset(uri)
    assert difference(ours.to_table(), TABLE) is None
    for read in READS:
        assert difference(ours.to_table(**read), theirs.to_table(**read)) is None, read
    rows = [2499, 0, 1599, 1600, 5, 5, 1024]
    for columns in (None, ["s.m"], ["m", "s.l"], ["p"], ["deep", "id"]):
        found = ours.take(rows, columns=columns)
        assert difference(found, theirs.take(rows, columns=columns)) is None, columns


@pytest.mark.parametrize("writer", [pennon, lance])
def test_projections_of_variable_width_packed_structs(tmp_path: Path, writer: ModuleType) -> None:
    """Pylance does not find the fields of a packed struct in rows of any width."""
    uri = str(tmp_path / "t.lance")
    writer.write_dataset(TABLE, uri, data_storage_version="2.2")
    ours, packed = pennon.dataset(uri), TABLE["p"].to_pylist()
    for name in ("w", "v", "k"):
        found = ours.to_table(columns=[f"p.{name}"])[f"p.{name}"].to_pylist()
        assert found == [row and row[name] for row in packed]
    found = ours.to_table(filter="p.k > 2480", columns=["id", "p"])
    assert found["p"].to_pylist() == [row for row in packed[2481:] if row]
    assert len(ours.to_table(filter="p IS NULL")) == TABLE["p"].null_count
    assert ours.take([7], columns=["p.k"]).to_pylist() == [{"p": {"k": 7}}]
    with pytest.raises(Exception, match="Expected 1 buffers in array of type Int64, got 2"):
        lance.dataset(uri).to_table(columns=["p.k"])


def test_packed_struct_page_of_nulls_is_read_by_both(tmp_path: Path) -> None:
    """Rows of any width that are all NULL are a page of levels, also in lists: pylance reads no other."""
    field = pa.field("c", pa.list_(pa.field("item", ROW, metadata=PACKED)))
    table = pa.table(
        [pa.array([[None], [], [None, None], None] * 20, field.type)], pa.schema([field])
    )
    pennon.write_dataset(table, tmp_path / "t", data_storage_version="2.2")
    assert difference(lance.dataset(tmp_path / "t").to_table(), table) is None
    assert difference(pennon.dataset(tmp_path / "t").to_table(), table) is None


def test_structs_without_fields(tmp_path: Path) -> None:
    """One that is never NULL is kept; where it comes first, pylance loses the fields behind it."""
    bare = pa.field("a", pa.struct([]))
    number = pa.field("b", pa.int32())
    for name, fields in {"first": [bare, number], "last": [number, bare]}.items():
        rows = pa.array([{"a": {}, "b": 1}, {"a": {}, "b": None}], pa.struct(fields))
        table = pa.table({"c": rows})
        for writer in (pennon, lance):
            uri = str(tmp_path / name / writer.__name__)
            writer.write_dataset(table, uri, data_storage_version="2.2")
            assert difference(pennon.dataset(uri).to_table(), table) is None
            kept = difference(lance.dataset(uri).to_table(), table) is None
            assert kept == (name == "last")


@pytest.mark.parametrize(
    "rows",
    [
        pa.array([{}, None], pa.struct([])),
        pa.array([{"a": {}}, None], pa.struct([("a", pa.struct([]))])),
    ],
    ids=["NULL", "in a NULL struct"],
)
def test_structs_without_fields_that_are_null_are_refused_by_both(
    tmp_path: Path, rows: pa.Array
) -> None:
    table = pa.table({"c": rows})
    with pytest.raises(pennon.errors.UnsupportedError, match="structs without fields"):
        pennon.write_dataset(table, tmp_path / "ours", data_storage_version="2.2")
    with pytest.raises(OSError, match="Empty structs"):
        lance.write_dataset(table, tmp_path / "theirs", data_storage_version="2.2")


def test_maps_of_sorted_keys_are_refused_by_both(tmp_path: Path) -> None:
    table = pa.table(
        {"c": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8(), keys_sorted=True))}
    )
    with pytest.raises(
        pennon.errors.UnsupportedError, match="cast it to a map without keys_sorted"
    ):
        pennon.write_dataset(table, tmp_path / "ours", data_storage_version="2.2")
    with pytest.raises(OSError, match="keys_sorted"):
        lance.write_dataset(table, tmp_path / "theirs", data_storage_version="2.2")


@pytest.mark.parametrize("name", ["list", "map"])
def test_fixed_size_lists_of_structs_within_lists_are_refused(tmp_path: Path, name: str) -> None:
    items = pa.list_(POINT, 2)
    kind: pa.DataType = pa.list_(items)
    row: list[Any] = [[_point(0)] * 2]
    if name == "map":
        kind, row = pa.map_(pa.string(), items), [("k", [_point(0)] * 2)]
    table = pa.table({"c": pa.array([row], kind)})
    with pytest.raises(pennon.errors.UnsupportedError, match="no version can in a list or map"):
        pennon.write_dataset(table, tmp_path / "ours", data_storage_version="2.2")
    lance.write_dataset(table, tmp_path / "theirs", data_storage_version="2.2")
    with pytest.raises(Exception, match="Not yet supported FSL"):
        lance.dataset(tmp_path / "theirs").to_table()


NONE = pa.binary(0)
NO_BYTES: dict[str, pa.Array] = {
    "valid": pa.array([b""] * 6, NONE),
    "some NULL": pa.array([b"", None, b""] * 2, NONE),
    "all NULL": pa.array([None] * 6, NONE),
    "in lists": pa.array([[b""], [], None, [None, b""], [], [b""] * 3], pa.list_(NONE)),
    "in structs": pa.array([{"x": b""}, None, {"x": None}] * 2, pa.struct([("x", NONE)])),
    "in maps": pa.array([[("k", b"")], None, []] * 2, pa.map_(pa.string(), NONE)),
}


@pytest.mark.parametrize("name", NO_BYTES)
def test_zero_width_values_need_file_version_2_2(tmp_path: Path, name: str) -> None:
    """2.2 has a page for them, older versions have none that pylance reads: those refuse them."""
    table = pa.table({"id": range(6), "c": NO_BYTES[name]})
    for writer in (pennon, lance):
        uri = str(tmp_path / writer.__name__)
        writer.write_dataset(table, uri, data_storage_version="2.2")
        writer.write_dataset(table.slice(3), uri, mode="append")
        for reader in (pennon, lance):
            dataset: Any = reader.dataset(uri)
            assert difference(dataset.to_table()[:6], table) is None
            assert difference(dataset.take([5, 1, 7]), table.take([5, 1, 4])) is None
        pennon.dataset(uri).update({"id": "id + 10"}, where="id < 2")
        pennon.dataset(uri).optimize.compact_files()
        assert lance.dataset(uri).to_table() == pennon.dataset(uri).to_table()
    for version in ("0.1", "2.0", "2.1"):
        with pytest.raises(pennon.errors.UnsupportedError, match=r"column 'c.* 2\.2 "):
            pennon.write_dataset(table, tmp_path / version, data_storage_version=version)
    assert pennon.write_dataset(table, tmp_path / "new").data_storage_version == "2.2"
