"""Rows of a partition as they are compared with queries: what all quantisers make of columns."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.memory import kept
from pennon.encoding.kernels.graph_walks import walk_graph
from pennon.encoding.kernels.vector_rows import keep_rows, row_distances
from pennon.errors import FormatError
from pennon.index.files import IndexFile
from pennon.index.row_set import Numbers
from pennon.index.vector.base import Floats, Floats2D
from pennon.index.vector.cut_rows import CutRows
from pennon.index.vector.hnsw import Graph
from pennon.index.vector.wire import Vectors

Bytes1D = npt.NDArray[np.uint8]
Bytes2D = npt.NDArray[np.uint8]
Passing = npt.NDArray[np.uint8]
Heaps: TypeAlias = tuple[Floats2D, npt.NDArray[np.uint64], Int64Array]
"""How far the nearest rows of each query are, which they are, and how many: see `keep_nearest` of the kernels."""


class Apart(IntEnum):
    """How rows are compared: the numbers of `pennon.encoding.kernels.vector_rows`."""

    SQUARES = 0
    PRODUCTS = 1
    SQUARES_64 = 2
    PRODUCTS_64 = 3
    CODE_SQUARES = 4
    CODE_PRODUCTS = 5
    BITS = 6
    TABLES = 7


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """Queries as they are compared with the codes of a partition, one in each row.

    The distance of query ``q`` from a row is ``starts[q] + factor * raw``, with the raw one of ``kind``.
    """

    kind: Apart
    queries: Vectors
    starts: float | Floats = 0.0
    factor: float = 1.0

    @property
    def bytes(self) -> npt.NDArray[np.uint8]:
        """Return the queries as kernels take them."""
        return self.queries.reshape(len(self.queries), -1).view(np.uint8)

    def at(self, numbers: Int64Array | slice) -> Asked:
        """Return some of the queries."""
        starts = self.starts if isinstance(self.starts, float) else self.starts[numbers]
        return Asked(self.kind, self.queries[numbers], starts, self.factor)

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
        ...

    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of a partition and a query.

    ``codes``, ``rows`` (their numbers) and ``passing`` (which of them may be found; None: all) are of each partition.
    Pair ``n`` is of the partition at ``places[n]`` of these; ``partitions`` and ``queries`` are the numbers of each pair.
    """

    codes: Sequence[Any]
    rows: Sequence[Numbers]
    passing: Sequence[Passing | None]
    places: Int64Array
    partitions: Int64Array
    queries: Int64Array

    @property
    def ends(self) -> Int64Array:
        """Return where the pairs of each partition end, where those of the first one come first, and so on."""
        return np.bincount(self.places, minlength=len(self.codes)).cumsum()

    def at(self, some: slice | Int64Array) -> Pairs:
        """Return some of the pairs."""
        places, partitions = self.places[some], self.partitions[some]
        return Pairs(self.codes, self.rows, self.passing, places, partitions, self.queries[some])

    def between(self, start: int, end: int) -> Pairs:
        """Return some of the pairs, which come by partition, with the partitions from the first to the last that they have."""
        places, some = self.places[start:end], slice(start, end)
        few = slice(int(places[0]), int(places[-1]) + 1)
        return Pairs(
            self.codes[few],
            self.rows[few],
            self.passing[few],
            places - places[0],
            self.partitions[some],
            self.queries[some],
        )


class Quantizer(Protocol):
    """How rows become codes."""

    @property
    def kind(self) -> str:
        """Return what pylance calls it, such as ``PQ``."""
        ...

    @property
    def bits(self) -> int:
        """Return how many bits the code of a number, or of a part, has."""
        ...

    @property
    def parts(self) -> int:
        """Return into how many parts PQ cuts a vector; 0 of others."""
        ...

    @property
    def columns(self) -> Sequence[str]:
        """Return the columns that codes are in."""
        ...

    @property
    def row_bytes(self) -> int:
        """Return how many bytes a row takes in memory."""
        ...

    @property
    def size_bytes(self) -> int:
        """Return how much memory it takes."""
        ...

    def check(self, file: IndexFile) -> None:
        """Raise FormatError if columns of a file do not have its codes."""
        ...

    def codes(self, columns: Sequence[Vectors], *, by_rows: bool) -> Codes:
        """Return the codes of a partition; ``by_rows``: as a graph needs them, `RowCodes`.

        The columns may be parts of what was read of more partitions, of which the codes hold none.
        Raises FormatError if they have values of another type.
        """
        ...

    def asks(self, vectors: Vectors) -> Asks:
        """Return queries as the quantiser compares them with rows."""
        ...


class Asks(Protocol):
    """Queries."""

    @property
    def leaves_out(self) -> bool:
        """Return whether rows are looked at the less, the nearer those are that a heap has; then pairs come by query."""
        ...

    def keep(self, pairs: Pairs, heaps: Heaps) -> None:
        """Put the rows of partitions that are nearest to the queries that ask them into the heaps of these."""
        ...


class AsksByRow(Asks, Protocol):
    """Queries that can be compared with some rows, as walks over graphs do."""

    def at(self, partitions: Int64Array, numbers: Int64Array) -> Asked:
        """Return some of the queries, each as it is compared with rows of a partition."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class RowCodes:
    """Codes row by row: ``rows`` are their bytes; ``cut``: of vectors that may be cut."""

    rows: Bytes2D
    cut: CutRows | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def size_bytes(self) -> int:
        """See `Codes.size_bytes`."""
        return self.rows.nbytes + (0 if self.cut is None else self.cut.size_bytes)

    def cut_for(self, queries: int) -> Bytes1D | None:
        """Return the rows cut to bytes, if some queries are worth that; None if they are not, or cannot be cut."""
        return None if self.cut is None else self.cut.bytes_for(queries * len(self.rows))

    def at(self, places: Int64Array) -> RowCodes:
        """Return some of the rows."""
        return RowCodes(self.rows[places])

    def distances(self, asked: Asked) -> Floats2D:
        """Return how far each row is from each query."""
        out = np.empty((len(asked.queries), len(self.rows)), np.float32)
        row_distances(asked.kind, self.rows, asked.bytes, out)
        return asked.scaled(out)

    def walk(
        self, asked: Asked, graph: Graph, width: int, passing: Passing | None
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
    """Codes byte by byte: row m of ``bytes`` has byte m of all rows, each of which is looked up in a table."""

    bytes: Bytes2D

    def __len__(self) -> int:
        return int(self.bytes.shape[1])

    @property
    def size_bytes(self) -> int:
        """See `Codes.size_bytes`."""
        return self.bytes.nbytes


@dataclass(frozen=True, slots=True, eq=False)
class Everywhere:
    """Queries that are the same for all partitions."""

    asked: Asked

    @property
    def leaves_out(self) -> bool:
        """See `Asks.leaves_out`."""
        return self.asked.kind in {Apart.SQUARES, Apart.PRODUCTS}  # of which rows are cut

    def keep(self, pairs: Pairs, heaps: Heaps) -> None:
        """See `Asks.keep`."""
        asked = self.asked
        starts = np.broadcast_to(np.float32(asked.starts), len(asked.queries))
        counts = np.bincount(pairs.places, minlength=len(pairs.codes)).tolist()
        keep_rows(
            asked.kind,
            [each.rows for each in pairs.codes],
            [each.cut_for(count) for each, count in zip(pairs.codes, counts, strict=True)],
            pairs.rows,
            pairs.passing,
            pairs.places,
            pairs.queries,
            pairs.queries,
            asked.bytes,
            np.ascontiguousarray(starts),
            asked.factor,
            *heaps,
        )

    def at(self, partitions: Int64Array, numbers: Int64Array) -> Asked:  # noqa: ARG002 - as others take it
        """See `AsksByRow.at`."""
        return self.asked.at(numbers)


def list_type(file: IndexFile, name: str, width: int) -> pa.DataType:
    """Return the type of the items of a column of lists of ``width`` items.  Raises FormatError."""
    kind = file.type_of(name)
    if not pa.types.is_fixed_size_list(kind) or kind.list_size != width:
        message = f"{file.source.path}: {name} is {kind}, and no list of {width} items"
        raise FormatError(message)
    return kind.value_type


def check_bytes(file: IndexFile, name: str, width: int) -> None:
    """Raise FormatError unless a column has lists of ``width`` bytes."""
    if (kind := list_type(file, name, width)) != pa.uint8():
        message = f"{file.source.path}: {name} has codes that are {kind}, and no bytes"
        raise FormatError(message)


def matrix_of(column: pa.Array[Any]) -> Vectors:
    """Return the lists of a column row by row, not copied.  Raises FormatError if one is NULL."""
    width = column.type.list_size
    items = column.values.slice(column.offset * width, len(column) * width)
    if column.null_count or items.null_count:
        message = f"a column of codes has {column.null_count} NULLs"
        raise FormatError(message)
    values: Vectors = np.asarray(items.to_numpy(zero_copy_only=False))
    return values.reshape(len(column), width)


def values_of(column: pa.Array[Any]) -> Vectors:
    """Return a column of numbers, or of lists of them row by row, not copied.  Raises FormatError if one is NULL."""
    if pa.types.is_fixed_size_list(column.type):
        return matrix_of(column)
    if column.null_count:
        message = "codes of an index are NULL"
        raise FormatError(message)
    values: Vectors = np.asarray(column.to_numpy(zero_copy_only=False))
    return values


def kept_rows(rows: Vectors) -> Vectors:
    """Return rows to be remembered: copied where they are a part of what was read."""
    whole = rows.base
    return kept(rows, whole.nbytes if isinstance(whole, np.ndarray) else rows.nbytes)
