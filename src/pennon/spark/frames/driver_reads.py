"""Reads by the driver: results so small that a job would only take longer to start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from pennon.core.units import MIB
from pennon.scan.plan.filter_columns import WidthGuess
from pennon.scan.read.tasks import OPEN_BYTES, ScanTask, bytes_per_row
from pennon.schema.width import row_bytes
from pennon.spark.source.partitions import size_bytes
from pennon.spark.source.scan_task import MAX_BATCH_ROWS, TableScan

MOST_LOCAL_BYTES: Final = 4 * MIB
"""So many bytes of rows go through the driver into Spark's plan."""

MOST_PASSING_ROWS: Final = 10_000
"""So many rows that pass a condition do: Spark takes a few microseconds for each."""

MOST_TESTED_BYTES: Final = 32 * MIB
"""So many bytes are tested here, those that it costs to open a fragment among them: 20 ms of two cores."""


def first_rows(scan: TableScan, tasks: Sequence[ScanTask]) -> pa.Table | None:
    """Return what tasks read, if it is little; None if it is not, in the files or when it is decoded."""
    if sum(map(size_bytes, tasks)) > MOST_LOCAL_BYTES:
        return None
    return _little(scan, scan.read(tasks), None)


def passing_rows(scan: TableScan, tasks: Sequence[ScanTask]) -> pa.Table | None:
    """Return the rows that pass a scan's condition, if few do, and little has to be tested; else None."""
    if not tests_little(scan, tasks):
        return None
    widest = max((bytes_per_row(task.fragment) for task in tasks), default=1)
    fitting = max(min(MAX_BATCH_ROWS, MOST_LOCAL_BYTES // widest), 1)
    bounded = replace(scan, batch_rows=min(scan.batch_rows or fitting, fitting))
    return _little(scan, bounded.read(tasks), MOST_PASSING_ROWS)


def tests_little(scan: TableScan, tasks: Sequence[ScanTask]) -> bool:
    """Return whether a scan has to test so little that the driver does it as fast as a job begins."""
    condition = scan.query.condition
    if condition is None:
        return False
    decoded = row_bytes(condition.inputs.arrow)
    fields = scan.query.snapshot.manifest.schema.fields
    stored = WidthGuess.of(condition.inputs.read.fields, len(fields))
    tested = (task.rows * max(decoded, stored.of_fragment(task.fragment)) for task in tasks)
    return sum(tested) + len(tasks) * OPEN_BYTES <= MOST_TESTED_BYTES


def _little(
    scan: TableScan, batches: Iterable[pa.RecordBatch], most_rows: int | None
) -> pa.Table | None:
    held: list[pa.RecordBatch] = []
    rows, size = 0, 0
    for batch in batches:
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if size > MOST_LOCAL_BYTES or (most_rows is not None and rows > most_rows):
            return None
    return pa.Table.from_batches(held, scan.schema)
