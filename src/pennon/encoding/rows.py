"""The rows (or list items) that a reader is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.errors import FormatError


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Sorted, disjoint, half-open ranges ``[starts[i], ends[i])`` of rows; empty ranges allowed.

    One shape serves a scan (one range), a take (ranges of one row each) and the items of the lists
    that a take chose (ranges of many lengths).  Order and duplicates are the business of the outer
    layers: they ask for sorted, distinct rows and permute the result.
    """

    starts: Int64Array
    ends: Int64Array
    count: int

    @classmethod
    def between(cls, start: int, end: int) -> Rows:
        """Return the rows ``start <= row < end``."""
        return cls(np.array([start], np.int64), np.array([end], np.int64), end - start)

    @classmethod
    def at(cls, indices: Int64Array) -> Rows:
        """Return single rows; ``indices`` must be sorted and distinct."""
        return cls(indices, indices + 1, len(indices))

    @classmethod
    def ranges(cls, starts: Int64Array, ends: Int64Array) -> Rows:
        """Return the rows of all given ranges, which must be sorted and disjoint."""
        return cls(starts, ends, int((ends - starts).sum()))

    @property
    def is_contiguous(self) -> bool:
        """Tell whether this is one range."""
        return len(self.starts) == 1

    @property
    def end(self) -> int:
        """Return the row after the last one asked for (0 if there is none at all)."""
        return int(self.ends[-1]) if len(self.ends) else 0

    def indices(self) -> Int64Array:
        """Return every single row."""
        if self.is_contiguous:
            return np.arange(self.starts[0], self.ends[0], dtype=np.int64)
        sizes = self.ends - self.starts
        first = np.cumsum(sizes) - sizes
        shifts: Int64Array = np.repeat(self.starts - first, sizes)
        return np.arange(self.count, dtype=np.int64) + shifts

    def scaled(self, factor: int) -> Rows:
        """Return the items of these rows, where each row has ``factor`` items.

        Raises FormatError if the numbers leave 63 bits (the factor may come from a file).
        """
        if self.end * factor >= 1 << 62:
            message = f"{self.end} rows of {factor} items are more than any file holds"
            raise FormatError(message)
        return Rows(self.starts * factor, self.ends * factor, self.count * factor)

    def clip(self, start: int, end: int) -> Rows:
        """Return the rows among these that lie in ``[start, end)``, counted from ``start``.

        This is how a column's rows become a page's rows.
        """
        if self.is_contiguous:
            first = max(int(self.starts[0]), start)
            last = max(min(int(self.ends[0]), end), first)
            return Rows.between(first - start, last - start)
        low = int(np.searchsorted(self.ends, start, side="right"))
        high = int(np.searchsorted(self.starts, end, side="left"))
        high = max(high, low)
        starts = np.maximum(self.starts[low:high], start) - start
        ends = np.minimum(self.ends[low:high], end) - start
        return Rows.ranges(starts, ends)

    def window(self, first: int, end: int) -> Rows:
        """Return the rows number ``first`` to ``end`` among these."""
        ends = np.cumsum(self.ends - self.starts)
        before = ends - (self.ends - self.starts)
        touched = (ends > first) & (before < end)
        starts: Int64Array = self.starts[touched] + np.maximum(first - before[touched], 0)
        stops: Int64Array = self.ends[touched] - np.maximum(ends[touched] - end, 0)
        return Rows.ranges(starts, stops)

    def split(self, borders: Int64Array) -> Iterator[tuple[int, Rows]]:
        """Yield each part between two borders that holds rows, counted from its own begin.

        ``borders`` rise from 0 and reach to the last row.
        """
        if len(borders) == 2 or not len(self.starts):
            if self.count:
                yield 0, self
            return
        low = max(int(borders.searchsorted(self.starts[0], side="right")) - 1, 0)
        high = int(borders.searchsorted(self.end, side="left"))
        if self.is_contiguous:
            start, end = int(self.starts[0]), int(self.ends[0])
            for number in range(low, high):
                begin = int(borders[number])
                first, last = max(start, begin), min(end, int(borders[number + 1]))
                if first < last:
                    yield number, Rows.between(first - begin, last - begin)
            return
        firsts = self.ends.searchsorted(borders[low:high], side="right").tolist()
        lasts = self.starts.searchsorted(borders[low + 1 : high + 1], side="left").tolist()
        filled = [0, *np.cumsum(self.ends - self.starts).tolist()]
        for number, first, last in zip(range(low, high), firsts, lasts, strict=True):
            if first >= last:
                continue
            begin, end = int(borders[number]), int(borders[number + 1])
            starts, ends = self.starts[first:last] - begin, self.ends[first:last] - begin
            before, behind = max(-int(starts[0]), 0), max(int(ends[-1]) - (end - begin), 0)
            starts[0] += before
            ends[-1] -= behind
            count = filled[last] - filled[first] - before - behind
            if count:
                yield number, Rows(starts, ends, count)


@dataclass(frozen=True, slots=True, eq=False)
class FileRows:
    """Rows of several files: the ranges of file f are ``starts[cuts[f]:cuts[f + 1]]`` and ``ends``, sorted and disjoint."""

    cuts: Int64Array
    starts: Int64Array
    ends: Int64Array
    count: int

    @classmethod
    def at(cls, indices: Sequence[Int64Array]) -> FileRows:
        """Return single rows of each file; those of one file must be sorted and distinct."""
        starts = np.concatenate(indices)
        cuts = np.cumsum([0, *map(len, indices)], dtype=np.int64)
        return cls(cuts, starts, starts + 1, len(starts))

    def last_ends(self) -> list[int]:
        """Return where the last range of each file ends; none is without any."""
        found: list[int] = self.ends[self.cuts[1:] - 1].tolist()
        return found

    def of_files(self, first: int, end: int) -> FileRows:
        """Return the rows of the files of some numbers."""
        low, high = int(self.cuts[first]), int(self.cuts[end])
        starts, ends = self.starts[low:high], self.ends[low:high]
        return FileRows(self.cuts[first : end + 1] - low, starts, ends, int((ends - starts).sum()))

    def run_lengths(self) -> Int64Array:
        """Return how many rows a range of each file has, on average; no file is without a range."""
        filled = np.zeros(len(self.starts) + 1, np.int64)
        np.cumsum(self.ends - self.starts, out=filled[1:])
        found: Int64Array = np.diff(filled[self.cuts]) // np.diff(self.cuts)
        return found

    def each(self) -> Iterator[Rows]:
        """Yield the rows of each file."""
        for low, high in pairwise(self.cuts.tolist()):
            yield Rows.ranges(self.starts[low:high], self.ends[low:high])
