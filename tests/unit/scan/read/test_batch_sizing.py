"""Rows decoded at once: by the decoded size of rows, and enough for the threads."""

from __future__ import annotations

from itertools import islice

import pyarrow as pa
import pytest

from pennon.core.units import FieldId, FragmentId
from pennon.scan.read import batch_sizing as sizer
from pennon.scan.read.batch_sizing import FIRST_GROWTH, UNIT_BYTES, BatchSizer
from pennon.scan.read.tasks import DEFAULT_BATCH_BYTES, ScanTask, Unit
from pennon.table.fragment import DataFileRef, Fragment

TEXT = pa.schema([("t", pa.string())])
NUMBERS = pa.schema([("n", pa.int64())])
ROWS = 1 << 24
BATCH = 8192


@pytest.fixture(autouse=True)
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pennon.scan.read.batch_sizing.processors", lambda: 2)


def task(stored: int, rows: int = ROWS) -> ScanTask:
    """Return a task whose rows take so many bytes in the file."""
    ref = DataFileRef("x.lance", (FieldId(0),), (0,), 2, 1, stored * rows)
    return ScanTask(Fragment(FragmentId(0), (ref,), physical_rows=rows), 0, rows)


def units(each: BatchSizer, one: ScanTask, *, may_cut: bool = True) -> list[Unit]:
    return [unit for unit, _ in each.units([one], BATCH, may_cut=may_cut)]


def _batches(rows: int) -> int:
    """Return a number of rows in whole batches."""
    return -(-rows // BATCH) * BATCH


def decoded(row_bytes: int) -> list[list[pa.Array]]:
    return [[pa.array([b"x" * row_bytes] * 100, pa.binary(row_bytes))]]


def test_rows_of_one_width_need_no_learning() -> None:
    found = units(BatchSizer(NUMBERS, 1.0, is_remote=False), task(100))
    assert {unit.rows for unit in found} == {UNIT_BYTES // 8}


def test_batch_sizes_follow_decoded_bytes_of_earlier_units() -> None:
    mine, one = BatchSizer(TEXT, 1.0, is_remote=False), task(16)
    planned = mine.units([one], BATCH, may_cut=True)
    first = [unit.rows for unit, _ in islice(planned, 2)]
    assert first == [_batches(UNIT_BYTES // (16 * FIRST_GROWTH))] * 2
    mine.learn(one.fragment, decoded(64), 100)
    unit, cost = next(planned)
    assert (unit.rows, cost) == (_batches(UNIT_BYTES // 64), 64 * _batches(UNIT_BYTES // 64))
    mine.learn(one.fragment, decoded(1024), 100)
    unit, cost = next(planned)
    assert (unit.rows, cost) == (BATCH, 1024 * BATCH)


def test_batch_sizing_learns_from_another_fragment() -> None:
    mine = BatchSizer(TEXT, 1.0, is_remote=False)
    mine.learn(task(16).fragment, decoded(64), 100)
    assert mine.row_bytes(task(20_000).fragment) == 80_000


def test_batch_sizes_of_wide_rows_are_reduced_if_allowed() -> None:
    mine, one = BatchSizer(TEXT, 1.0, is_remote=False), task(20_000)
    mine.learn(one.fragment, decoded(20_000), 100)
    assert {unit.rows for unit in units(mine, one)[:-1]} == {DEFAULT_BATCH_BYTES // 20_000}
    assert {unit.rows for unit in units(mine, one, may_cut=False)} == {BATCH}


def test_scan_units_are_whole_batches_and_cover_all_rows() -> None:
    found = units(BatchSizer(TEXT, 1.0, is_remote=False), task(30, rows=1_000_001))
    assert all(unit.rows % BATCH == 0 for unit in found[:-1])
    assert [unit.start for unit in found[1:]] == [unit.end for unit in found[:-1]]
    assert found[-1].end == 1_000_001


def test_small_tables_are_shared_by_the_processors() -> None:
    assert len(units(BatchSizer(NUMBERS, 1.0, is_remote=False), task(8, rows=200_000))) == 2
    assert len(units(BatchSizer(NUMBERS, 1.0, is_remote=False), task(8, rows=50_000))) == 1


def test_processors_share_no_batch() -> None:
    mine = BatchSizer(TEXT, 1.0, is_remote=False)
    assert len(units(mine, task(100, rows=BATCH))) == 1
    assert len(units(mine, task(9000, rows=BATCH))) > 2


def test_batch_sizes_of_remote_stores_are_larger_but_bounded() -> None:
    mine, one = BatchSizer(NUMBERS, 1.0, is_remote=True), task(4)
    assert units(mine, one)[0].rows == sizer.REQUEST_BYTES // 4
    assert units(mine, task(1))[0].rows == sizer.FAR_UNIT_BYTES // 8


def test_a_share_of_the_files() -> None:
    assert BatchSizer(TEXT, 0.25, is_remote=False).row_bytes(task(64).fragment) == 16 * FIRST_GROWTH
