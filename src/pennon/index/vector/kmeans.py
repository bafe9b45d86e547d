"""Centroids: which is nearest to a vector, and how they are trained.

Lloyd's algorithm on a sample: each vector goes to its nearest centroid, each centroid to the mean of its
vectors, until the loss stays as it is.  Begins with clusters that were split from the top.  A centroid that no vector is nearest
to begins again at a random one, most likely one of a large cluster.  The same seed gives the same centroids.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count as count_from
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pennon.core.fast_dataclass import dataclass
from pennon.core.thread_pools import PoolSpec, map_all
from pennon.index.kernels.vectors.clusters import add_rows, nearest
from pennon.index.vector.metric import L2, Metric
from pennon.index.vector.rows import Floats, Matrix

NearestCentroids = npt.NDArray[np.int32]

POOL: Final = PoolSpec("vectors")
"""Threads that compute with vectors."""
BLOCK_ROWS: Final = 4096
"""Vectors that one of them works on at a time."""
_LANES: Final = 16
_SEED_ROWS: Final = 64
"""Rows that are looked at for each centroid to begin with."""
_SEED_ITERS: Final = 10
_SEED_ROUNDS: Final = 16
_WAYS: Final = 4
_SAME: Final = 3e-4
"""A loss that falls by a smaller share than this is the same; beside 1e-4 that is 0.6 of the rounds, and a loss 0.3 % greater at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Centroids:
    """Centroids of each part of vectors, laid out to be compared with many vectors.

    Distances are of what is left of both without ``shift``, so that far from zero they are as exact.
    """

    parts: int
    dim: int
    shift: Matrix
    panels: Floats
    halves: Floats

    @classmethod
    def of(cls, words: Matrix, *, by_product: bool = False) -> Centroids:
        """Lay out centroids ``[part, number, dimension]``; the nearest has the largest product, or is nearest."""
        parts, count, dim = words.shape
        wide = words.astype(np.float64 if words.dtype == np.float64 else np.float32)
        shift = np.zeros((parts, dim), wide.dtype) if by_product else wide.mean(axis=1)
        near = (wide - shift[:, None]).astype(np.float32)
        groups = -(-count // _LANES)
        filled = np.zeros((parts, groups * _LANES, dim), np.float32)
        filled[:, :count] = near
        halves = np.full((parts, groups * _LANES), np.inf, np.float32)
        halves[:, :count] = 0 if by_product else np.einsum("mkd,mkd->mk", near, near) / 2
        panels = filled.reshape(parts, groups, _LANES, dim).transpose(0, 1, 3, 2)
        return cls(parts, dim, shift.ravel(), np.ascontiguousarray(panels).ravel(), halves.ravel())

    def nearest(self, rows: Matrix) -> tuple[NearestCentroids, Floats]:
        """Return the nearest centroid of each part of each vector, and half its distance without the vector's own."""
        near = np.ascontiguousarray(rows - self.shift if self.shift.any() else rows, np.float32)
        found = np.empty(len(rows) * self.parts, np.int32)
        scores = np.empty(len(found), np.float32)
        nearest(near.ravel(), self.parts, self.dim, self.panels, self.halves, found, scores)
        return found.reshape(-1, self.parts), scores.reshape(-1, self.parts)


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """Centroids, and the mean square of the distances to them."""

    centroids: Floats
    loss: float


def k_means(
    rows: Floats,
    count: int,
    *,
    seed: int,
    max_iters: int,
    metric: Metric = L2,
    is_fine: bool = False,
    start: Floats | None = None,
    done: Callable[[], object] = bool,
) -> Trained:
    """Train so many centroids, at most as many as there are rows.

    ``metric``: by a product they have the length 1, and the nearest has the largest product; by one of bits all
    their numbers are 0 or 1.  ``is_fine``: the vectors are a part of others, many of which are trained side by side, and
    begin with rows that are far from one another.  ``start``: centroids to begin with.  ``done`` is called after
    each round.
    """
    rng = np.random.default_rng(seed)
    if start is None:
        start = _seeds(rows, min(count, len(rows)), seed, is_fine=is_fine)
    centroids = _settled(start, metric)
    squares = float(np.einsum("ij,ij->", rows, rows, dtype=np.float64))
    before = float(np.finfo(np.float64).max)
    loss = 0.0
    for _ in range(max_iters):
        sums, counts, loss = _round(rows, centroids, metric, is_fine=is_fine)
        loss = loss + squares
        done()
        empty = np.flatnonzero(counts == 0)
        means = sums / np.maximum(counts, 1)[:, None]
        means[empty] = rows[rng.integers(0, len(rows), len(empty))]
        centroids = _settled(means.astype(np.float32), metric)
        if abs(before - loss) <= _SAME * abs(before) and not len(empty):
            break
        before = loss
    return Trained(centroids, max(loss, 0.0))


def _seeds(rows: Floats, count: int, seed: int, *, is_fine: bool) -> Floats:
    """Return centroids to begin with: the cluster of the greatest loss is split until there are enough.

    So a cluster of rows close together is seldom cut, which centroids that begin at random do.  As many rows are
    looked at as it takes.
    """
    rng = np.random.default_rng(seed)
    if count <= _WAYS:
        return rows[np.sort(rng.choice(len(rows), count, replace=False))].astype(np.float32)
    some = min(len(rows), _SEED_ROWS * count)
    pool = rows[np.sort(rng.choice(len(rows), some, replace=False))]
    if is_fine:
        return _far_rows(pool, count, rng)
    heap: list[tuple[float, int, Floats]] = [(-_spread(pool), 0, pool)]
    numbers = count_from(1)  # no two are alike, so that clusters are never compared
    while len(heap) < count and heap[0][0] < 0:
        *_, cluster = heappop(heap)
        ways = min(_WAYS, count - len(heap), len(cluster))
        split = k_means(cluster, ways, seed=seed, max_iters=_SEED_ITERS)
        found = Centroids.of(split.centroids[None]).nearest(cluster)[0].ravel()
        parts = [cluster[found == number] for number in range(ways)]
        parts = [each for each in parts if len(each)]
        for part in parts:  # rows that cannot be told apart stay together
            loss = _spread(part) if len(parts) > 1 else 0.0
            heappush(heap, (-loss, next(numbers), part))
    centroids = np.stack([cluster.mean(axis=0) for *_, cluster in heap])
    if len(centroids) == count:
        return centroids
    return np.concatenate([centroids, pool[rng.integers(0, some, count - len(centroids))]])


def _far_rows(pool: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Return rows far from one another: k-means++, some rows at a time."""
    each = max(count // _SEED_ROUNDS, 1)
    chosen = rng.choice(len(pool), each, replace=False)
    found = chosen
    far = np.full(len(pool), np.inf)
    while len(found) < count:
        near = Centroids.of(pool[chosen][None])
        own = np.square(pool - near.shift).sum(axis=1)
        far = np.minimum(far, np.maximum(2 * near.nearest(pool)[1].ravel() + own, 0))
        weights = far + np.finfo(np.float32).tiny  # all the same: any will do
        weights[found] = 0
        more = min(each, count - len(found))
        chosen = rng.choice(len(pool), more, replace=False, p=weights / weights.sum())
        found = np.concatenate([found, chosen])
    return pool[found].astype(np.float32)


def _spread(cluster: Floats) -> float:
    """Return the loss of rows around their mean."""
    if len(cluster) == 1:
        return 0.0
    return float(np.square(cluster - cluster.mean(axis=0)).sum(dtype=np.float64))


def _settled(centroids: Floats, metric: Metric) -> Floats:
    """Return centroids as a metric has them."""
    if metric.is_of_bits:
        return (centroids > 0.5).astype(np.float32)
    if metric.is_product:
        lengths = np.sqrt(np.einsum("ij,ij->i", centroids, centroids))
        lengths[lengths == 0] = 1
        unit: Floats = (centroids / lengths[:, None]).astype(np.float32)
        return unit
    return centroids


def _round(
    rows: Floats, centroids: Floats, metric: Metric, *, is_fine: bool
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], float]:
    """Return the sum and number of each centroid's vectors, and the loss without the vectors' own part."""
    near = Centroids.of(centroids[None], by_product=metric.is_product)
    sums = np.zeros(centroids.shape, np.float64)
    counts = np.zeros(len(centroids), np.int64)
    starts = range(0, len(rows), BLOCK_ROWS)

    def work(start: int) -> tuple[NearestCentroids, float]:
        found, scores = near.nearest(rows[start : start + BLOCK_ROWS])
        return found.ravel(), float(scores.sum(dtype=np.float64))

    results = [work(start) for start in starts] if is_fine else map_all(work, starts, POOL)
    loss = 0.0
    for start, (found, score) in zip(starts, results, strict=True):
        add_rows(rows[start : start + BLOCK_ROWS], found, sums, counts)
        loss += score
    return sums, counts, 2 * loss + _shifted(rows, near, sums)


def _shifted(rows: Floats, near: Centroids, sums: Any) -> float:
    """Return what the squares of the vectors are less without the shift."""
    shift = near.shift.astype(np.float64)
    return float(len(rows) * (shift @ shift) - 2 * (sums.sum(axis=0) @ shift))
