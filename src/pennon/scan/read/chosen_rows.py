"""The rows of a scan's tasks that indices leave: parts of tasks, or rows one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.kernels.places import places
from pennon.encoding.rows import Rows
from pennon.index.row_set import RowSet, Selection
from pennon.scan.deletion_mask import LiveRows
from pennon.scan.read.fragment_reader import live_rows
from pennon.scan.read.tasks import NEAR_ROWS, ChosenRows, ScanTask
from pennon.scan.snapshot import Snapshot

_OFFSET: Final = np.uint64(0xFFFFFFFF)
_OFFSET_BITS: Final = np.uint64(32)
_MOST_AT_ONCE: Final = 1 << 24
"""Rows of all fragments whose offsets are worked out together."""
_FEW_A_RANGE: Final = 64
"""Where more rows than this follow one another, and have to be tested, they are read as a part of a task."""


def rows_of_tasks(
    snapshot: Snapshot, tasks: Sequence[ScanTask], found: Selection
) -> list[ScanTask]:
    """Return what a selection leaves of tasks, in order: parts of them, or rows one by one."""
    firsts = np.array([task.fragment.id for task in tasks], np.uint64) << np.uint64(32)
    lows = places(found.may.lasts, firsts)
    highs = places(found.may.starts, firsts | _OFFSET, behind=True)
    touched = np.flatnonzero(highs > lows).tolist()
    exact = _ExactRows.of(found) if len(touched) > 1 and found.must is found.may else None
    parts: list[ScanTask] = []
    for number in touched:
        task = tasks[number]
        rows = None if exact is None else exact.of_task(task, lows[number], highs[number])
        parts += _parts(snapshot, task, found) if rows is None else (rows,)
    return parts


@dataclass(frozen=True, slots=True, eq=False)
class _ExactRows:
    """All rows of an answer that is exact, as offsets in their fragments; those of range i begin at ``begins[i]``."""

    offsets: Int64Array
    begins: Int64Array

    @classmethod
    def of(cls, found: Selection) -> _ExactRows | None:
        """Return the rows; None if a range has rows of several fragments, or they are very many."""
        starts, lasts = found.may.starts, found.may.lasts
        if (starts >> _OFFSET_BITS != lasts >> _OFFSET_BITS).any():
            return None
        counts = (lasts - starts).astype(np.int64) + 1
        begins = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        rows = int(begins[-1])
        if rows > _MOST_AT_ONCE:
            return None
        first = (starts & _OFFSET).view(np.int64)
        return cls(Rows(first, first + counts, rows).indices(), begins)

    def of_task(self, task: ScanTask, low: int, high: int) -> ScanTask | None:
        """Return those rows of ranges that are a task's; None if its rows are not all that are stored."""
        fragment = task.fragment
        if fragment.deletion_file is not None or task.start or task.end != fragment.physical_rows:
            return None
        offsets = self.offsets[self.begins[low] : self.begins[high]]
        if offsets[-1] >= task.end:
            return None
        return ScanTask(fragment, 0, len(offsets), ChosenRows(offsets, pass_all=True))


def _parts(snapshot: Snapshot, task: ScanTask, found: Selection) -> Iterator[ScanTask]:
    first = np.uint64(task.fragment.id << 32)
    last = first | _OFFSET
    may = found.may.within(first, last)
    if may.starts[0] == first and may.lasts[0] == last:
        yield task
        return
    starts, ends = _live_ranges(live_rows(snapshot, task.fragment), task, may)
    if not len(starts):
        return
    rows = int((ends - starts).sum()) if len(starts) > 1 else int(ends[0] - starts[0])
    passes = found.must is found.may or (
        not found.must.is_empty and Selection(found.must.within(first, last), may).is_exact
    )
    if not passes and rows > _FEW_A_RANGE * len(starts):
        yield from (ScanTask(task.fragment, a, b) for a, b in _near(starts, ends))
        return
    offsets = Rows(starts, ends, rows).indices()
    yield ScanTask(task.fragment, 0, rows, ChosenRows(offsets, passes))


def _live_ranges(live: LiveRows, task: ScanTask, rows: RowSet) -> tuple[Int64Array, Int64Array]:
    """Return the live rows of a task among some of its fragment, as half-open ranges."""
    starts = (rows.starts & _OFFSET).view(np.int64)
    ends = (rows.lasts & _OFFSET).view(np.int64) + 1
    if len(starts) == 1 and not len(live.deleted):
        low, high = max(int(starts[0]), task.start), min(int(ends[0]), task.end)
        found = np.array([low, high] if high > low else [], np.int64)
        return found[:1], found[1:]
    if len(live.deleted):
        starts = live.to_live(np.minimum(starts, live.physical_rows))
        ends = live.to_live(np.minimum(ends, live.physical_rows))
    starts = np.minimum(np.maximum(starts, task.start), task.end)
    ends = np.minimum(np.maximum(ends, task.start), task.end)
    filled = ends > starts
    return (starts, ends) if filled.all() else (starts[filled], ends[filled])


def _near(starts: Int64Array, ends: Int64Array) -> Iterator[tuple[int, int]]:
    """Yield ranges, those together between which few rows lie."""
    if len(starts) == 1:
        yield int(starts[0]), int(ends[0])
        return
    borders = np.flatnonzero(starts[1:] - ends[:-1] > NEAR_ROWS) + 1
    firsts = np.concatenate([[0], borders])
    lasts = np.concatenate([borders, [len(starts)]]) - 1
    yield from zip(starts[firsts].tolist(), ends[lasts].tolist(), strict=True)
