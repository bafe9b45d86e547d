"""IVF: rows by partitions, of which those are searched whose centroids are near.

Queries are searched together: each round has pairs of a query and a partition, sorted by partition, so that one is read
and decoded once for all queries that ask it.  Where a query has fewer rows than wanted after a round, the next round
has its next partition.
Source: reference index-vector, 6.3 and 6.8.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array
from pennon.encoding.kernels.vector_scan import keep_nearest
from pennon.errors import ArgumentError
from pennon.index.row_set import Numbers
from pennon.index.vector.base import Allowed, Floats, Found, Probes
from pennon.index.vector.codes import INFINITE, Apart, Ask, Asked, Passing, Quantizer, RowCodes
from pennon.index.vector.partition_reader import Partition, PartitionReader
from pennon.index.vector.settings import Graph, VectorSettings
from pennon.index.vector.wire import Vectors

_AT_ONCE: Final = 256
"""Queries that are searched together: what each is compared by takes up to a megabyte."""
_FEW: Final = 10
"""Where no more than one of so many rows of a partition may be found, its graph is not walked."""


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
        nearest = [_Nearest(k) for _ in numbers]
        if len(numbers) and k > 0 and fewest:
            asks = self._quantizer.asks(vectors[numbers])
            width = max(probes.ef or k + k // 2, k)
            search = _Search(self, self._reader, vectors[numbers], asks, width, allowed)
            search.run(nearest, fewest, most)
        return _found(numbers, nearest)

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

    def near_partitions(self, query: Vectors, count: int) -> Int64Array:
        """Return the partitions whose centroids are nearest to a query, nearest first."""
        kind = {"hamming": Apart.BITS, "dot": Apart.PRODUCTS}.get(self.metric, Apart.SQUARES)
        asked = Asked(kind, query.astype(self._centroids.dtype, copy=False))
        distances = RowCodes(_bytes(self._centroids)).distances(asked, INFINITE)
        # a centroid that is no number is the farthest
        np.nan_to_num(distances, copy=False, nan=np.inf, posinf=np.inf, neginf=-np.inf)
        best = _Nearest(count)
        best.add(distances, np.arange(len(distances), dtype=np.uint64), None)
        return best.sorted()[0].astype(np.int64)


class _Nearest:
    """The nearest rows of a query so far: a heap, the farthest on top."""

    __slots__ = ("_distances", "_rows", "count", "most")

    def __init__(self, most: int) -> None:
        self.most, self.count = most, 0
        size = max(min(most, 1024), 1)
        self._distances, self._rows = np.empty(size, np.float32), np.empty(size, np.uint64)

    @property
    def bound(self) -> float:
        """Return how far a row may be to be among them."""
        return float(self._distances[0]) if self.count == self.most else INFINITE

    def add(self, distances: Floats, rows: Numbers, passing: Passing | None) -> None:
        """Put rows in."""
        size = len(self._distances)
        if size < self.most and self.count + len(rows) > size:  # a heap of few is one of many
            grown = min(self.most, max(2 * size, self.count + len(rows)))
            self._distances = np.resize(self._distances, grown)
            self._rows = np.resize(self._rows, grown)
        self.count = keep_nearest(self._distances, self._rows, self.count, distances, rows, passing)

    def sorted(self) -> tuple[Numbers, Floats]:
        """Return the rows, nearest first, and how far they are."""
        rows, distances = self._rows[: self.count], self._distances[: self.count]
        order = np.lexsort((rows, distances))
        return rows[order], distances[order]


class _Search:
    """A search of queries."""

    def __init__(
        self,
        index: IvfIndex,
        reader: PartitionReader,
        vectors: Vectors,
        asks: Sequence[Ask],
        width: int,
        allowed: Allowed | None,
    ) -> None:
        self._index, self._reader, self._vectors = index, reader, vectors
        self._asks, self._width, self._allowed = asks, width, allowed

    def run(self, nearest: Sequence[_Nearest], fewest: int, most: int) -> None:
        """Search the nearest partitions of each query, ``fewest`` of them, and more where rows are few."""
        index, count = self._index, fewest
        order = [index.near_partitions(query, fewest) for query in self._vectors]
        self._round(
            nearest, [(part, at) for at, near in enumerate(order) for part in near.tolist()]
        )
        hungry = [at for at, best in enumerate(nearest) if best.count < best.most]
        if count < most:
            order = [index.near_partitions(self._vectors[at], most) for at in hungry]
        while hungry and count < most:
            self._round(
                nearest, [(int(near[count]), at) for at, near in zip(hungry, order, strict=True)]
            )
            count += 1
            left = [
                (at, near)
                for at, near in zip(hungry, order, strict=True)
                if nearest[at].count < nearest[at].most
            ]
            hungry, order = [at for at, _ in left], [near for _, near in left]

    def _round(self, nearest: Sequence[_Nearest], pairs: list[tuple[int, int]]) -> None:
        """Search pairs of a partition and a query."""
        filled = [pair for pair in pairs if self._reader.rows_of(pair[0])]
        groups = [
            (part, [at for _, at in of]) for part, of in groupby(sorted(filled), itemgetter(0))
        ]
        partitions = self._reader.read([part for part, _ in groups])
        for (number, queries), partition in zip(groups, partitions, strict=True):
            passing = None
            if self._allowed is not None:
                passing = self._allowed(partition.rows).view(np.uint8)
                if not passing.any():
                    continue
            for at in queries:
                self._ask(nearest[at], self._asks[at].at(number), partition, passing)

    def _ask(
        self, best: _Nearest, asked: Any, partition: Partition, passing: Passing | None
    ) -> None:
        codes, graph = partition.codes, partition.graph
        if graph is None or not isinstance(codes, RowCodes) or _is_rare(passing):
            best.add(codes.distances(asked, best.bound), partition.rows, passing)
            return
        nodes, distances = codes.walk(asked, graph, self._width, passing)
        best.add(distances, partition.rows[nodes], None)


def _is_rare(passing: Passing | None) -> bool:
    return passing is not None and int(np.count_nonzero(passing)) * _FEW < len(passing)


def _bytes(matrix: Vectors) -> npt.NDArray[np.uint8]:
    return matrix.view(np.uint8).reshape(len(matrix), -1)


def _found(numbers: Int64Array, nearest: Iterable[_Nearest]) -> Found:
    found = [each.sorted() for each in nearest]
    queries = np.repeat(numbers, [len(rows) for rows, _ in found])
    rows = [rows for rows, _ in found] or [np.empty(0, np.uint64)]
    distances = [distances for _, distances in found] or [np.empty(0, np.float32)]
    return Found(queries.astype(np.int64), np.concatenate(rows), np.concatenate(distances))
