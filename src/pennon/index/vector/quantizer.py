"""Rows of a partition as they are compared with queries: what all quantisers make of columns."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Any, ClassVar, Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.index.files import IndexFile
from pennon.index.kernels.vectors.hnsw_search import walk_graph
from pennon.index.kernels.vectors.vector_rows import (
    CodeRows,
    RowParts,
    bounds_bytes,
    keep_rows,
    quantise_rows,
    row_distances,
)
from pennon.index.kernels.vectors.work_chunks import WorkChunks
from pennon.index.row_set import Numbers
from pennon.index.vector.base import Floats, Floats2D
from pennon.index.vector.hnsw_graph import Graph
from pennon.index.vector.metric import BOUNDED_KINDS, DistanceKind
from pennon.index.vector.wire import Vectors

_TIMES: Final = 2
"""Rows that are compared so many times are quantised."""
Bytes1D = npt.NDArray[np.uint8]
Bytes2D = npt.NDArray[np.uint8]
RowMask = npt.NDArray[np.uint8]
Heaps: TypeAlias = tuple[Floats2D, npt.NDArray[np.uint64], Int64Array]
"""How far the nearest rows of each query are, which they are, and how many: see `keep_nearest` of the kernels."""


@dataclass(frozen=True, slots=True, eq=False)
class EncodedQueries:
    """Queries as they are compared with the codes of a partition, one in each row.

    The distance of query ``q`` from a row is ``starts[q] + factor * raw``, with the raw one of ``kind``.
    """

    kind: DistanceKind
    queries: Vectors
    starts: float | Floats = 0.0
    factor: float = 1.0

    @property
    def bytes(self) -> npt.NDArray[np.uint8]:
        """Return the queries as kernels take them."""
        return self.queries.reshape(len(self.queries), -1).view(np.uint8)

    def at(self, numbers: Int64Array | slice) -> EncodedQueries:
        """Return some of the queries."""
        starts = self.starts if isinstance(self.starts, float) else self.starts[numbers]
        return EncodedQueries(self.kind, self.queries[numbers], starts, self.factor)

    __getitem__ = at

    def scaled(self, raw: Floats2D) -> Floats2D:
        """Return distances, in place of raw ones: a row for each query."""
        if self.factor != 1.0:
            raw *= np.float32(self.factor)
        if not isinstance(self.starts, float):
            raw += self.starts[:, None]
        elif self.starts != 0.0:
            raw += np.float32(self.starts)
        return raw


class Codes(Protocol):
    """The rows of a partition, as a quantiser keeps them."""

    @property
    def size_bytes(self) -> int:
        """Return how much memory they take."""

    def __len__(self) -> int: ...


class ScanOrder(Enum):
    """In which order pairs of a partition and a query are best searched."""

    PARTITIONS = auto()
    """The rows of one are compared with all queries that ask it while they are in the processor's cache."""
    QUERIES = auto()
    """Rows are looked at the less, the nearer those are that were found: the nearest partition of each comes first."""
    NEAREST_THEN_REST = auto()
    """Both: the nearest partition of each query, then all others, by partition; distances are exact in any order."""


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of a partition and a query.

    ``codes``, ``rows`` (their numbers) and ``passing`` (which of them may be found; None: all) are of each partition.
    Pair ``n`` is of the partition at ``places[n]`` of these; ``partitions`` and ``queries`` are the numbers of each pair.
    """

    codes: Sequence[Any]
    rows: Sequence[Numbers]
    passing: Sequence[RowMask | None]
    places: Int64Array
    partitions: Int64Array
    queries: Int64Array

    def at(self, some: slice | Int64Array) -> Pairs:
        """Return some of the pairs."""
        places, partitions = self.places[some], self.partitions[some]
        return Pairs(self.codes, self.rows, self.passing, places, partitions, self.queries[some])

    @property
    def as_one(self) -> WorkChunks:
        """Return all pairs as one chunk of work."""
        return WorkChunks(np.array([0, len(self.queries)]))

    @property
    def lengths(self) -> Int64Array:
        """Return how many rows the partition of each pair has."""
        return np.array([len(each) for each in self.rows], np.int64)[self.places]


class Quantizer(Protocol):
    """The protocol of quantizers: rows become codes."""

    @property
    def kind(self) -> str:
        """Return what pylance calls it, such as ``PQ``."""

    @property
    def bits(self) -> int:
        """Return how many bits the code of a number, or of a part, has."""

    @property
    def parts(self) -> int:
        """Return into how many parts PQ cuts a vector; 0 of others."""

    @property
    def columns(self) -> Sequence[str]:
        """Return the columns that codes are in."""

    @property
    def row_bytes(self) -> int:
        """Return how many bytes a row takes in memory."""

    @property
    def size_bytes(self) -> int:
        """Return how much memory it takes."""

    def check(self, file: IndexFile) -> None:
        """Raise FormatError if columns of a file do not have its codes."""

    def codes(self, columns: Sequence[Vectors], *, by_rows: bool) -> Codes:
        """Return the codes of a partition; ``by_rows``: as a graph needs them, `RowCodes`.

        The columns may be parts of what was read of more partitions, of which the codes hold none.
        Raises FormatError if they have values of another type.
        """

    def asks(self, vectors: Vectors) -> QueryBatch:
        """Return queries as the quantiser compares them with rows."""


class QueryBatch(Protocol):
    """Queries."""

    @property
    def order(self) -> ScanOrder:
        """Return in which order pairs are best searched."""

    def prepare(self, pairs: Pairs) -> PreparedScan:
        """Return pairs made ready to be searched."""


class PreparedScan(Protocol):
    """Pairs that are ready to be searched, by several threads at once."""

    @property
    def chunk_pairs(self) -> int:
        """Return how many pairs are best searched at a time: to begin with some takes no time, or some."""

    def keep(self, heaps: Heaps, chunks: WorkChunks) -> None:
        """Put the rows of partitions that are nearest to the queries that ask them into the heaps of these.

        Chunks of the pairs are taken until there are no more.
        """


class RowQueries(QueryBatch, Protocol):
    """Queries that can be compared with some rows, as walks over graphs do."""

    def at(self, partitions: Int64Array, numbers: Int64Array) -> EncodedQueries:
        """Return some of the queries, each as it is compared with rows of a partition."""


class Uint8Bounds:
    """Float32 vectors quantised to uint8, used as lower bounds to skip exact distances.

    They are a quarter of what the vectors take, and are made when these are asked again: a first query after a table was
    opened would wait for them in vain.
    """

    __slots__ = ("_bytes", "_compared", "_is_begun", "_rows", "size_bytes")

    def __init__(self, rows: npt.NDArray[np.uint8]) -> None:
        """Take the bytes of rows of float32."""
        self._rows = rows
        self._bytes: npt.NDArray[np.uint8] | None = None
        self._compared, self._is_begun = 0, False
        self.size_bytes = bounds_bytes(len(rows), rows.shape[1] // 4)
        """How much memory they take, or will."""

    def bytes_for(self, compared: int) -> npt.NDArray[np.uint8] | None:
        """Return the bytes of rows for a number of comparisons; None if they were not quantised."""
        if not self._is_begun:
            self._compared += compared
            if self._compared >= _TIMES * len(self._rows):
                self._is_begun = True  # other threads compare the rows as they are meanwhile
                made = np.empty(self.size_bytes, np.uint8)
                if self.size_bytes and quantise_rows(self._rows, made):
                    self._bytes = made
        return self._bytes


class RowCodes:
    """Codes row by row: ``rows`` are their bytes; ``bounds``: those of vectors that are worth it."""

    __slots__ = ("_held", "bounds", "rows")

    def __init__(self, rows: Bytes2D, bounds: Uint8Bounds | None = None) -> None:
        self.rows, self.bounds = rows, bounds
        self._held: tuple[Numbers, CodeRows] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def size_bytes(self) -> int:
        """See `Codes.size_bytes`."""
        return self.rows.nbytes + (0 if self.bounds is None else self.bounds.size_bytes)

    def of(self, numbers: Numbers, queries: int) -> CodeRows:
        """Return the rows as kernels take them, remembered: a partition has the same numbers at each search.

        If so many queries are worth it, they are quantised.
        """
        held = self._held
        if held is None or held[0] is not numbers:
            self._held = held = numbers, CodeRows(self.rows, numbers)
        rows = held[1]
        if self.bounds is not None and not rows.has_bounds:
            made = self.bounds.bytes_for(queries * len(self.rows))
            if made is not None:
                rows.take_bounds(made)
        return rows

    def at(self, places: Int64Array) -> RowCodes:
        """Return some of the rows."""
        return RowCodes(self.rows[places])

    def distances(self, asked: EncodedQueries) -> Floats2D:
        """Return how far each row is from each query."""
        out = np.empty((len(asked.queries), len(self.rows)), np.float32)
        row_distances(asked.kind, self.rows, asked.bytes, out)
        return asked.scaled(out)

    def walk(
        self, asked: EncodedQueries, graph: Graph, width: int, passing: RowMask | None
    ) -> tuple[npt.NDArray[np.uint32], Floats2D, Int64Array]:
        """Return some nodes of a graph near each query, in a row, and how far they are; and how many are of each."""
        count, width = len(asked.queries), min(width, len(self.rows))
        nodes, distances = np.zeros((count, width), np.uint32), np.zeros((count, width), np.float32)
        found = np.zeros(count, np.int64)
        walk_graph(
            asked.kind,
            self.rows,
            asked.bytes,
            graph.nodes,
            graph.levels,
            graph.ends,
            graph.neighbours,
            graph.entry,
            passing,
            nodes,
            distances,
            found,
        )
        return nodes, asked.scaled(distances), found


@dataclass(frozen=True, slots=True, eq=False)
class TableCodes:
    """Column-major PQ codes: row m of ``bytes`` has byte m of all rows, decoded through lookup tables."""

    bytes: Bytes2D

    def __len__(self) -> int:
        return int(self.bytes.shape[1])

    @property
    def size_bytes(self) -> int:
        """See `Codes.size_bytes`."""
        return self.bytes.nbytes


@dataclass(frozen=True, slots=True, eq=False)
class PlainQueries:
    """Queries that are the same for all partitions."""

    asked: EncodedQueries

    @property
    def order(self) -> ScanOrder:
        """See `QueryBatch.order`."""
        is_bounded = self.asked.kind in BOUNDED_KINDS
        return ScanOrder.NEAREST_THEN_REST if is_bounded else ScanOrder.PARTITIONS

    def prepare(self, pairs: Pairs) -> PreparedScan:
        """See `QueryBatch.prepare`."""
        asking = np.bincount(pairs.places, minlength=len(pairs.codes)).tolist()
        each = zip(pairs.codes, pairs.rows, asking, strict=True)
        rows = [codes.of(numbers, count) for codes, numbers, count in each]
        parts = RowParts(self.asked.kind, rows, pairs.passing)
        return _RowPairs(self.asked, parts, pairs.places, pairs.queries)

    def at(self, partitions: Int64Array, numbers: Int64Array) -> EncodedQueries:  # noqa: ARG002 - as others take it
        """See `RowQueries.at`."""
        return self.asked.at(numbers)


@dataclass(frozen=True, slots=True, eq=False)
class _RowPairs:
    """Pairs of rows and queries that are the same for all partitions."""

    chunk_pairs: ClassVar[int] = 1

    asked: EncodedQueries
    parts: RowParts
    places: Int64Array
    queries: Int64Array

    def keep(self, heaps: Heaps, chunks: WorkChunks) -> None:
        """See `PreparedScan.keep`."""
        asked = self.asked
        starts = np.broadcast_to(np.float32(asked.starts), len(asked.queries))
        keep_rows(
            self.parts,
            self.places,
            self.queries,
            self.queries,
            asked.bytes,
            np.ascontiguousarray(starts),
            asked.factor,
            *heaps,
            chunks,
        )
