"""IVF: rows in partitions; a search reads the partitions whose centroids are near.

Queries are searched together: each round has pairs of a query and a partition, sorted by partition, so that one is
read once, and its codes are compared with the queries that ask it while they are in the processor's cache.  Lanes that
work side by side have some of the partitions each, and heaps of their own, or some of the queries.  One query alone
asks its nearest partition first.  Where a query has fewer rows than wanted after a round, the next round has its next
partition.
Source: reference index-vector, 6.3 and 6.8.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array
from pennon.core.counted import counted
from pennon.core.runs import run_starts
from pennon.core.thread_places import processors
from pennon.core.thread_pools import call_all
from pennon.errors import ArgumentError
from pennon.index.vector.base import Prefilter, Probes, SearchResult
from pennon.index.vector.lengths import normalized
from pennon.index.vector.metric import DistanceKind, Metric
from pennon.index.vector.partition_reader import Partition, PartitionReader
from pennon.index.vector.quantizer import (
    EncodedQueries,
    Pairs,
    PlainQueries,
    Quantizer,
    QueryBatch,
    RowCodes,
    RowMask,
    RowQueries,
    ScanOrder,
    Uint8Bounds,
)
from pennon.index.vector.search.nearest_rows import TopKHeaps
from pennon.index.vector.search.schedule import keep_pairs
from pennon.index.vector.settings import Graph, VectorSettings
from pennon.index.vector.wire import Vectors

_AT_ONCE: Final = 256
"""Queries that are searched together."""
_FEW: Final = 10
"""Where no more than one of so many rows of a partition may be found, its graph is not walked."""
_WALKS: Final = 32
"""Walks over a graph that are made ready together: what each compares takes up to a megabyte."""
_HELD_BYTES: Final = 64 << 20
"""Partitions that are read are held together as long as they take no more memory than this."""
_CUT: Final = 8
"""Of so many times as many centroids as are near, those are left out whose bytes are far."""
_PAIRS: Final = 1024
"""Pairs of partitions that have no graphs are searched together, about so many."""
_QUERIES_A_WORKER: Final = 8
"""Fewer queries are not worth a thread."""


class IvfIndex:
    """An open segment of an index of partitions."""

    def __init__(
        self, metric: Metric, centroids: Vectors, quantizer: Quantizer, reader: PartitionReader
    ) -> None:
        self.metric, self.dimension = metric, centroids.shape[1]
        self.kind = f"IVF_{'HNSW_' if reader.has_graphs else ''}{quantizer.kind}"
        self._quantizer, self._reader = quantizer, reader
        self._type = centroids.dtype
        kind = np.uint8 if metric.is_of_bits else np.float32
        self._centroids = np.ascontiguousarray(centroids, kind)
        rows = self._centroids.view(np.uint8).reshape(len(centroids), -1)
        is_bounded = metric.centroid_kind is DistanceKind.SQUARES
        self._rows = RowCodes(rows, Uint8Bounds(rows) if is_bounded else None)
        self._numbers = np.arange(len(centroids), dtype=np.uint64)

    @property
    def size_bytes(self) -> int:
        """See `VectorIndex.size_bytes`."""
        return self._rows.size_bytes + self._quantizer.size_bytes + self._reader.size_bytes

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

    def search(
        self, queries: Vectors, k: int, probes: Probes, prefilter: Prefilter | None
    ) -> SearchResult:
        """See `VectorIndex.search`."""
        if queries.ndim != 2 or queries.shape[1] != self.dimension:
            message = f"queries of the shape {queries.shape} for vectors of {self.dimension} values"
            raise ArgumentError(message)
        # what is too large for 32 bits is infinitely far away
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if len(queries) <= _AT_ONCE:
                return self._search(queries, k, probes, prefilter)
            return SearchResult.joined(
                [
                    self._search(queries[start : start + _AT_ONCE], k, probes, prefilter).behind(
                        start
                    )
                    for start in range(0, len(queries), _AT_ONCE)
                ]
            )

    def _search(
        self, queries: Vectors, k: int, probes: Probes, prefilter: Prefilter | None
    ) -> SearchResult:
        vectors, is_valid = self._prepared(queries)
        count = len(self._centroids)
        most = count if probes.maximum is None else min(probes.maximum, count)
        fewest = max(min(probes.minimum, most), min(most, 1))
        numbers = is_valid.nonzero()[0]
        nearest = TopKHeaps(len(numbers), max(k, 0))
        if len(numbers) and k > 0 and fewest:
            vectors = vectors if len(numbers) == len(vectors) else vectors[numbers]
            asks = self._quantizer.asks(vectors)
            width = max(probes.ef or k + k // 2, k)
            search = _Search(self, self._reader, vectors, asks, width, prefilter)
            search.run(nearest, fewest, most)
        places, rows, distances = nearest.sorted()
        return SearchResult(numbers[places], rows, distances)

    def _prepared(self, queries: Vectors) -> tuple[Vectors, npt.NDArray[np.bool_]]:
        """Return queries as values of the index's type, and which of them can be near anything."""
        if self.metric.is_of_bits:
            return queries.astype(np.uint8), np.ones(len(queries), np.bool_)
        kind = np.float64 if self._type == np.float64 else np.float32
        # the values that the column would have
        vectors: Vectors = queries.astype(self._type).astype(kind, copy=False)
        is_valid = np.asarray(np.isfinite(vectors).all(axis=1))
        if self.metric.normalises:
            vectors, has_direction = normalized(vectors)
            is_valid &= has_direction
        return vectors, is_valid

    def near_partitions(self, queries: Vectors, count: int) -> Int64Array:
        """Return for each query the partitions whose centroids are nearest to it, nearest first."""
        if len(self._centroids) == 1:
            return np.zeros((len(queries), count), np.int64)
        wanted = queries.astype(self._centroids.dtype, copy=False)
        asked = EncodedQueries(self.metric.centroid_kind, wanted)
        best = TopKHeaps(len(queries), count)
        is_worth_it = len(queries) >= _QUERIES_A_WORKER and len(self._numbers) >= _CUT * count
        if self._rows.bounds is not None and is_worth_it and best.has_room:
            none, which = np.zeros(len(queries), np.int64), np.arange(len(queries))
            pairs = Pairs([self._rows], [self._numbers], [None], none, none, which)
            PlainQueries(asked).prepare(pairs).keep(best.heaps, pairs.as_one)
            if (best.counts == count).all():  # or some centroids are no numbers, and few are left
                return best.sorted()[1].astype(np.int64).reshape(len(queries), count)
            best = TopKHeaps(len(queries), count)
        distances = self._rows.distances(asked)
        if not np.isfinite(distances).all():  # a centroid that is no number is the farthest
            np.nan_to_num(distances, copy=False, nan=np.inf, posinf=np.inf, neginf=-np.inf)
        best.add(np.arange(len(queries)), distances, self._numbers, None)
        return best.sorted()[1].astype(np.int64).reshape(len(queries), count)


_Held: TypeAlias = tuple[Sequence[int], Sequence[Partition], Sequence[RowMask | None]]
"""Partitions: the place of each among those asked for, itself, and which of its rows may be found (None: all)."""


class _Search:
    """A search of queries."""

    def __init__(
        self,
        index: IvfIndex,
        reader: PartitionReader,
        vectors: Vectors,
        asks: QueryBatch,
        width: int,
        prefilter: Prefilter | None,
    ) -> None:
        self._index, self._reader, self._vectors = index, reader, vectors
        self._asks, self._width, self._prefilter = asks, width, prefilter
        self._order = ScanOrder.PARTITIONS if reader.has_graphs else asks.order

    def run(self, nearest: TopKHeaps, fewest: int, most: int) -> None:
        """Search the nearest partitions of each query, ``fewest`` of them, and more where rows are few."""
        near = self._index.near_partitions(self._vectors, fewest)
        self._round(nearest, near.reshape(-1), np.arange(len(near)).repeat(fewest))
        if fewest == most:
            return
        underfilled = nearest.underfilled()
        if len(underfilled):
            near = self._index.near_partitions(self._vectors[underfilled], most)
        for count in range(fewest, most):
            if not len(underfilled):
                break
            next_nearest = np.ascontiguousarray(near[:, count])
            self._round(nearest, next_nearest, underfilled)
            is_short = np.isin(underfilled, nearest.underfilled())
            underfilled, near = underfilled[is_short], near[is_short]

    def _round(self, nearest: TopKHeaps, partitions: Int64Array, queries: Int64Array) -> None:
        """Search pairs of a partition and a query: by query, the nearest partition of each first."""
        are_filled = self._reader.lengths[partitions] > 0
        if not are_filled.all():
            partitions, queries = partitions[are_filled], queries[are_filled]
        if not len(queries):
            return
        if self._order is not ScanOrder.PARTITIONS:
            numbers, of_pairs = _nearest_first(partitions, queries)
        elif self._reader.has_graphs or len(nearest.counts) == 1:
            self._round_by_part(nearest, partitions, queries)
            return
        else:
            partitions, queries, starts = _by_partition(partitions, queries)
            numbers, of_pairs = partitions[starts], starts.cumsum() - 1
        for held, parts, passing in self._wanted(numbers.tolist()):
            places: Int64Array = of_pairs
            chosen: slice | npt.NDArray[np.bool_] = slice(None)
            if len(held) < len(numbers):
                places = np.full(len(numbers), -1)
                places[held] = np.arange(len(held))
                places = places[of_pairs]
                chosen = places >= 0
            pairs = Pairs(
                [each.codes for each in parts],
                [each.rows for each in parts],
                passing,
                places[chosen],
                partitions[chosen],
                queries[chosen],
            )
            self._keep(nearest, pairs)

    def _keep(self, nearest: TopKHeaps, pairs: Pairs) -> None:
        """Let queries keep the nearest rows of pairs."""
        if not nearest.has_room:
            nearest.make_room(int(np.bincount(pairs.queries, pairs.lengths).max()))
        keep_pairs(self._asks, self._order, pairs, nearest, _worker_count(len(nearest.counts)))

    def _round_by_part(
        self, nearest: TopKHeaps, partitions: Int64Array, queries: Int64Array
    ) -> None:
        """Search pairs, as walks over graphs do, or one query: a partition at a time."""
        if len(nearest.counts) == 1:  # the nearest come first: few rows of the others may be nearer
            numbers, asking = partitions.tolist(), [queries[:1]] * len(queries)
        else:
            partitions, queries, starts = _by_partition(partitions, queries)
            numbers = partitions[starts].tolist()
            asking = np.split(queries, starts.nonzero()[0][1:])
        for held in self._wanted(numbers):
            parts = [
                (numbers[at], partition, passing, asking[at])
                for at, partition, passing in zip(*held, strict=True)
            ]
            workers = _workers(nearest, parts)
            work = [
                partial(_Worker(self._asks, self._width, mine).ask, nearest) for mine in workers
            ]
            call_all(work)

    def _wanted(self, numbers: Sequence[int]) -> Iterator[_Held]:
        """Read partitions; yield as many as are held at once, without partitions whose rows are all excluded."""
        read = self._reader.read(numbers)
        is_read = not isinstance(read, list)  # what is remembered takes no more memory
        if self._prefilter is None and not is_read:
            yield range(len(numbers)), cast("list[Partition]", read), [None] * len(numbers)
            return
        places: list[int] = []
        parts: list[Partition] = []
        passing: list[RowMask | None] = []
        size = 0
        for place, partition in enumerate(read):
            mask = (
                None if self._prefilter is None else self._prefilter(partition.rows).view(np.uint8)
            )
            if mask is not None and not mask.any():
                continue
            places.append(place)
            parts.append(partition)
            passing.append(mask)
            size += partition.size_bytes
            if is_read and size > _HELD_BYTES:
                yield places, parts, passing
                places, parts, passing, size = [], [], [], 0
        if parts:
            yield places, parts, passing


def _by_partition(
    partitions: Int64Array, queries: Int64Array
) -> tuple[Int64Array, Int64Array, npt.NDArray[np.bool_]]:
    """Return pairs sorted by partition, and where one begins."""
    order = partitions.argsort(kind="stable")
    partitions = partitions[order]
    return partitions, queries[order], run_starts(partitions)


def _nearest_first(partitions: Int64Array, queries: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the partitions of some pairs, those first that are the nearest of a query; and which one each pair has."""
    if queries[0] == queries[-1]:
        return partitions, counted(len(partitions))
    count = len(queries)
    firsts = np.where(run_starts(queries), np.arange(count), 0)
    ranks = np.full(partitions.max() + 1, count)
    np.minimum.at(ranks, partitions, np.arange(count) - np.maximum.accumulate(firsts))
    numbers = (ranks < count).nonzero()[0]
    order = numbers[ranks[numbers].argsort(kind="stable")]
    places = np.empty_like(ranks)
    places[order] = np.arange(len(order))
    return order, places[partitions]


_Part: TypeAlias = tuple[int, Partition, RowMask | None, Int64Array]
"""The number of a partition, itself, which of its rows may be found (None: all), and the queries that ask it."""


def _workers(nearest: TopKHeaps, parts: list[_Part]) -> list[list[_Part]]:
    """Return partitions, by the workers that work side by side: each has some of the queries to itself."""
    queries = len(nearest.counts)
    count = _worker_count(queries) if nearest.has_room else 1
    if count < 2:
        return [parts]
    workers: list[list[_Part]] = [[] for _ in range(count)]
    firsts = _first_queries(queries, count)
    asking = [part[3] for part in parts]
    starts = np.array([0, *map(len, asking[:-1])]).cumsum()
    of_workers = firsts.searchsorted(np.concatenate(asking), side="right")
    # how many of the queries of each part, which ascend, are of the workers before
    before = [
        np.add.reduceat(of_workers < worker, starts, dtype=np.int64).tolist()
        for worker in range(1, count + 1)
    ]
    for worker, mine in enumerate(workers):
        those = before[worker - 1] if worker else [0] * len(parts)
        for part, start, end in zip(parts, those, before[worker], strict=True):
            if start < end:
                mine.append((*part[:3], part[3][start:end]))
    return workers


def _first_queries(queries: int, workers: int) -> Int64Array:
    """Return the first query of each worker but the first one; they have about as many each."""
    return np.array([-(-queries * worker // workers) for worker in range(1, workers)], np.int64)


def _worker_count(queries: int) -> int:
    """Return how many workers queries are worth."""
    return max(min(processors(), queries // _QUERIES_A_WORKER), 1)


class _Worker:
    """Partitions, each with the queries that ask it."""

    __slots__ = ("_asks", "_wanted", "_width")

    def __init__(self, asks: QueryBatch, width: int, wanted: Sequence[_Part]) -> None:
        self._asks, self._width, self._wanted = asks, width, wanted

    def ask(self, nearest: TopKHeaps) -> None:
        """Compare the queries with their partitions."""
        flat: list[_Part] = []
        count = 0
        for part in self._wanted:
            if part[1].graph is not None and _walks(part):
                self._walk(nearest, part)
                continue
            flat.append(part)
            count += len(part[3])
            if count >= _PAIRS or not nearest.has_room:
                self._compare(nearest, flat)
                flat, count = [], 0
        if flat:
            self._compare(nearest, flat)

    def _walk(self, nearest: TopKHeaps, wanted: _Part) -> None:
        """Walk the graph of a partition for each of some queries."""
        number, partition, passing, queries = wanted
        rows, codes, graph = partition.rows, partition.codes, partition.graph
        if graph is None or not isinstance(codes, RowCodes):
            return
        asks = cast("RowQueries", self._asks)
        for start in range(0, len(queries), _WALKS):
            some = queries[start : start + _WALKS]
            asked = asks.at(np.array([number] * len(some)), some)
            nodes, far, counts = codes.walk(asked, graph, self._width, passing)
            nearest.make_room(int(counts.max(initial=0)))
            nearest.join(some, far, rows[nodes], counts)

    def _compare(self, nearest: TopKHeaps, wanted: Sequence[_Part]) -> None:
        """Compare all rows of partitions."""
        numbers, partitions, passing, queries = zip(*wanted, strict=True)
        rows = [each.rows for each in partitions]
        if not nearest.has_room:
            nearest.make_room(sum(map(len, rows)))
        counts = [len(each) for each in queries]
        pairs = Pairs(
            [each.codes for each in partitions],
            rows,
            list(passing),
            np.arange(len(counts)).repeat(counts),
            np.array(numbers).repeat(counts),
            np.concatenate(queries),
        )
        self._asks.prepare(pairs).keep(nearest.heaps, pairs.as_one)


def _walks(wanted: _Part) -> bool:
    _, partition, passing, _ = wanted
    return isinstance(partition.codes, RowCodes) and not _is_rare(passing)


def _is_rare(passing: RowMask | None) -> bool:
    return passing is not None and int(np.count_nonzero(passing)) * _FEW < len(passing)
