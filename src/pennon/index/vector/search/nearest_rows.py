"""The nearest rows of queries that search together."""

from __future__ import annotations

from typing import Final

import numpy as np

from pennon.core.byte_ranges import Int64Array
from pennon.index.kernels.vectors.vector_scan import join_heaps, keep_nearest, sort_heaps
from pennon.index.row_set import Numbers
from pennon.index.vector.base import Floats, Floats2D
from pennon.index.vector.quantizer import Heaps, RowMask

_LEAST_ROOM: Final = 1024
"""Rows near a query that there is room for from the first; if more are wanted, and found, there will be more room."""

_NO_ROW: Final = np.iinfo(np.uint64).max
"""It stands for a row that is in other heaps."""


class TopKHeaps:
    """The nearest rows of each query so far: heaps, the farthest on top."""

    __slots__ = ("_distances", "_most", "_rows", "counts", "has_room")

    def __init__(self, queries: int, most: int) -> None:
        self._most = most
        self.counts = np.zeros(queries, np.int64)
        size = max(min(most, _LEAST_ROOM), 1)
        self.has_room = size >= most
        """Whether there is room for all rows that are wanted, so that none will be made."""
        self._distances = np.empty((queries, size), np.float32)
        self._rows = np.empty((queries, size), np.uint64)

    @property
    def heaps(self) -> Heaps:
        """Return the heaps."""
        return self._distances, self._rows, self.counts

    def bounds(self) -> TopKHeaps:
        """Return how far the nearest rows are, for another worker: it keeps what may be nearer, see `join_beyond`."""
        found = TopKHeaps(0, self._most)
        found._distances, found.counts = self._distances.copy(), self.counts.copy()
        found._rows = np.full_like(self._rows, _NO_ROW)
        found.has_room = self.has_room
        return found

    def join_beyond(self, other: TopKHeaps) -> None:
        """Put in what another worker found that began with our `bounds`."""
        other._distances[other._rows == _NO_ROW] = np.nan  # which is at no distance
        self.join(np.arange(len(self.counts)), *other.heaps)

    def join(
        self, numbers: Int64Array, distances: Floats2D, rows: Numbers, counts: Int64Array
    ) -> None:
        """Put in what is near the same queries, or some, as heaps have it."""
        join_heaps(*self.heaps, numbers, distances, rows, counts)

    def underfilled(self) -> Int64Array:
        """Return the numbers of the queries that have fewer rows than are wanted."""
        return (self.counts < self._most).nonzero()[0]

    def add(
        self, numbers: Int64Array, distances: Floats2D, rows: Numbers, passing: RowMask | None
    ) -> None:
        """Put rows in, with their distances from some queries: a row of ``distances`` for each."""
        if not self.has_room:
            self.make_room(len(rows))
        keep_nearest(*self.heaps, numbers, distances, rows, passing)

    def make_room(self, rows: int) -> None:
        """Make room for so many more rows near each query."""
        size = self._distances.shape[1]
        if size < self._most:  # a heap of few is one of many
            wanted = min(int(self.counts.max(initial=0)) + rows, self._most)
            if wanted > size:
                more = (0, 0), (0, min(max(wanted, 2 * size), self._most) - size)
                self._distances = np.pad(self._distances, more)
                self._rows = np.pad(self._rows, more)
                self.has_room = self._rows.shape[1] >= self._most

    def sorted(self) -> tuple[Int64Array, Numbers, Floats]:
        """Return for each row the query, its number and how far it is; by query, nearest first.  This is the end."""
        sort_heaps(*self.heaps)
        queries = np.arange(len(self.counts)).repeat(self.counts)
        size = self._rows.shape[1]
        if len(queries) == self._rows.size:
            return queries, self._rows.reshape(-1), self._distances.reshape(-1)
        is_one = np.arange(size) < self.counts[:, None]
        return queries, self._rows[is_one], self._distances[is_one]
