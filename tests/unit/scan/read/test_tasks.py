"""Units of a scan are cut by bytes read and bytes decoded."""

from __future__ import annotations

import pytest

from pennon.core.units import FieldId, FragmentId
from pennon.scan.read.tasks import MAX_DECODED_BYTES, UNIT_BYTES, ScanTask, plan_units
from pennon.table.fragment import DataFileRef, Fragment


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
