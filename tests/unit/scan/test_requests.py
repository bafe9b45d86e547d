"""Requests and rounds of reads, for every type."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pennon
from pennon.dataset.lance_dataset import LanceDataset
from pennon.io import open_store
from pennon.scan.snapshot import Snapshot
from pennon.table.versions import read_manifest
from pennon.testing import CountingStore

ROWS = 60_000
"""So many that no buffer of a page is within reach of the tail that opening reads."""


def _some(values: list[Any]) -> list[Any]:
    return [None if n % 7 == 0 else value for n, value in enumerate(values)]


NUMBERS = list(range(ROWS))
TEXTS = [f"value number {n}" for n in NUMBERS]
VECTORS = [[n, 1, 2, 3] for n in NUMBERS]
LISTS = [[n] * (n % 4) for n in NUMBERS]
FLOATS4 = pa.list_(pa.float32(), 4)

# name: values, rounds, requests of one row
TYPES: dict[str, tuple[pa.Array[Any], int, int]] = {
    "int64": (pa.array(NUMBERS), 1, 1),
    "int64 and NULL": (pa.array(_some(NUMBERS)), 1, 2),
    "bool": (pa.array([n % 3 == 0 for n in NUMBERS]), 1, 1),
    "bool and NULL": (pa.array(_some([n % 3 == 0 for n in NUMBERS])), 1, 2),
    "decimal and NULL": (pa.array(_some([Decimal(n) for n in NUMBERS])), 1, 2),
    "timestamp and NULL": (pa.array(_some(NUMBERS), pa.timestamp("us", "UTC")), 1, 2),
    "all NULL": (pa.nulls(ROWS, pa.int32()), 0, 0),
    "null": (pa.nulls(ROWS), 0, 0),
    "string": (pa.array(TEXTS), 2, 2),
    "string and NULL": (pa.array(_some(TEXTS)), 2, 2),
    "large_binary and NULL": (pa.array(_some(TEXTS)).cast(pa.large_binary()), 2, 2),
    "few strings": (pa.array([f"v{n % 9}" for n in NUMBERS]), 2, 2),
    "dictionary": (pa.array([f"v{n % 9}" for n in NUMBERS]).dictionary_encode(), 2, 2),
    "vector": (pa.array(VECTORS, FLOATS4), 1, 1),
    "vector and NULL": (pa.array(_some(VECTORS), FLOATS4), 1, 2),
    "list": (pa.array(LISTS), 2, 2),
    "list and NULL": (pa.array(_some(LISTS)), 2, 2),
    # An item's validity and its value lie in two buffers.
    "list of NULLs": (pa.array([[n, None] * (n % 4) for n in NUMBERS]), 2, 3),
    # A struct is as many columns as it has fields, read side by side.
    "struct": (pa.array([{"a": n, "b": t} for n, t in zip(NUMBERS, TEXTS, strict=True)]), 2, 3),
    # Each list level above the values has offsets of its own.
    "list of strings": (pa.array([[t] * (n % 4) for n, t in enumerate(TEXTS)]), 3, 3),
    "list of lists": (pa.array([[[n]] * (n % 4) for n in NUMBERS]), 3, 3),
}


def _open(folder: Path) -> tuple[LanceDataset, CountingStore]:
    store = CountingStore(open_store(folder))
    return LanceDataset.of_snapshot(str(folder), Snapshot(store, read_manifest(store))), store


@pytest.mark.parametrize("name", TYPES)
def test_point_read_of_2_0_rounds_and_requests_by_type(name: str, tmp_path: Path) -> None:
    values, rounds, requests = TYPES[name]
    rows = pa.table({"c": values})
    pennon.write_dataset(rows, tmp_path / "t.lance", data_storage_version="2.0")
    table, store = _open(tmp_path / "t.lance")
    table.snapshot.open_file(table.snapshot.manifest.fragments[0].files[0])
    assert store.counts.verbs["list"] + store.counts.requests <= 3
    for row in (ROWS // 2 + 1, 5, ROWS - 3):
        store.reset()
        assert table.take([row])["c"].to_pylist() == [values[row].as_py()]
        assert store.counts.verbs["list"] == store.counts.verbs["open"] == 0
        assert store.counts.rounds <= rounds
        assert store.counts.requests <= requests


@pytest.mark.parametrize("name", TYPES)
def test_point_read_of_2_1_rounds_and_requests_by_type(name: str, tmp_path: Path) -> None:
    """Two rounds for any type; the first finds the chunk, and is not needed a second time."""
    values = TYPES[name][0]
    rows = pa.table({"c": values})
    pennon.write_dataset(rows, tmp_path / "t.lance", data_storage_version="2.1")
    table, store = _open(tmp_path / "t.lance")
    table.snapshot.open_file(table.snapshot.manifest.fragments[0].files[0])
    assert store.counts.verbs["list"] + store.counts.requests <= 3
    for row, rounds in ((ROWS // 2 + 1, 2), (ROWS // 2 + 2, 1), (5, 1), (ROWS - 3, 1)):
        store.reset()
        assert table.take([row])["c"].to_pylist() == [values[row].as_py()]
        assert store.counts.verbs["list"] == store.counts.verbs["open"] == 0
        assert store.counts.rounds <= rounds


def test_count_rows_makes_no_requests(tmp_path: Path) -> None:
    pennon.write_dataset(pa.table({"c": NUMBERS}), tmp_path / "t.lance", max_rows_per_file=9000)
    table, store = _open(tmp_path / "t.lance")
    store.reset()
    assert table.count_rows() == len(table) == ROWS
    assert table.scanner(limit=20_000, offset=50_000).count_rows() == 10_000
    assert not store.counts.verbs


def test_a_projection_reads_its_columns_only(tmp_path: Path) -> None:
    rows = pa.table({"a": NUMBERS, "b": TEXTS})
    pennon.write_dataset(rows, tmp_path / "t.lance")
    table, store = _open(tmp_path / "t.lance")
    table.to_table(columns=["a"])
    assert store.counts.read_bytes < rows["a"].nbytes + 200_000


def test_columns_of_a_take_share_their_rounds(tmp_path: Path) -> None:
    rows = pa.table({"a": NUMBERS, "b": TEXTS, "c": LISTS, "d": TEXTS[::-1]})
    pennon.write_dataset(rows, tmp_path / "t.lance")
    table, store = _open(tmp_path / "t.lance")
    table.take([1])
    store.reset()
    assert table.take([40_000, 7, 40_000]).to_pylist() == rows.take([40_000, 7, 40_000]).to_pylist()
    assert store.counts.rounds <= 2


def test_files_are_opened_once(tmp_path: Path) -> None:
    pennon.write_dataset(pa.table({"c": NUMBERS}), tmp_path / "t.lance", max_rows_per_file=20_000)
    table, store = _open(tmp_path / "t.lance")
    for _ in range(3):
        assert table.to_table().num_rows == ROWS
        assert table.checkout_version(1).take([ROWS - 1]).num_rows == 1
    opened = [path for path, counts in store.by_path.items() if path.startswith("data/")]
    assert len(opened) == 3
    assert all(store.by_path[path].verbs["open"] == 1 for path in opened)
