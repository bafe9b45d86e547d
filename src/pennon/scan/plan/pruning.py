"""Pruning: rows that a condition rules out before they are read, by their ids, addresses and statistics.

Row ids and addresses need no look at a file.

The address of a row is its fragment and its offset there, and the id too, unless the table has
stable row ids.  So ``_rowid IN (5, 7)`` leaves two rows of one fragment.  The rows between two values
that the condition names are judged together: it cannot tell them apart.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.units import FragmentId, RowOffset, row_address
from pennon.expr.prune import Bounds, Path, Pruner, Unit, literals_beside
from pennon.expr.tree import Expression
from pennon.scan.plan.page_statistics import prune_pages
from pennon.scan.predicate import SqlPredicate
from pennon.scan.projection import MetaColumn
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.read.tasks import NEAR_ROWS, ScanTask
from pennon.scan.snapshot import Snapshot

MOST_CUTS: Final = 1000
"""Cuts in one fragment; where there are more, values that lie close are not told apart."""

_ADDRESS: Final[Path] = (MetaColumn.ROW_ADDRESS.value,)
_ID: Final[Path] = (MetaColumn.ROW_ID.value,)
_ROWS: Final = frozenset({_ADDRESS, _ID})


def prune_tasks(
    snapshot: Snapshot, tasks: Sequence[ScanTask], predicate: SqlPredicate
) -> Sequence[ScanTask]:
    """Return the parts of tasks in which a row may pass, in order."""
    if predicate.is_never_true:
        return []
    pruner, named = predicate.pruner, _ROWS.intersection(predicate.columns)
    left = _prune_rows(snapshot, tasks, predicate.condition, pruner, named)
    return prune_pages(snapshot, left, pruner, predicate.columns)


def _prune_rows(
    snapshot: Snapshot,
    tasks: Sequence[ScanTask],
    condition: Expression,
    pruner: Pruner,
    named: frozenset[Path],
) -> Sequence[ScanTask]:
    """Return what the row ids and addresses that are ``named`` leave of tasks."""
    if not named:
        return tasks
    if named == {_ADDRESS} or not snapshot.manifest.has_stable_row_ids:
        values = {value for path in named for value in literals_beside(condition, path)}
        cuts = sorted({*values, *(value + 1 for value in values)})
        return [part for task in tasks for part in _Addresses(snapshot, task).parts(pruner, cuts)]
    return [task for task in tasks if pruner.can_match(_stable_ids(snapshot, task))]


@dataclass(frozen=True, slots=True)
class _Addresses:
    """A task whose rows are known by their addresses."""

    snapshot: Snapshot
    task: ScanTask

    def parts(self, pruner: Pruner, cuts: Sequence[int]) -> Iterator[ScanTask]:
        """Yield the parts that may match; between two cuts all rows are alike."""
        fragment = self.task.fragment
        first = row_address(fragment.id, RowOffset(0))
        last = row_address(FragmentId(fragment.id + 1), RowOffset(0)) - 1
        if not pruner.can_match(self._unit(first, last)):
            return
        live = FragmentReader(self.snapshot, fragment).live_rows()
        inside = cuts[bisect_right(cuts, first) : bisect_left(cuts, first + live.physical_rows)]
        inside = inside[:: len(inside) // MOST_CUTS + 1]
        offsets = live.to_live(np.array([cut - first for cut in inside], np.int64))
        start = end = self.task.start
        for low, high in self._stretches(offsets):
            at = live.to_physical(np.array([low, high - 1], np.int64))
            if not pruner.can_match(self._unit(first + int(at[0]), first + int(at[1]))):
                continue
            if low - end > NEAR_ROWS:
                if end > start:
                    yield replace(self.task, start=start, end=end)
                start = low
            elif end == start:
                start = low
            end = high
        if end > start:
            yield replace(self.task, start=start, end=end)

    def _stretches(self, offsets: Int64Array) -> Iterator[tuple[int, int]]:
        """Yield the stretches of the task's rows between the offsets at which it is cut."""
        ends = {self.task.start, self.task.end}
        ends |= {int(at) for at in offsets if self.task.start < at < self.task.end}
        yield from pairwise(sorted(ends))

    def _unit(self, first: int, last: int) -> Unit:
        bounds = _bounds(first, last)
        if self.snapshot.manifest.has_stable_row_ids:
            return {_ADDRESS: bounds}
        return {_ADDRESS: bounds, _ID: bounds}


def _bounds(low: int, high: int) -> Bounds:
    return Bounds(pa.scalar(low, pa.uint64()), pa.scalar(high, pa.uint64()), null_count=0)


def _stable_ids(snapshot: Snapshot, task: ScanTask) -> Unit:
    """Return the bounds of a fragment whose ids are stable: they may be in any order."""
    rows = FragmentReader(snapshot, task.fragment).physical_rows()
    ids = snapshot.row_ids(task.fragment, rows)
    first = row_address(task.fragment.id, RowOffset(0))
    addresses = _bounds(first, first + max(rows - 1, 0))
    if not len(ids):
        return {_ADDRESS: addresses}
    return {_ADDRESS: addresses, _ID: _bounds(int(ids.min()), int(ids.max()))}
