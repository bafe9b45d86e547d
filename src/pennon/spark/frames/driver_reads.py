"""Reads by the driver: results so small that a job would only take longer to start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

import pyarrow as pa

from pennon.core.units import MIB
from pennon.scan.plan.filter_columns import WidthGuess
from pennon.scan.projection import Projection
from pennon.scan.read.tasks import OPEN_BYTES, ScanTask, bytes_per_row
from pennon.schema.width import has_width, row_bytes
from pennon.spark.frames.partial_aggregates import AggregateTasks
from pennon.spark.frames.top_rows import TopRows
from pennon.spark.source.partitions import size_bytes
from pennon.spark.source.scan_task import MAX_BATCH_ROWS, TableScan

MOST_LOCAL_BYTES: Final = 4 * MIB
"""So many bytes of rows go through the driver into Spark's plan."""

MOST_PASSING_ROWS: Final = 10_000
"""So many rows that pass a condition do: Spark takes a few microseconds for each."""

MOST_TESTED_BYTES: Final = 32 * MIB
"""So many bytes are tested here, those that it costs to open a fragment among them: 20 ms of two cores."""

MOST_GROUPS: Final = 5_000
"""The driver hands Spark at most so many partial aggregates with its plan."""

_GROUPING_BYTES: Final = 8
"""Making one key or one partial aggregate of a row takes as long as testing so many bytes."""

_GAUGED_ROWS: Final = 16_384
"""The driver counts the groups of so many rows first, and goes on if they are few."""


def first_rows(scan: TableScan, tasks: Sequence[ScanTask]) -> pa.Table | None:
    """Return what tasks read, if it is little; None if it is not, in the files or when it is decoded."""
    if sum(map(size_bytes, tasks)) > MOST_LOCAL_BYTES:
        return None
    return _little(scan.schema, scan.read(tasks), None)


def passing_rows(scan: TableScan, tasks: Sequence[ScanTask]) -> pa.Table | None:
    """Return the rows that pass a scan's condition, if few do, and little has to be tested; else None."""
    if not tests_little(scan, tasks):
        return None
    widest = max((bytes_per_row(task.fragment) for task in tasks), default=1)
    fitting = max(min(MAX_BATCH_ROWS, MOST_LOCAL_BYTES // widest), 1)
    bounded = replace(scan, batch_rows=min(scan.batch_rows or fitting, fitting))
    return _little(scan.schema, bounded.read(tasks), MOST_PASSING_ROWS)


def tests_little(scan: TableScan, tasks: Sequence[ScanTask]) -> bool:
    """Return whether a scan has to test so little that the driver does it as fast as a job begins."""
    condition = scan.query.condition
    if condition is None:
        return False
    return _are_few_bytes(scan, tasks, condition.inputs.arrow, [condition.inputs])


def top_rows(top: TopRows, scan: TableScan, tasks: Sequence[ScanTask]) -> pa.Table | None:
    """Return rows among which the first ones in an order are, if little has to be read; else None."""
    if not _reads_little(scan, tasks):
        return None
    try:
        return _little(scan.schema, top.of(_bounded(scan.read(tasks))), MOST_PASSING_ROWS)
    except _TooMuchError:
        return None


def groups_little(work: AggregateTasks, tasks: Sequence[ScanTask]) -> bool:
    """Return whether partial aggregates are of so little that it is read sooner here, or by one task, than by several."""
    columns = len(work.partials.keys) + len(work.partials.parts)
    return _reads_little(work.scan, tasks, columns * _GROUPING_BYTES)


def groups(work: AggregateTasks, tasks: Sequence[ScanTask]) -> pa.Table | None:
    """Return the partial aggregates of what tasks read, if they are few; else None.

    A number that leaves its type is an error of the query when it runs, not here.
    """
    try:
        return _few_groups(work, tasks)
    except (_TooMuchError, OverflowError):
        return None


def _few_groups(work: AggregateTasks, tasks: Sequence[ScanTask]) -> pa.Table | None:
    partials = work.partials
    if not partials.keys:
        is_known = all(has_width(field.type) for field in work.scan.schema)
        return pa.Table.from_batches(work.of(tasks), partials.schema) if is_known else None
    batches = _bounded(work.scan.read(tasks))
    head = list(_first(batches, _GAUGED_ROWS))
    if sum(batch.num_rows for batch in partials.of(head)) > MOST_GROUPS // 2:
        return None
    return _little(partials.schema, partials.of(chain(head, batches)), MOST_GROUPS)


class _TooMuchError(Exception):
    """Values turned out to be larger than the files tell."""


def _bounded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches until they have too many bytes for the driver.  Raises _TooMuchError then."""
    size = 0
    for batch in batches:
        size += batch.nbytes
        if size > MOST_TESTED_BYTES:
            raise _TooMuchError
        yield batch


def _first(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the first batches, until they have so many rows."""
    for batch in batches:
        yield batch
        rows -= batch.num_rows
        if rows <= 0:
            return


def _reads_little(scan: TableScan, tasks: Sequence[ScanTask], more: int = 0) -> bool:
    """Return whether a scan reads so little; ``more``: what is done with a row takes as long as testing so many bytes."""
    projections = [scan.query.scan.projection, *scan.query.inputs]
    return _are_few_bytes(scan, tasks, scan.read_columns, projections, more)


def _are_few_bytes(
    scan: TableScan,
    tasks: Sequence[ScanTask],
    columns: pa.Schema,
    projections: Sequence[Projection],
    more: int = 0,
) -> bool:
    """Return whether columns of tasks are so few bytes that the driver reads them as fast as a job begins."""
    read = {field.id: field for each in projections for field in each.read.fields}
    fields = scan.query.snapshot.manifest.schema.fields
    stored = WidthGuess.of([*read.values()], len(fields))
    decoded = row_bytes(columns)
    sizes = (task.rows * (max(decoded, stored.of_fragment(task.fragment)) + more) for task in tasks)
    return sum(sizes) + len(tasks) * OPEN_BYTES <= MOST_TESTED_BYTES


def _little(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], most_rows: int | None
) -> pa.Table | None:
    held: list[pa.RecordBatch] = []
    rows, size = 0, 0
    for batch in batches:
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if size > MOST_LOCAL_BYTES or (most_rows is not None and rows > most_rows):
            return None
    return pa.Table.from_batches(held, schema)
