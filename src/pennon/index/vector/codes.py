"""Rows of a partition as they are compared with queries: what all quantisers make of columns."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.encoding.kernels.vector_rows import row_distances, walk_graph
from pennon.encoding.kernels.vector_scan import looked_up
from pennon.errors import FormatError
from pennon.index.files import IndexFile
from pennon.index.vector.base import Floats
from pennon.index.vector.hnsw import Graph
from pennon.index.vector.wire import Vectors

Bytes2D = npt.NDArray[np.uint8]
Passing = npt.NDArray[np.uint8]

INFINITE: Final = float("inf")


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
    """A query as it is compared with the codes of a partition.

    Its distance from a row is ``start + factor * raw``, with the raw one of ``kind``.
    """

    kind: Apart
    query: Vectors
    start: float = 0.0
    factor: float = 1.0

    @property
    def bytes(self) -> npt.NDArray[np.uint8]:
        """Return the query as kernels take it."""
        return self.query.reshape(-1).view(np.uint8)

    def scaled(self, raw: Floats) -> Floats:
        """Return distances, in place of raw ones."""
        if self.factor != 1.0:
            raw *= np.float32(self.factor)
        if self.start != 0.0:
            raw += np.float32(self.start)
        return raw


class Codes(Protocol):
    """The rows of a partition, as a quantiser keeps them."""

    @property
    def size_bytes(self) -> int:
        """Return how much memory they take."""
        ...

    def __len__(self) -> int: ...

    def distances(self, asked: Any, bound: float) -> Floats:
        """Return how far each row is, at least for those that may be nearer than ``bound``."""
        ...


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

    def codes(self, columns: Sequence[pa.Array[Any]], *, by_rows: bool) -> Codes:
        """Return the codes of a partition; ``by_rows``: as a graph needs them, `RowCodes`."""
        ...

    def asks(self, vectors: Vectors) -> Sequence[Ask]:
        """Return queries as the quantiser compares them with rows."""
        ...


class Ask(Protocol):
    """A query."""

    def at(self, partition: int) -> Any:
        """Return the query as it is compared with codes of a partition."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class RowCodes:
    """Codes row by row: ``rows`` are their bytes."""

    rows: Bytes2D

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def size_bytes(self) -> int:
        """See `Codes.size_bytes`."""
        return self.rows.nbytes

    def distances(self, asked: Asked, bound: float) -> Floats:  # noqa: ARG002 - as others take it
        """See `Codes.distances`."""
        out = np.empty(len(self.rows), np.float32)
        row_distances(asked.kind, self.rows, asked.bytes, out)
        return asked.scaled(out)

    def walk(
        self, asked: Asked, graph: Graph, width: int, passing: Passing | None
    ) -> tuple[npt.NDArray[np.uint32], Floats]:
        """Return some nodes of a graph near a query, and how far they are."""
        width = min(width, len(self.rows))
        nodes, distances = np.empty(width, np.uint32), np.empty(width, np.float32)
        found = walk_graph(
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
        )
        return nodes[:found], asked.scaled(distances[:found])


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

    def distances(self, asked: Asked, bound: float) -> Floats:  # noqa: ARG002 - as others take it
        """See `Codes.distances`."""
        out = np.empty(len(self), np.float32)
        looked_up(self.bytes, asked.query, asked.start, out)
        return out


@dataclass(frozen=True, slots=True, eq=False)
class Everywhere:
    """A query that is the same for all partitions."""

    asked: Any

    def at(self, partition: int) -> Any:  # noqa: ARG002 - as others take it
        """See `Ask.at`."""
        return self.asked


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


def floats_of(column: pa.Array[Any]) -> Floats:
    """Return a column of numbers of 32 bits, copied.  Raises FormatError if it is of something else."""
    if column.type != pa.float32() or column.null_count:
        message = f"factors of codes are {column.type} with {column.null_count} NULLs"
        raise FormatError(message)
    return np.array(column.to_numpy(zero_copy_only=False))
