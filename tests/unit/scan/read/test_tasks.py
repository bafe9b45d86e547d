"""Units of a scan are cut by bytes read and bytes decoded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.core.units import FieldId, FragmentId
from pennon.io import open_store
from pennon.scan.read.join_tasks import join_tasks
from pennon.scan.read.tasks import (
    LIVE_COUNT,
    MAX_DECODED_BYTES,
    UNIT_BYTES,
    ScanTask,
    count_live_rows,
    plan_tasks,
    plan_units,
)
from pennon.scan.snapshot import Snapshot
from pennon.table.fragment import DataFileRef, Fragment
from pennon.table.versions import read_manifest


def _task(rows: int, size_bytes: int) -> ScanTask:
    ref = DataFileRef("x.lance", (FieldId(0),), (0,), 2, 1, size_bytes)
    return ScanTask(Fragment(FragmentId(0), (ref,), physical_rows=rows), 0, rows)


@pytest.mark.parametrize(
    ("row_bytes", "rows_of_unit"),
    [(0, UNIT_BYTES), (1, UNIT_BYTES), (4096, MAX_DECODED_BYTES // 4096), (1 << 40, 1)],
)
def test_rows_without_bytes_in_the_file(row_bytes: int, rows_of_unit: int) -> None:
    task = _task(1 << 24, 1000)
    first = next(plan_units([task], row_bytes=row_bytes))
    assert first.rows == rows_of_unit
    batches = next(plan_units([task], row_bytes=row_bytes, multiple_of=1000))
    assert batches.rows == -(-rows_of_unit // 1000) * 1000


def test_scan_units_are_cut_by_file_bytes() -> None:
    first = next(plan_units([_task(1 << 20, 64 << 20)], row_bytes=8))
    assert first.rows == UNIT_BYTES // 64


def test_a_share_of_the_files() -> None:
    task = _task(1 << 20, 64 << 20)
    assert next(plan_units([task], share=0.25)).rows == UNIT_BYTES // 16


@pytest.mark.parametrize(
    ("rows", "units"), [(1 << 20, 4), ((1 << 20) - 1, 4), (300_000, 3), (1000, 1)]
)
def test_scan_units_are_enough_for_all_threads_unless_small(rows: int, units: int) -> None:
    task = _task(rows, 8 * rows)
    found = list(plan_units([task], row_bytes=8, multiple_of=8192, least_units=4))
    assert len(found) == units
    assert sum(unit.rows for unit in found) == rows
    assert all(unit.rows % 8192 == 0 for unit in found[:-1])


def test_units_of_a_run_are_cut_by_its_widest_column(tmp_path: Path) -> None:
    """Values of a run of fragments become one array."""
    rows = pa.table({"n": np.arange(3000)})
    pennon.write_dataset(rows, tmp_path / "t", max_rows_per_file=1000)
    store = open_store(tmp_path / "t")
    snapshot = Snapshot(store, read_manifest(store))
    (run,) = join_tasks(snapshot, tuple(plan_tasks(snapshot)), 1.0)
    widest = MAX_DECODED_BYTES // 700
    assert [unit.rows for unit in plan_units([run], widest=widest)] == [700] * 4 + [200]
    apart = list(plan_units(plan_tasks(snapshot), widest=widest))
    assert [unit.rows for unit in apart] == [1000] * 3


def test_live_rows_are_counted_once(tmp_path: Path) -> None:
    table = pennon.write_dataset(
        pa.table({"n": np.arange(100)}), tmp_path / "t", max_rows_per_file=7
    )
    table.delete("n % 3 = 0")
    assert table.count_rows() == 66
    snapshot = table.snapshot
    assert snapshot.recall(LIVE_COUNT) == count_live_rows(snapshot) == 66
    assert (
        pennon.write_dataset(pa.table({"n": [1]}), tmp_path / "t", mode="append").count_rows() == 67
    )
