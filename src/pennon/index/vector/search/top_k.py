"""The rows nearest to each of some queries, no more than ``k`` for each.

Rows come block by block, in any order.  How far the k-th is that is known so far bounds what is looked at of the
next block: of most blocks a few rows are left, and no block is sorted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.index.row_set import Numbers
from pennon.index.vector.base import Floats

_FEW: Final = 1 << 14
"""So many rows are kept beside the best ones before they are sorted."""


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """Rows near queries: the number of the query, the row's id, its address, and the distance of each."""

    queries: Int64Array
    ids: Numbers
    addresses: Numbers
    distances: Floats

    def __len__(self) -> int:
        """Return how many rows they are."""
        return len(self.queries)

    @classmethod
    def joined(cls, parts: Sequence[Neighbours]) -> Neighbours:
        """Return all of them in one."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([np.empty(0, np.int64), *(each.queries for each in parts)]),
            np.concatenate([np.empty(0, np.uint64), *(each.ids for each in parts)]),
            np.concatenate([np.empty(0, np.uint64), *(each.addresses for each in parts)]),
            np.concatenate([np.empty(0, np.float32), *(each.distances for each in parts)]),
        )

    @property
    def _ascends(self) -> bool:
        """Return whether they come by query, nearest first, then by row id, as one index finds them."""
        queries, far, ids = self.queries, self.distances, self.ids
        are_behind = far[1:] > far[:-1]
        if not are_behind.all():
            are_behind |= (far[1:] == far[:-1]) & (ids[1:] >= ids[:-1])
            are_behind &= queries[1:] == queries[:-1]
            return bool((are_behind | (queries[1:] > queries[:-1])).all())
        return bool((queries[1:] >= queries[:-1]).all())

    def at(self, places: npt.NDArray[np.int64] | npt.NDArray[np.bool_] | slice) -> Neighbours:
        """Return some of them."""
        return Neighbours(
            self.queries[places], self.ids[places], self.addresses[places], self.distances[places]
        )

    def best(self, k: int) -> Neighbours:
        """Return the ``k`` nearest of each query, by distance, those of equal distance by row id."""
        near = self
        if not self._ascends:
            near = self.at(np.lexsort((self.ids, self.distances, self.queries)))
        queries = near.queries
        if len(near) <= k or (k and (queries[k:] > queries[:-k]).all()):
            return near
        return near.at(np.arange(len(near)) - np.searchsorted(queries, queries) < k)


NOTHING: Final = Neighbours.joined([])


class Best:
    """The nearest rows so far."""

    def __init__(self, queries: int, k: int) -> None:
        self._k = k
        self._parts: list[Neighbours] = []
        self.held = 0
        """How many rows are known; some of them may be too far away."""
        self._least = queries * k
        self.bounds = np.full(queries, np.inf, np.float32)
        """How far the k-th row of each query is, among those known; infinity while there are fewer."""

    def add(self, found: Neighbours) -> None:
        """Take rows; those too far away may be among them."""
        if len(found):
            self._parts.append(found)
            self.held += len(found)
        if self.held > 2 * self._least + _FEW or (self.held >= self._least and len(found)):
            self._tidy()

    def found(self) -> Neighbours:
        """Return the nearest rows of each query."""
        self._tidy()
        return self._parts[0]

    def _tidy(self) -> None:
        best = Neighbours.joined(self._parts).best(self._k)
        counts = np.bincount(best.queries, minlength=len(self.bounds))
        full = np.flatnonzero(counts >= self._k)
        self.bounds[full] = best.distances[np.cumsum(counts)[full] - 1]
        self._parts, self.held = [best], len(best)


def nearest_of(
    distances: npt.NDArray[np.float32], bounds: Floats, k: int
) -> tuple[Int64Array, Int64Array]:
    """Return the places (query, row) of distances that may be among the ``k`` least of each query.

    They are within the bounds; no more than ``k`` of a query, but for those that are equally far.  NaN is at no
    distance.
    """
    rows = distances.shape[1]
    if rows > k and np.isinf(bounds).any():
        kth = np.partition(distances, k - 1, axis=1)[:, k - 1]
        bounds = np.fmin(bounds, kth)
    queries, places = np.nonzero(distances <= bounds[:, None])
    return queries, places
