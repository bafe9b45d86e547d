"""A map from old row numbers to new ones: each range of old numbers has a range of new ones, or none.

A row that no range has is gone.  To keep the rows of some fragments and drop all others is such a map, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.errors import FormatError
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

    @classmethod
    def of_order(
        cls, starts: Numbers, lasts: Numbers, ids: Sequence[int], rows: Sequence[int]
    ) -> RowMap:
        """Return where rows went that are now those of fragments ``ids``, of ``rows[i]`` rows, one after another.

        They were the rows of ranges, in that order, which do not overlap.  Raises FormatError if there were
        more or fewer.
        """
        old_ends = np.cumsum(lasts - starts + np.uint64(1), dtype=np.uint64)
        total = int(old_ends[-1]) if len(old_ends) else 0
        if sum(rows) != total:
            message = f"{total} rows of fragments were rewritten as {sum(rows)}"
            raise FormatError(message)
        old_firsts = old_ends - (lasts - starts + np.uint64(1))
        firsts: Numbers = np.cumsum([0, *rows], dtype=np.uint64)[:-1]
        # pieces of rows that follow one another before and after
        cuts: Numbers = np.unique(np.concatenate([old_firsts, firsts]))
        cuts = cuts[cuts < total]
        old = np.searchsorted(old_ends, cuts, side="right")
        new = np.searchsorted(firsts, cuts, side="right") - 1
        first = starts[old] + (cuts - old_firsts[old])
        lengths = np.append(cuts[1:], np.uint64(total)) - cuts
        target = (np.array(ids, np.uint64)[new] << np.uint64(32)) + (cuts - firsts[new])
        return cls(first, first + lengths - np.uint64(1), target)

    @classmethod
    def joined(cls, maps: Iterable[RowMap]) -> RowMap:
        """Return one map of several, whose old numbers do not overlap."""
        each = list(maps)
        none = [np.empty(0, np.uint64)]
        starts = np.concatenate([*none, *(one.starts for one in each)])
        order = np.argsort(starts, kind="stable")
        lasts = np.concatenate([*none, *(one.lasts for one in each)])
        targets = np.concatenate([*none, *(one.targets for one in each)])
        return cls(starts[order], lasts[order], targets[order])

    def then(self, later: RowMap) -> RowMap:
        """Return where rows are after this map, and then another one."""
        ends = self.targets + (self.lasts - self.starts)
        mine, pieces = _meeting(self.targets, ends, later)
        starts = np.maximum(self.targets[mine], later.starts[pieces])
        lasts = np.minimum(ends[mine], later.lasts[pieces])
        back = self.starts[mine] - self.targets[mine]  # as unsigned numbers wrap around
        on = later.targets[pieces] - later.starts[pieces]
        return RowMap(starts + back, lasts + back, starts + on)

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
        mine, pieces = _meeting(old.starts, old.lasts, self)
        starts = np.maximum(old.starts[mine], self.starts[pieces])
        lasts = np.minimum(old.lasts[mine], self.lasts[pieces])
        shifted = self.targets[pieces] - self.starts[pieces]  # as unsigned numbers wrap around
        return RowSet.of_ranges(starts + shifted, lasts + shifted)


def _meeting(starts: Numbers, lasts: Numbers, found: RowMap) -> tuple[Int64Array, Int64Array]:
    """Return each pair of a range and a range of a map that have rows in common."""
    low = np.searchsorted(found.lasts, starts)
    counts = np.maximum(np.searchsorted(found.starts, lasts, side="right") - low, 0)
    mine = np.repeat(np.arange(len(starts)), counts)
    return mine, np.arange(len(mine)) + np.repeat(low - (np.cumsum(counts) - counts), counts)
