"""Sets of rows, as sorted ranges of row addresses or row ids.

A set is two arrays of equal length: range number ``i`` has the numbers ``starts[i]`` to ``lasts[i]``, both
included, and no two ranges touch.  So one row, a zone of 8192 and everything but three rows cost the same,
and a complement is as cheap as the set.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.kernels.places import place_of_uint64
from pennon.core.runs import run_starts
from pennon.index.kernels.rows.row_ranges import (
    are_in_bits,
    are_in_ranges,
    bits_of,
    common_ranges,
    count_common,
    ranges_of,
    united_ranges,
)

Numbers: TypeAlias = npt.NDArray[np.uint64]

_GREATEST = np.uint64((1 << 64) - 1)
_ONE = np.uint64(1)
_RANGES_A_BLOCK = 128
"""Ranges of 65,536 numbers that take a quarter of the memory that a bit for each number takes."""


@dataclass(frozen=True, slots=True, eq=False)
class RowSet:
    """A set of numbers of 64 bits."""

    starts: Numbers
    lasts: Numbers

    @classmethod
    def of(cls, numbers: Numbers) -> RowSet:
        """Return the set of some numbers, in any order, any of them more than once."""
        found = ranges_of(numbers)
        return cls.of_sorted(np.sort(numbers)) if found is None else cls(*found)

    @classmethod
    def of_sorted(cls, numbers: Numbers) -> RowSet:
        """Return the set of numbers that ascend.  Raises ValueError if they do not."""
        found = ranges_of(numbers)
        if found is None:
            message = "the numbers of a set of rows do not ascend"
            raise ValueError(message)
        return cls(*found)

    @classmethod
    def of_ranges(cls, starts: Numbers, lasts: Numbers) -> RowSet:
        """Return the union of ranges, in any order, that may overlap."""
        if len(starts) < 2:
            return cls(starts, lasts)
        if (starts[1:] < starts[:-1]).any():
            order = np.argsort(starts, kind="stable")
            starts, lasts = starts[order], lasts[order]
        return cls(*united_ranges(starts, lasts, NONE.starts, NONE.lasts))

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing in it."""
        return not len(self.starts)

    @property
    def is_all(self) -> bool:
        """Return whether every number is in it."""
        return len(self.starts) == 1 and self.starts[0] == 0 and self.lasts[0] == _GREATEST

    def numbers(self) -> Numbers:
        """Return all that is in it, ascending."""
        counts = (self.lasts - self.starts).astype(np.int64) + 1
        before = np.cumsum(counts) - counts
        shifts = self.starts - before.astype(np.uint64)  # as unsigned numbers wrap around
        return np.arange(int(counts.sum()), dtype=np.uint64) + np.repeat(shifts, counts)

    @property
    def is_without_end(self) -> bool:
        """Return whether the greatest number is in it, as it is in all but some numbers."""
        return not self.is_empty and bool(self.lasts[-1] == _GREATEST)

    def union(self, *others: RowSet) -> RowSet:
        """Return what is in this set or another one."""
        sets = [each for each in (self, *others) if not each.is_empty]
        if len(sets) < 2:
            return sets[0] if sets else NONE
        if len(sets) == 2:
            a, b = sets
            return RowSet(*united_ranges(a.starts, a.lasts, b.starts, b.lasts))
        starts = np.concatenate([each.starts for each in sets])
        return RowSet.of_ranges(starts, np.concatenate([each.lasts for each in sets]))

    def intersection(self, other: RowSet) -> RowSet:
        """Return what is in both sets."""
        if not len(self.starts) or not len(other.starts):
            return NONE
        if _is_within(self, other):
            return self
        if _is_within(other, self):
            return other
        return RowSet(*common_ranges(self.starts, self.lasts, other.starts, other.lasts))

    def count_common(self, other: RowSet) -> int:
        """Return how many numbers are in both sets; at most one of the sets is unbounded."""
        return count_common(self.starts, self.lasts, other.starts, other.lasts)

    def within(self, first: np.uint64, last: np.uint64) -> RowSet:
        """Return what is in the set from one number to another."""
        low, high = (
            place_of_uint64(self.lasts, first),
            place_of_uint64(self.starts, last, behind=True),
        )
        starts, lasts = self.starts[low:high], self.lasts[low:high]
        if len(starts) and starts[0] < first:
            starts = np.concatenate([[first], starts[1:]])
        if len(lasts) and lasts[-1] > last:
            lasts = np.concatenate([lasts[:-1], [last]])
        return RowSet(starts, lasts)

    def complement(self) -> RowSet:
        """Return all numbers that are not in it."""
        if self.is_empty:
            return ALL
        starts = np.concatenate([np.zeros(1, np.uint64), self.lasts[:-1] + _ONE])
        lasts = self.starts - _ONE
        if self.starts[0] == 0:
            starts, lasts = starts[1:], lasts[1:]
        if self.lasts[-1] != _GREATEST:
            starts = np.append(starts, self.lasts[-1] + _ONE)
            lasts = np.append(lasts, _GREATEST)
        return RowSet(starts, lasts)

    def contains(self, numbers: Numbers) -> npt.NDArray[np.bool_]:
        """Return for each number whether it is in the set."""
        return are_in_ranges(self.starts, self.lasts, numbers)


@dataclass(frozen=True, slots=True, eq=False)
class RowMask:
    """A set that is asked often which numbers it has: a bit for each, where its ranges are many and close."""

    rows: RowSet
    bits: tuple[Numbers, Numbers] | None

    @classmethod
    def of(cls, rows: RowSet) -> RowMask:
        """Return the mask of a set; it takes no more memory than four sets."""
        most = len(rows.starts) // _RANGES_A_BLOCK
        return cls(rows, bits_of(rows.starts, rows.lasts, most) if most else None)

    def contains(self, numbers: Numbers) -> npt.NDArray[np.bool_]:
        """Return for each number whether it is in the set."""
        return (
            self.rows.contains(numbers) if self.bits is None else are_in_bits(*self.bits, numbers)
        )


NONE = RowSet(np.empty(0, np.uint64), np.empty(0, np.uint64))
"""The set of nothing."""
ALL = RowSet(np.zeros(1, np.uint64), np.full(1, _GREATEST, np.uint64))
"""The set of every number."""


def _is_within(rows: RowSet, whole: RowSet) -> bool:
    """Return whether a set that is not empty lies in another one that is a single range."""
    return len(whole.starts) == 1 and bool(
        whole.starts[0] <= rows.starts[0] and rows.lasts[-1] <= whole.lasts[0]
    )


def ascending(rows: Numbers, borders: Int64Array) -> tuple[Numbers, Int64Array]:
    """Return the rows of sets, and their borders, with those of each set in order, each once."""
    owners = np.repeat(np.arange(len(borders) - 1), np.diff(borders))
    if not ((owners[1:] != owners[:-1]) | (rows[1:] >= rows[:-1])).all():
        rows = rows[np.lexsort((rows, owners))]
    is_new = run_starts(owners, rows)
    if is_new.all():
        return rows, borders
    counts = np.bincount(owners[is_new], minlength=len(borders) - 1)
    return rows[is_new], np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


def of_fragments(fragment_ids: Iterable[int]) -> RowSet:
    """Return the addresses of all rows of fragments."""
    numbers = np.array(sorted(fragment_ids), np.uint64)
    starts = numbers << np.uint64(32)
    return RowSet.of_ranges(starts, starts | np.uint64(0xFFFFFFFF))


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The answer of an index: ``must`` are certain matches, ``may`` are possible matches.

    A row that may and must not be is one to test.  Of an exact answer both sets are one.
    """

    must: RowSet
    may: RowSet

    @classmethod
    def exact(cls, rows: RowSet) -> Selection:
        """Return the answer that says of every row whether the condition is true."""
        return cls(rows, rows)

    @classmethod
    def superset(cls, rows: RowSet) -> Selection:
        """Return the answer that rules out all other rows, and is sure of none."""
        return cls(NONE, rows)

    @property
    def is_exact(self) -> bool:
        """Return whether no row has to be tested."""
        return self.must is self.may or (
            len(self.must.starts) == len(self.may.starts)
            and bool((self.must.starts == self.may.starts).all())
            and bool((self.must.lasts == self.may.lasts).all())
        )

    def and_(self, other: Selection) -> Selection:
        """Return what is known where both conditions have to be true."""
        if self.is_exact and other.is_exact:
            return Selection.exact(self.may.intersection(other.may))
        return Selection(self.must.intersection(other.must), self.may.intersection(other.may))

    def within(self, rows: RowSet) -> Selection:
        """Return what is known of some rows; no others can be meant."""
        may = self.may.intersection(rows)
        if self.must is self.may:
            return Selection(may, may)
        return Selection(self.must if self.must.is_empty else self.must.intersection(rows), may)

    def or_(self, other: Selection) -> Selection:
        """Return what is known where one condition has to be true."""
        if self.is_exact and other.is_exact:
            return Selection.exact(self.may.union(other.may))
        return Selection(self.must.union(other.must), self.may.union(other.may))


UNKNOWN = Selection(NONE, ALL)
"""What is known where no index was asked."""
