"""Where rows that an index names are now: each range of old numbers has a range of new ones, or none.

A row that no range has is gone.  To keep the rows of some fragments and drop all others is such a map, too.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pennon.core.fast_dataclass import dataclass
from pennon.index.row_set import NONE, Numbers, RowSet


@dataclass(frozen=True, slots=True, eq=False)
class RowMap:
    """Rows ``starts[i]`` to ``lasts[i]`` of the old numbers, ascending, are those from ``targets[i]`` on."""

    starts: Numbers
    lasts: Numbers
    targets: Numbers

    @classmethod
    def keeping(cls, rows: RowSet) -> RowMap:
        """Return the map that leaves some rows where they are, and drops all others."""
        return cls(rows.starts, rows.lasts, rows.starts)

    def numbers(self, old: Numbers) -> tuple[Numbers, npt.NDArray[np.bool_]]:
        """Return the new numbers of rows that are there yet, and which those are."""
        if not len(self.starts):
            return old[:0], np.zeros(len(old), np.bool_)
        at = np.searchsorted(self.starts, old, side="right")
        at = np.maximum(at, 1) - 1
        there = (old >= self.starts[at]) & (old <= self.lasts[at])
        at = at[there]
        return old[there] - self.starts[at] + self.targets[at], there

    def rows(self, old: RowSet) -> RowSet:
        """Return the new numbers of a set of rows."""
        if old.is_empty or not len(self.starts):
            return NONE
        # the ranges of the map that meet each range of the set
        low = np.searchsorted(self.lasts, old.starts)
        counts = np.searchsorted(self.starts, old.lasts, side="right") - low
        mine = np.repeat(np.arange(len(old.starts)), counts)
        pieces = np.arange(len(mine)) + np.repeat(low - (np.cumsum(counts) - counts), counts)
        starts = np.maximum(old.starts[mine], self.starts[pieces])
        lasts = np.minimum(old.lasts[mine], self.lasts[pieces])
        shifted = self.targets[pieces] - self.starts[pieces]  # as unsigned numbers wrap around
        return RowSet.of_ranges(starts + shifted, lasts + shifted)
