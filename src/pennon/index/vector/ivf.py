"""IVF: rows by partitions, of which those are searched whose centroids are near.

Queries are searched together: each round has pairs of a query and a partition, sorted by partition, so that one is
read once, and its codes are compared with some of the queries that ask it while they are in the processor's cache.  One
query alone asks its nearest partition first.  Where a query has fewer rows than wanted after a round, the next round has
its next partition.
Source: reference index-vector, 6.3 and 6.8.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.thread_pools import map_all, processors
from pennon.encoding.kernels.vector_scan import keep_nearest
from pennon.errors import ArgumentError
from pennon.index.row_set import Numbers
from pennon.index.vector.base import Allowed, Floats, Floats2D, Found, Probes
from pennon.index.vector.codes import Apart, Asked, Asks, Passing, Quantizer, RowCodes
from pennon.index.vector.kmeans import CREW
from pennon.index.vector.partition_reader import Partition, PartitionReader
from pennon.index.vector.settings import Graph, VectorSettings
from pennon.index.vector.wire import Vectors

_AT_ONCE: Final = 256
"""Queries that are searched together: what each is compared by takes up to a megabyte."""
_FEW: Final = 10
"""Where no more than one of so many rows of a partition may be found, its graph is not walked."""
_CELLS: Final = 1 << 18
"""Distances that are worked out at a time."""
_HELD_BYTES: Final = 64 << 20
"""Partitions are held together as long as they take no more memory than this."""
_QUERIES_A_LANE: Final = 8
"""Fewer queries are not worth a thread."""
_LEAST_ROOM: Final = 1024
"""Rows near a query that there is room for from the first; if more are wanted, and found, there will be more room."""


class IvfIndex:
    """An open segment of an index of partitions."""

    def __init__(
        self, metric: str, centroids: Vectors, quantizer: Quantizer, reader: PartitionReader
    ) -> None:
        self.metric, self.dimension = metric, centroids.shape[1]
        self.kind = f"IVF_{'HNSW_' if reader.has_graphs else ''}{quantizer.kind}"
        self._quantizer, self._reader = quantizer, reader
        self._type = centroids.dtype
        kind = np.uint8 if metric == "hamming" else np.float32
        self._centroids = np.ascontiguousarray(centroids, kind)

    @property
    def size_bytes(self) -> int:
        """See `VectorIndex.size_bytes`."""
        return self._centroids.nbytes + self._quantizer.size_bytes + self._reader.size_bytes

    @property
    def settings(self) -> VectorSettings:
        """Return what kind of an index it is, as far as its files say."""
        return VectorSettings(
            self.kind,
            self.metric,
            sub_vectors=self._quantizer.parts,
            bits=self._quantizer.bits,
            graph=Graph() if self._reader.has_graphs else None,
        )

    def search(self, queries: Vectors, k: int, probes: Probes, allowed: Allowed | None) -> Found:
        """See `VectorIndex.search`."""
        if queries.ndim != 2 or queries.shape[1] != self.dimension:
            message = f"queries of the shape {queries.shape} for vectors of {self.dimension} values"
            raise ArgumentError(message)
        # what is too large for 32 bits is infinitely far away
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return Found.joined(
                [
                    self._search(queries[start : start + _AT_ONCE], k, probes, allowed).behind(
                        start
                    )
                    for start in range(0, len(queries), _AT_ONCE)
                ]
            )

    def _search(self, queries: Vectors, k: int, probes: Probes, allowed: Allowed | None) -> Found:
        vectors, is_valid = self._prepared(queries)
        count = len(self._centroids)
        most = count if probes.maximum is None else min(probes.maximum, count)
        fewest = max(min(probes.minimum, most), min(most, 1))
        numbers = np.flatnonzero(is_valid)
        nearest = _Nearest(len(numbers), max(k, 0))
        if len(numbers) and k > 0 and fewest:
            asks = self._quantizer.asks(vectors[numbers])
            width = max(probes.ef or k + k // 2, k)
            search = _Search(self, self._reader, vectors[numbers], asks, width, allowed)
            search.run(nearest, fewest, most)
        places, rows, distances = nearest.sorted()
        return Found(numbers[places], rows, distances)

    def _prepared(self, queries: Vectors) -> tuple[Vectors, npt.NDArray[np.bool_]]:
        """Return queries as values of the index's type, and which of them can be near anything."""
        if self.metric == "hamming":
            return queries.astype(np.uint8), np.ones(len(queries), np.bool_)
        kind = np.float64 if self._type == np.float64 else np.float32
        # the values that the column would have
        vectors: Vectors = queries.astype(self._type).astype(kind, copy=False)
        is_valid = np.asarray(np.isfinite(vectors).all(axis=1))
        if self.metric == "cosine":
            norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
            vectors = vectors / norms
            is_valid &= np.isfinite(vectors).all(axis=1)
        return vectors, is_valid

    def near_partitions(self, queries: Vectors, count: int) -> Int64Array:
        """Return for each query the partitions whose centroids are nearest to it, nearest first."""
        kind = {"hamming": Apart.BITS, "dot": Apart.PRODUCTS}.get(self.metric, Apart.SQUARES)
        asked = Asked(kind, queries.astype(self._centroids.dtype, copy=False))
        distances = RowCodes(_bytes(self._centroids)).distances(asked)
        if not np.isfinite(distances).all():  # a centroid that is no number is the farthest
            np.nan_to_num(distances, copy=False, nan=np.inf, posinf=np.inf, neginf=-np.inf)
        best = _Nearest(len(queries), count)
        numbers = np.arange(distances.shape[1], dtype=np.uint64)
        best.add(np.arange(len(queries)), distances, numbers, None)
        return best.sorted()[1].astype(np.int64).reshape(len(queries), count)


class _Nearest:
    """The nearest rows of each query so far: heaps, the farthest on top."""

    __slots__ = ("_distances", "_most", "_rows", "counts")

    def __init__(self, queries: int, most: int) -> None:
        self._most = most
        self.counts = np.zeros(queries, np.int64)
        size = max(min(most, _LEAST_ROOM), 1)
        self._distances = np.empty((queries, size), np.float32)
        self._rows = np.empty((queries, size), np.uint64)

    @property
    def has_room(self) -> bool:
        """Return whether there is room for all rows that are wanted, so that none will be made."""
        return self._distances.shape[1] >= self._most

    def bounds(self, numbers: Int64Array) -> Floats:
        """Return how far a row may be to be among those of some queries."""
        is_full = self.counts[numbers] == self._most
        return np.where(is_full, self._distances[numbers, 0], np.float32(np.inf))

    def hungry(self) -> Int64Array:
        """Return the numbers of the queries that have fewer rows than are wanted."""
        return np.flatnonzero(self.counts < self._most)

    def add(
        self, numbers: Int64Array, distances: Floats2D, rows: Numbers, passing: Passing | None
    ) -> None:
        """Put rows in, with their distances from some queries: a row of ``distances`` for each."""
        size = self._distances.shape[1]
        if size < self._most:  # a heap of few is one of many
            wanted = min(int(self.counts[numbers].max(initial=0)) + len(rows), self._most)
            if wanted > size:
                more = (0, 0), (0, min(max(wanted, 2 * size), self._most) - size)
                self._distances = np.pad(self._distances, more)
                self._rows = np.pad(self._rows, more)
        keep_nearest(self._distances, self._rows, self.counts, numbers, distances, rows, passing)

    def sorted(self) -> tuple[Int64Array, Numbers, Floats]:
        """Return for each row the query, its number and how far it is; by query, nearest first."""
        is_one = np.arange(self._rows.shape[1]) < self.counts[:, None]
        queries = np.repeat(np.arange(len(self.counts)), self.counts)
        rows, distances = self._rows[is_one], self._distances[is_one]
        order = np.lexsort((rows, distances, queries))
        return queries, rows[order], distances[order]


class _Search:
    """A search of queries."""

    def __init__(
        self,
        index: IvfIndex,
        reader: PartitionReader,
        vectors: Vectors,
        asks: Asks,
        width: int,
        allowed: Allowed | None,
    ) -> None:
        self._index, self._reader, self._vectors = index, reader, vectors
        self._asks, self._width, self._allowed = asks, width, allowed

    def run(self, nearest: _Nearest, fewest: int, most: int) -> None:
        """Search the nearest partitions of each query, ``fewest`` of them, and more where rows are few."""
        near = self._index.near_partitions(self._vectors, fewest)
        self._round(nearest, near.reshape(-1), np.repeat(np.arange(len(near)), fewest))
        hungry = nearest.hungry()
        if len(hungry) and fewest < most:
            near = self._index.near_partitions(self._vectors[hungry], most)
        for count in range(fewest, most):
            if not len(hungry):
                break
            self._round(nearest, near[:, count], hungry)
            is_hungry = np.isin(hungry, nearest.hungry())
            hungry, near = hungry[is_hungry], near[is_hungry]

    def _round(self, nearest: _Nearest, partitions: Int64Array, queries: Int64Array) -> None:
        """Search pairs of a partition and a query."""
        are_filled = self._reader.lengths[partitions] > 0
        partitions, queries = partitions[are_filled], queries[are_filled]
        lanes = [
            _Lane(nearest, self._asks, self._width, partitions[mine], queries[mine])
            for mine in _lanes(nearest, queries)
        ]
        # one query's nearest come first: few rows of the others may be nearer
        wanted = partitions if len(nearest.counts) == 1 else np.unique(partitions)
        for some in self._wanted(wanted.tolist()):
            map_all(lambda lane: lane.ask(some), lanes, CREW)  # noqa: B023 - it waits for all

    def _wanted(self, numbers: Sequence[int]) -> Iterator[list[_Wanted]]:
        """Read partitions; yield as many as are held at once, without those of which no row is allowed."""
        held, size = [], 0
        for number, partition in zip(numbers, self._reader.read(numbers), strict=True):
            passing = None
            if self._allowed is not None:
                passing = self._allowed(partition.rows).view(np.uint8)
                if not passing.any():
                    continue
            held.append(_Wanted(number, partition, passing))
            size += partition.size_bytes
            if size > _HELD_BYTES:
                yield held
                held, size = [], 0
        if held:
            yield held


@dataclass(frozen=True, slots=True, eq=False)
class _Wanted:
    """A partition that queries ask, and which of its rows may be found; None: all."""

    number: int
    partition: Partition
    passing: Passing | None


def _lanes(nearest: _Nearest, queries: Int64Array) -> list[Int64Array]:
    """Return the places of pairs, by the lanes that work side by side: each has some of the queries to itself.

    So a query is searched as it would be alone.  To share out the partitions of one gains nothing: memory is what it
    waits for.
    """
    count = min(processors(), len(nearest.counts) // _QUERIES_A_LANE)
    if count < 2 or not nearest.has_room:
        return [np.arange(len(queries))]
    lane = queries * count // len(nearest.counts)
    return [np.flatnonzero(lane == number) for number in range(count)]


class _Lane:
    """Pairs of a partition and a query, those of a partition side by side."""

    __slots__ = ("_nearest", "_pairs", "_places", "_width")

    def __init__(
        self,
        nearest: _Nearest,
        asks: Asks,
        width: int,
        partitions: Int64Array,
        queries: Int64Array,
    ) -> None:
        if len(queries) and queries[0] != queries[-1]:
            order = np.argsort(partitions, kind="stable")
            partitions, queries = partitions[order], queries[order]
        self._nearest, self._width = nearest, width
        self._pairs = _Pairs(asks, partitions, queries)
        starts = np.flatnonzero(np.diff(partitions, prepend=-1))
        ends = np.append(starts, len(partitions))[1:]
        places = zip(starts.tolist(), ends.tolist(), strict=True)
        self._places = dict(zip(partitions[starts].tolist(), places, strict=True))

    def ask(self, wanted: Sequence[_Wanted]) -> None:
        """Compare queries with the partitions that they ask, of some of these."""
        for each in wanted:
            start, end = self._places.get(each.number, (0, 0))
            self._compare(each.partition, each.passing, start, end)

    def _compare(self, partition: Partition, passing: Passing | None, start: int, end: int) -> None:
        """Compare the queries of the pairs from ``start`` to ``end`` with their partition."""
        rows, codes, graph = partition.rows, partition.codes, partition.graph
        if graph is not None and isinstance(codes, RowCodes) and not _is_rare(passing):
            for at in range(start, end):
                asked, query = self._pairs.some(at, at + 1)
                nodes, far = codes.walk(asked, graph, self._width, passing)
                self._nearest.add(query, far, rows[nodes], None)
            return
        step = max(_CELLS // len(rows), 1)
        while start < end:
            asked, some = self._pairs.some(start, min(start + step, end))
            far = codes.distances(asked, partial(self._nearest.bounds, some))
            self._nearest.add(some, far, rows, passing)
            start += len(some)


class _Pairs:
    """Pairs of a partition and a query, which are made ready some at a time."""

    __slots__ = ("_asked", "_asks", "_first", "_last", "_partitions", "_queries")

    def __init__(self, asks: Asks, partitions: Int64Array, queries: Int64Array) -> None:
        self._asks, self._partitions, self._queries = asks, partitions, queries
        self._asked: Any = None
        self._first = self._last = 0

    def some(self, start: int, end: int) -> tuple[Any, Int64Array]:
        """Return pairs from ``start`` on, but not beyond ``end``: what is asked, and the numbers of the queries."""
        if not self._first <= start < self._last:
            self._first, self._last = start, min(start + self._asks.together, len(self._queries))
            made = slice(self._first, self._last)
            self._asked = self._asks.at(self._partitions[made], self._queries[made])
        end = min(end, self._last)
        return self._asked[start - self._first : end - self._first], self._queries[start:end]


def _is_rare(passing: Passing | None) -> bool:
    return passing is not None and int(np.count_nonzero(passing)) * _FEW < len(passing)


def _bytes(matrix: Vectors) -> npt.NDArray[np.uint8]:
    return matrix.view(np.uint8).reshape(len(matrix), -1)
