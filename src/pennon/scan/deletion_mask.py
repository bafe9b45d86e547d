"""The deletion mask of a fragment: which rows are alive, and the three ways to number them.

=================  ===============================================================================
physical offset    counts all rows of the data files (`RowOffset`)
live offset        counts the rows that are not deleted, inside one fragment
dataset offset     counts the live rows of the whole table, fragment after fragment
=================  ===============================================================================

With physical rows 0..5 and rows 1 and 4 deleted, the live offsets 0, 1, 2, 3 are the physical
offsets 0, 2, 3, 5.  Live row k lies at ``k + d`` where d deleted rows come before it.  The i-th
deleted row D[i] has ``D[i] - i`` live rows before it, so d is the count of entries of ``D[i] - i``
that are <= k: one binary search.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.memory import allocate
from pennon.encoding.rows import Rows
from pennon.errors import FormatError

NONE_DELETED: Int64Array = np.empty(0, np.int64)

FEW_ROWS = 4
"""So few rows are looked for one by one: all numbers of deleted rows need not be changed for them."""
MIN_ROWS_PER_RANGE = 64
"""Below this many rows a range, reading all and dropping the deleted rows is cheaper."""


@dataclass(frozen=True, slots=True, eq=False)
class LiveRows:
    """The rows of a fragment of ``physical_rows`` rows without the ``deleted`` ones.

    ``deleted`` holds physical offsets, sorted and distinct.
    """

    physical_rows: int
    deleted: Int64Array

    @classmethod
    def of(cls, physical_rows: int, deleted: Int64Array = NONE_DELETED) -> LiveRows:
        """Check the deleted offsets; raises FormatError if one is outside the fragment."""
        if len(deleted) and not 0 <= int(deleted[0]) <= int(deleted[-1]) < physical_rows:
            message = (
                f"deleted rows {int(deleted[0])}..{int(deleted[-1])} leave a fragment of "
                f"{physical_rows} rows"
            )
            raise FormatError(message)
        return cls(physical_rows, deleted)

    @property
    def count(self) -> int:
        """Return how many rows are alive."""
        return self.physical_rows - len(self.deleted)

    def to_physical(self, live: Int64Array) -> Int64Array:
        """Return the physical offsets of live offsets, which must be in ``[0, count)``."""
        if not len(self.deleted):
            return live
        if len(live) <= FEW_ROWS:
            return np.array([each + self._deleted_before(each) for each in live.tolist()], np.int64)
        before = self.deleted - np.arange(len(self.deleted))
        return live + np.searchsorted(before, live, side="right")

    def _deleted_before(self, live: int) -> int:
        """Return how many deleted rows lie before a live one."""
        deleted = self.deleted
        return bisect_right(range(len(deleted)), live, key=lambda at: int(deleted[at]) - at)

    def to_live(self, physical: Int64Array) -> Int64Array:
        """Return the live offsets of physical offsets of live rows."""
        if not len(self.deleted):
            return physical
        return physical - np.searchsorted(self.deleted, physical)

    def is_deleted(self, physical: Int64Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Tell for each physical offset whether that row is deleted."""
        if not len(self.deleted):
            return np.zeros(len(physical), np.bool_)
        at = np.minimum(np.searchsorted(self.deleted, physical), len(self.deleted) - 1)
        found: np.ndarray[tuple[int], np.dtype[np.bool_]] = self.deleted[at] == physical
        return found

    def between(self, start: int, end: int) -> LiveSlice:
        """Return the live rows ``start <= live offset < end`` as physical ranges."""
        if end <= start:
            return LiveSlice(Rows.between(0, 0), NONE_DELETED)
        if not len(self.deleted):
            return LiveSlice(Rows.between(start, end), NONE_DELETED)
        bounds = self.to_physical(np.array([start, end - 1], np.int64))
        first, last = int(bounds[0]), int(bounds[1])
        low, high = np.searchsorted(self.deleted, [first, last])
        holes = self.deleted[low:high]
        return LiveSlice(Rows.between(first, last + 1), holes)


@dataclass(frozen=True, slots=True, eq=False)
class LiveSlice:
    """A stretch of physical rows (one range) and the ``holes`` of deleted rows in it."""

    stretch: Rows
    holes: Int64Array

    @property
    def count(self) -> int:
        """Return how many live rows the stretch holds."""
        return self.stretch.count - len(self.holes)

    @property
    def start(self) -> int:
        """Return the first physical offset."""
        return int(self.stretch.starts[0])

    @property
    def is_sparse(self) -> bool:
        """Tell whether the live rows come in so short ranges that all should be read."""
        return (len(self.holes) + 1) * MIN_ROWS_PER_RANGE > self.count

    def ranges(self) -> Rows:
        """Return the live rows as ranges, holes cut out."""
        if self.stretch.count and not len(self.holes):
            return self.stretch
        starts = np.concatenate([self.stretch.starts, self.holes + 1])
        ends = np.concatenate([self.holes, self.stretch.ends])
        full = ends > starts
        return Rows.ranges(starts[full], ends[full])

    def physical(self) -> Int64Array:
        """Return the physical offset of each live row."""
        if not len(self.holes):
            return self.stretch.indices()
        return np.flatnonzero(self.mask()).astype(np.int64) + self.start

    def chosen(self, numbers: Int64Array) -> Int64Array:
        """Return the physical offsets of the live rows of these numbers, which may be the same array."""
        if len(self.holes):
            return self.physical()[numbers]
        return moved(numbers, self.start)

    def mask(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return for each row of the stretch whether it is alive."""
        alive = np.ones(self.stretch.count, np.bool_)
        alive[self.holes - self.start] = False
        return alive


def moved(numbers: Int64Array, by: int) -> Int64Array:
    """Return all numbers plus ``by``; the array itself if that is 0."""
    if not by:
        return numbers
    found: Int64Array = allocate(len(numbers), np.int64)
    return np.add(numbers, by, out=found)
