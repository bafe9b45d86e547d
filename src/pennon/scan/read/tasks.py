"""Plan a scan: rows of fragments, cut into units of work.

A *task* is one fragment's share of the scan: a range of its live rows.  Tasks pickle, so Spark can
carry them to its executors.  A *unit* is a piece of a task that threads decode at once: some
megabytes of rows.  Units have nothing to do with the batches that the caller sees, except that a
unit of a streamed scan ends where a batch ends.

Planning does no I/O beyond what it takes to count live rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Final, TypeAlias

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.units import MIB
from pennon.errors import ArgumentError
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.read.fragment_run import FragmentRun
from pennon.scan.snapshot import Key, Snapshot
from pennon.table.fragment import Fragment
from pennon.table.fragments import Fragments

DEFAULT_BATCH_ROWS = 8192
DEFAULT_BATCH_BYTES = 16 * MIB
BATCH_ROWS_VARIABLE = "LANCE_DEFAULT_BATCH_SIZE"
UNIT_BYTES = 8 * MIB
"""Bytes of data files that a unit reads; what they become may be more."""
MAX_DECODED_BYTES = 16 * MIB
"""Bytes of fixed width that a unit may become: a column of one value has no bytes in the file."""
LEAST_UNIT_BYTES = MIB
"""Below this, handing a unit to another thread costs more than it saves."""
OPEN_BYTES = 4 * MIB
"""What reading a fragment in a task of its own costs beyond its bytes, in bytes; Spark's own figure for a file."""
MAX_BATCH_ROWS = 2**32 - 1
KNOWN_TASKS = 1 << 14
"""Of so few fragments the tasks of a scan of all rows are remembered."""
NEAR_ROWS = 64
"""So few rows that are ruled out between others are read with them."""
ALL_TASKS: Final[Key[tuple[ScanTask, ...]]] = Key("all tasks")
LIVE_COUNT: Final[Key[int]] = Key("live count")


@dataclass(frozen=True, slots=True)
class ChosenRows:
    """Live offsets of rows of a fragment, ascending; ``pass_all``: they pass the condition, each of them."""

    offsets: Int64Array = field(compare=False, repr=False)
    pass_all: bool


class _RowRange:
    """A half-open range of rows: what tasks and units have in common."""

    __slots__ = ()
    start: int
    end: int

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class ScanTask(_RowRange):
    """The live rows ``start <= live offset < end`` of one fragment.

    With ``chosen`` these are places in a list of live offsets: the rows that indices leave.
    """

    fragment: Fragment
    start: int
    end: int
    chosen: ChosenRows | None = None


@dataclass(frozen=True, slots=True)
class RunTask(_RowRange):
    """Live rows of a run of fragments: tasks of neighbours that are read as one; see `ScanTask`."""

    fragment: FragmentRun
    start: int
    end: int
    chosen: ChosenRows | None = None


ReadTask: TypeAlias = ScanTask | RunTask


@dataclass(frozen=True, slots=True)
class Unit(_RowRange):
    """The live rows ``[start, end)`` of the task of that number."""

    task: int
    start: int
    end: int


def plan_tasks(
    snapshot: Snapshot,
    fragments: Sequence[Fragment] | None = None,
    offset: int = 0,
    limit: int | None = None,
    with_deleted: bool = False,
) -> Sequence[ScanTask]:
    """Return the tasks of a scan, in fragment order.

    ``offset`` and ``limit`` count live rows of the given fragments (all by default), in order; with
    ``with_deleted`` all rows count.
    """
    if fragments is None and limit is None and not with_deleted:
        if offset or len(snapshot.manifest.fragments) > KNOWN_TASKS:
            return list(_all_tasks(snapshot, offset))
        return snapshot.remember(ALL_TASKS, lambda: tuple(_all_tasks(snapshot, 0)))
    tasks = []
    left = limit
    for fragment in snapshot.manifest.fragments if fragments is None else fragments:
        if with_deleted:
            live = FragmentReader(snapshot, fragment).physical_rows()
        else:
            live = live_row_count(snapshot, fragment)
        start = min(offset, live)
        end = live if left is None else min(live, start + left)
        offset -= start
        if end > start:
            tasks.append(ScanTask(fragment, start, end))
            left = None if left is None else left - (end - start)
        if left is not None and left <= 0:
            break
    return tasks


def _all_tasks(snapshot: Snapshot, offset: int) -> Iterator[ScanTask]:
    """Yield the tasks of a scan of all rows from one on; of fragments without rows nothing is made."""
    fragments = snapshot.manifest.fragments
    for number, live in enumerate(live_row_counts(snapshot)):
        start = min(offset, live)
        offset -= start
        if live > start:
            yield ScanTask(fragments[number], start, live)


def live_row_count(snapshot: Snapshot, fragment: Fragment) -> int:
    """Return the number of live rows of a fragment, from the manifest if it says so.

    Where no row would live, the deletion file is asked: a wrong count would hide living rows.
    """
    live = fragment.num_rows
    if fragment.physical_rows and live is not None and live > 0:
        return live
    return FragmentReader(snapshot, fragment).live_rows().count


def live_row_counts(snapshot: Snapshot) -> list[int]:
    """Return the number of live rows of each fragment; see `live_row_count`."""
    fragments = snapshot.manifest.fragments
    if not isinstance(fragments, Fragments):
        return [live_row_count(snapshot, fragment) for fragment in fragments]
    return [
        live_row_count(snapshot, fragments[number]) if rows is None else rows
        for number, rows in enumerate(fragments.live_rows())
    ]


def count_live_rows(snapshot: Snapshot) -> int:
    """Return the number of live rows of a version, counted once."""
    return snapshot.remember(LIVE_COUNT, lambda: sum(live_row_counts(snapshot)))


def plan_units(
    tasks: Sequence[ReadTask],
    *,
    row_bytes: int = 0,
    widest: int = 0,
    multiple_of: int = 1,
    share: float = 1.0,
    least_units: int = 1,
) -> Iterator[Unit]:
    """Cut tasks into units of about `UNIT_BYTES` of the data files, in order.

    ``share`` is how much of the data files is read.  ``row_bytes`` is what a row takes once it is
    decoded, at least; a unit becomes about `MAX_DECODED_BYTES`.  So does its ``widest`` column, given
    what a row takes there, in a run of fragments, whose values become one array.  Its rows, except for
    the last unit of a task, are a multiple of ``multiple_of``.  There are at least ``least_units``,
    unless they would be very small.
    """
    fair = -(-sum(task.rows for task in tasks) // least_units)
    for number, task in enumerate(tasks):
        stored = max(int(bytes_per_row(task.fragment) * share), 1)
        decoded = max(row_bytes, widest if isinstance(task.fragment, FragmentRun) else 1)
        rows = min(UNIT_BYTES // stored, MAX_DECODED_BYTES // max(decoded, 1))
        smallest = LEAST_UNIT_BYTES // max(stored, row_bytes)
        step = _round_up(max(min(rows, max(fair, smallest)), 1), multiple_of)
        for start in range(task.start, task.end, step):
            yield Unit(number, start, min(start + step, task.end))


def _round_up(value: int, multiple_of: int) -> int:
    return -(-value // multiple_of) * multiple_of


def default_batch_rows(row_width: int) -> int:
    """Return the batch size of scans that name none: pylance's environment variable, else 8192.

    Rows of ``row_width`` bytes that are so wide that 8192 of them would not fit in memory several
    times come in smaller batches, unless the variable says otherwise.
    Raises ArgumentError if the variable holds no number.
    """
    value = os.environ.get(BATCH_ROWS_VARIABLE)
    if value is None:
        return max(min(DEFAULT_BATCH_ROWS, DEFAULT_BATCH_BYTES // max(row_width, 1)), 1)
    if not value.isdecimal():
        message = (
            f"the environment variable {BATCH_ROWS_VARIABLE} must be a number, and is {value!r}"
        )
        raise ArgumentError(message)
    return int(value)


def bytes_per_row(fragment: Fragment | FragmentRun) -> int:
    """Return an estimate from the sizes of the data files, at least 1."""
    if isinstance(fragment, FragmentRun):
        return fragment.bytes_per_row
    size_bytes = sum(file.size_bytes or 0 for file in fragment.files)
    return max(size_bytes // max(fragment.physical_rows or 1, 1), 1)


def check_batch_rows(batch_rows: int) -> int:
    """Return the batch size; raises ArgumentError if it makes no sense."""
    if not 1 <= batch_rows <= MAX_BATCH_ROWS:
        message = f"batch_size must be between 1 and {MAX_BATCH_ROWS}, got {batch_rows}"
        raise ArgumentError(message)
    return batch_rows
