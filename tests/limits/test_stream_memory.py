"""A streamed scan holds a few units, not the table: bytes of Arrow's pools are counted while batches go by.

Units are small here, so that a small table has many of them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pennon
from tests.limits.peak import held_bytes

UNIT_BYTES: Final = 256 * 1024
PROCESSORS: Final = 2
BATCH_ROWS: Final = 1024
MOST_BYTES: Final = (PROCESSORS + 1) * 2 * UNIT_BYTES
"""Each processor has a unit under way, and the caller looks at one; each is decoded from as many bytes at most."""
TABLE_BYTES: Final = 4 * MOST_BYTES
RANDOM: Final = np.random.default_rng(2013)


@pytest.fixture(autouse=True)
def small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    for room in ("batch_sizing", "execute"):
        monkeypatch.setattr(f"pennon.scan.read.{room}.UNIT_BYTES", UNIT_BYTES)
        monkeypatch.setattr(f"pennon.scan.read.{room}.processors", lambda: PROCESSORS)
    monkeypatch.setattr("pennon.scan.read.batch_sizing.LEAST_UNIT_BYTES", UNIT_BYTES // 2)


def _numbers(rows: int) -> pa.Array:
    return pa.array(RANDOM.integers(0, 1 << 40, rows))


def _nullable(rows: int) -> pa.Array:
    return pa.array(RANDOM.integers(0, 1 << 40, rows), mask=RANDOM.random(rows) < 0.5)


def _strings(rows: int) -> pa.Array:
    return _numbers(rows).cast(pa.string())


def _categories(rows: int) -> pa.Array:
    values = pa.array([f"category {number}" for number in range(20)])
    return values.take(pa.array(RANDOM.integers(0, 20, rows)))


def _texts(rows: int) -> pa.Array:
    words = pa.array([f"{chr(97 + number % 26)}word{number}" for number in range(200)])
    parts = [words.take(pa.array(RANDOM.integers(0, 200, rows))) for _ in range(12)]
    return pc.binary_join_element_wise(*parts, " ")


def _lists(rows: int) -> pa.Array:
    lengths = RANDOM.integers(0, 8, rows)
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    items = pa.array(RANDOM.integers(0, 1000, int(ends[-1])))
    return pa.ListArray.from_arrays(pa.array(ends), items)


def _structs(rows: int) -> pa.Array:
    mask = pa.array(RANDOM.random(rows) < 0.2)
    parts = [_numbers(rows), _strings(rows)]
    return pa.StructArray.from_arrays(parts, ["n", "name"], mask=mask)


def _nested(rows: int) -> pa.Array:
    ends = pa.array(np.arange(0, rows * 3 + 1, 3, dtype=np.int32))
    return pa.ListArray.from_arrays(ends, _strings(rows * 3))


GROUPS: Final = {
    "numbers": _numbers,
    "nullable": _nullable,
    "strings": _strings,
    "categories": _categories,
    "texts": _texts,
    "lists": _lists,
    "structs": _structs,
    "nested": _nested,
}


def _table(make: Callable[[int], pa.Array]) -> pa.Table:
    width = max(make(10_000).nbytes // 10_000, 1)
    return pa.table({"c": make(TABLE_BYTES // width + 10_000)})


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("group", GROUPS)
def test_streamed_scan_holds_a_few_units(group: str, version: str, tmp_path: Path) -> None:
    if group == "structs" and version == "2.0":  # it holds no NULL structs
        version = "2.1"
    table = _table(GROUPS[group])
    assert table.nbytes > TABLE_BYTES
    ds = pennon.write_dataset(table, tmp_path, data_storage_version=version)
    ds.take([0])
    rows, most, before = 0, 0, held_bytes()
    for batch in ds.to_batches(batch_size=BATCH_ROWS):
        rows += batch.num_rows
        most = max(most, held_bytes() - before)
    assert rows == len(table)
    assert most < MOST_BYTES


@pytest.mark.parametrize("group", GROUPS)
def test_ended_stream_gives_its_memory_back(group: str, tmp_path: Path) -> None:
    table = _table(GROUPS[group])
    ds = pennon.write_dataset(table, tmp_path)
    before = held_bytes()
    batches = ds.to_batches(batch_size=BATCH_ROWS)
    assert next(batches).num_rows == BATCH_ROWS
    del batches
    assert sum(batch.num_rows for batch in ds.to_batches(batch_size=BATCH_ROWS)) == len(table)
    assert held_bytes() - before < UNIT_BYTES


def test_held_batch_keeps_no_unit(tmp_path: Path) -> None:
    ds = pennon.write_dataset(_table(_strings), tmp_path)
    before = held_bytes()
    held = [batch for n, batch in enumerate(ds.to_batches(batch_size=BATCH_ROWS)) if n % 16 == 0]
    own = sum(batch.nbytes for batch in held)
    assert held_bytes() - before < 3 * own
