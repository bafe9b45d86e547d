"""Structs with missing fields in a data file: appended without them, or added later."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon

DEEP = pa.struct([("q", pa.int8()), ("r", pa.float32())])
STRUCT = pa.struct([("x", pa.int64()), ("y", pa.string()), ("z", DEEP)])
SCHEMA = pa.schema([("s", STRUCT), ("l", pa.list_(STRUCT)), ("k", pa.int32())])
X = pa.struct([("x", pa.int64())])
R = pa.struct([("z", pa.struct([("r", pa.float32())]))])
FULL: list[dict[str, Any]] = [
    {"s": {"x": 1, "y": "a", "z": {"q": 1, "r": 2.0}}, "l": [], "k": 1},
    {"s": {"x": None, "y": None, "z": {"q": 1, "r": None}}, "l": None, "k": 3},
]
NULLS: list[dict[str, Any]] = [
    {"s": {"x": 1, "y": "a", "z": None}, "l": [{"x": 1, "y": "b", "z": None}, None], "k": 1},
    {"s": None, "l": None, "k": 2},
]
Rows = list[dict[str, Any]]
APPENDS: dict[str, tuple[pa.Schema, Rows, Rows]] = {
    "a field": (pa.schema([("s", X), ("k", pa.int32())]), [{"s": {"x": 5}, "k": 1}], [{"s": None}]),
    "a deep field": (
        pa.schema([("k", pa.int32()), ("s", R)]),
        [{"s": {"z": {"r": 1.5}}, "k": 1}],
        [{"s": {"z": None}}, {"s": None}],
    ),
    "in a list": (
        pa.schema([("l", pa.list_(X))]),
        [{"l": [{"x": 1}, {"x": None}]}, {"l": []}, {"l": None}],
        [{"l": [{"x": 3}, None]}],
    ),
    "deep in a list": (
        pa.schema([("l", pa.list_(R))]),
        [{"l": [{"z": {"r": 1.5}}]}, {"l": []}],
        [{"l": [{"z": None}, None]}, {"l": None}],
    ),
}


def _same(uri: str) -> None:
    theirs, ours = lance.dataset(uri), pennon.dataset(uri)
    assert ours.to_table() == theirs.to_table()
    rows = [ours.count_rows() - 1, 0, ours.count_rows() - 1]
    assert ours.take(rows) == theirs.take(rows)
    assert ours.to_table(columns=["s"]) == theirs.to_table(columns=["s"])
    assert ours.to_table(limit=2, offset=1) == theirs.to_table(limit=2, offset=1)


@pytest.mark.parametrize(
    ("version", "writer"),
    [
        ("2.0", lance),
        ("2.0", pennon),
        ("2.1", lance),
        ("2.1", pennon),
        ("2.2", lance),
        ("2.2", pennon),
    ],
)
@pytest.mark.parametrize("name", APPENDS)
def test_append_of_structs_with_missing_fields(
    name: str, version: Any, writer: Any, tmp_path: Path
) -> None:
    schema, plain, nulls = APPENDS[name]
    with_nulls = version != "2.0"  # which has no NULL structs
    uri = str(tmp_path / "t")
    base = pa.Table.from_pylist(FULL + (NULLS if with_nulls else []), SCHEMA)
    lance.write_dataset(base, uri, data_storage_version=version)
    rows = pa.Table.from_pylist(plain + (nulls if with_nulls else []), schema)
    writer.write_dataset(rows, uri, mode="append")
    _same(uri)


def _numbered(batch: pa.RecordBatch) -> pa.RecordBatch:
    rows = [None if row is None else {"w": n} for n, row in enumerate(batch.column(0).to_pylist())]
    return pa.record_batch([pa.array(rows, pa.struct([("w", pa.int32())]))], ["s"])


N = pa.struct([pa.field("n", pa.int32())])
ADDED: dict[str, Callable[[Any], Any]] = {
    "NULLs": lambda t: t.add_columns(pa.schema([("s", N)])),
    "deep NULLs": lambda t: t.add_columns(pa.schema([("s", pa.struct([("z", N)]))])),
    "NULLs in a list": lambda t: t.add_columns(pa.schema([("l", pa.list_(N))])),
    "values": lambda t: t.add_columns(
        lance.batch_udf(output_schema=pa.schema([("s", pa.struct([("w", pa.int32())]))]))(
            _numbered
        ),
        read_columns=["s"],
    ),
}


@pytest.mark.parametrize("name", ADDED)
def test_struct_fields_added_by_pylance_in_other_files_are_read(name: str, tmp_path: Path) -> None:
    """Only 2.2 lets the oracle add a field to a struct."""
    uri = str(tmp_path / "t")
    table = pa.Table.from_pylist([*FULL, *NULLS, *FULL], SCHEMA)
    lance.write_dataset(table, uri, data_storage_version="2.2", max_rows_per_file=4)
    ADDED[name](lance.dataset(uri))
    lance.dataset(uri).delete("k = 3")
    _same(uri)
