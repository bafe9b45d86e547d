"""The partitions of an index, read when a search asks them, and remembered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any, Final, TypeVar, cast

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.memory import copied
from pennon.encoding.rows import Rows
from pennon.errors import FormatError
from pennon.index.files import IndexFile, IndexFiles, whole_numbers
from pennon.index.row_set import Numbers
from pennon.index.vector import hnsw_graph as graphs
from pennon.index.vector.code_columns import values_of
from pennon.index.vector.hnsw_graph import Graph, GraphPlan
from pennon.index.vector.layout import ROWS, check_rows
from pennon.index.vector.quantizer import Codes, Quantizer
from pennon.index.vector.wire import Partitions, Vectors

_Column = TypeVar("_Column", "pa.Array[Any]", Vectors)

_AT_ONCE: Final = 64 << 20
"""Partitions are read together as long as they take no more memory than this."""
_WIDE: Final = 256 << 10
"""A column that takes more bytes than this of a partition is read apart for each."""
_MOST_GROWTH: Final = 1024
"""Codes do not take more memory than so many times the size of their file; those that say so are damaged."""


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """A partition: the numbers of its rows, their codes, and a graph over these if there is one."""

    rows: Numbers
    codes: Codes
    graph: Graph | None = None
    size_bytes: int = field(init=False)
    """How much memory it takes."""

    def __post_init__(self) -> None:
        """Add up what its parts take."""
        graph = 0 if self.graph is None else self.graph.size_bytes
        size_bytes = self.rows.nbytes + self.codes.size_bytes + graph
        object.__setattr__(self, "size_bytes", size_bytes)


class PartitionReader(ABC):
    """Reads partitions of an index, those that are not remembered."""

    has_graphs: bool = False

    def __init__(self, files: IndexFiles, lengths: Int64Array, row_bytes: int) -> None:
        self._files = files
        self._lengths = lengths
        self._row_bytes = row_bytes + 8

    @property
    def size_bytes(self) -> int:
        """Return how much memory it takes."""
        return 3 * self._lengths.nbytes

    @property
    def lengths(self) -> Int64Array:
        """Return how many rows each partition has."""
        return self._lengths

    def rows_of(self, partition: int) -> int:
        """Return how many rows a partition has."""
        return int(self._lengths[partition])

    def read(self, numbers: Sequence[int]) -> Iterable[Partition]:
        """Return partitions in the order asked for: a list if all are remembered; others are read side by side."""
        folder = self._files.folder
        known = self._files.known_each([("vectors", folder, number) for number in numbers])
        return (
            self._with_missing(numbers, known) if None in known else cast("list[Partition]", known)
        )

    def _with_missing(
        self, numbers: Sequence[int], known: Sequence[Partition | None]
    ) -> Iterator[Partition]:
        """Yield partitions: cached ones, and those that are read now."""
        found = {n: each for n, each in zip(numbers, known, strict=True) if each is not None}
        missing = [number for number in numbers if number not in found]
        for number in numbers:
            if number not in found:
                some = self._next(missing)
                missing = missing[len(some) :]
                for each, made in zip(some, self._read(some), strict=True):
                    key = "vectors", self._files.folder, each
                    found[each] = self._files.keep(key, made, made.size_bytes)
            yield found.pop(number)

    @abstractmethod
    def _read(self, numbers: Sequence[int]) -> list[Partition]:
        """Return partitions, in the order asked for."""

    def _next(self, numbers: Sequence[int]) -> list[int]:
        """Return as many of the first partitions as are read at once."""
        sizes = (self._lengths[np.array(numbers, np.int64)] * self._row_bytes).cumsum()
        count = int(sizes.searchsorted(_AT_ONCE, side="right"))
        return list(numbers[: max(count, 1)])


@dataclass(frozen=True, slots=True, eq=False)
class GraphFile:
    """The graphs of all partitions: rows ``offsets[p]`` to ``offsets[p] + lengths[p]`` are that of p."""

    file: IndexFile
    partitions: Partitions
    plan: Callable[[int], GraphPlan]


class ColumnReader(PartitionReader):
    """A reader of partitions whose codes are columns of a file."""

    def __init__(
        self,
        files: IndexFiles,
        codes: IndexFile,
        partitions: Partitions,
        quantizer: Quantizer,
        graph: GraphFile | None,
    ) -> None:
        """Take partitions that were found to be the rows of the file (`check_rows`).  Raises FormatError."""
        super().__init__(files, partitions.lengths, quantizer.row_bytes)
        if (codes.rows * self._row_bytes) > _MOST_GROWTH * codes.source.size_bytes:
            message = f"{codes.source.path} has {codes.source.size_bytes} bytes and says {codes.rows} rows"
            raise FormatError(message)
        if graph is not None:
            check_rows(graph.file, graph.partitions)
        self._codes, self._partitions, self._graph = codes, partitions, graph
        self._quantizer, self.has_graphs = quantizer, graph is not None

    def _read(self, numbers: Sequence[int]) -> list[Partition]:
        parts = np.array(numbers, np.int64)
        names = [ROWS, *self._quantizer.columns]
        (row_ids, *columns), places = _read_columns(self._codes, names, self._partitions, parts)
        numbers_of_rows = whole_numbers(row_ids[0], "rows of an index")
        values = [[values_of(each) for each in column] for column in columns]
        codes = zip(*[_of_each(each, places) for each in values], strict=True)
        made = [self._quantizer.codes(each, by_rows=self._graph is not None) for each in codes]
        found_graphs = map(self._checked, self._graphs(parts), numbers)
        # what is remembered is a copy: a part would hold all that was read with it
        rows = [copied(numbers_of_rows[start:end]) for start, end in places]
        return list(map(Partition, rows, made, found_graphs))

    def _graphs(self, parts: Int64Array) -> Sequence[list[pa.Array[Any]] | None]:
        if self._graph is None:
            return [None] * len(parts)
        return pieces(self._graph.file, graphs.COLUMNS, self._graph.partitions, parts)

    def _checked(self, columns: list[pa.Array[Any]] | None, number: int) -> Graph | None:
        if columns is None or self._graph is None:
            return None
        return Graph.of(columns, self._graph.plan(number), self.rows_of(number))


def pieces(
    file: IndexFile, names: Sequence[str], partitions: Partitions, parts: Int64Array
) -> list[list[pa.Array[Any]]]:
    """Return columns of some partitions, of each in turn; in as few rounds as one takes.

    Raises FormatError if they overlap.
    """
    columns, places = _read_columns(file, names, partitions, parts)
    by_column = [_of_each(each, places) for each in columns]
    return [list(each) for each in zip(*by_column, strict=True)]


def _read_columns(
    file: IndexFile, names: Sequence[str], partitions: Partitions, parts: Int64Array
) -> tuple[list[list[pa.Array[Any]]], list[tuple[int, int]]]:
    """Return columns of some partitions, each as an array of every partition, or one of all; and where they lie in that.

    Raises FormatError if they overlap.
    """
    starts, lengths = partitions.offsets[parts], partitions.lengths[parts]
    order = starts.argsort(kind="stable")
    first, last = starts[order], starts[order] + lengths[order]
    if (first[1:] < last[:-1]).any():
        message = f"partitions of {file.source.path} overlap"
        raise FormatError(message)
    together = Rows.ranges(first, last)
    apart = {name for name in names if _is_wide(file.type_of(name), together.count, len(parts))}
    places = np.zeros(len(parts), np.int64)
    places[order] = (last - first).cumsum() - (last - first)
    ranges = zip(starts.tolist(), lengths.tolist(), strict=True)
    each = [Rows.between(start, start + size) for start, size in ranges] if apart else []
    wanted = [(name, rows) for name in names for rows in (each if name in apart else [together])]
    read = iter(file.read_each(wanted))
    columns = [[next(read) for _ in each] if name in apart else [next(read)] for name in names]
    return columns, list(zip(places.tolist(), (places + lengths).tolist(), strict=True))


def _of_each(columns: list[_Column], places: Sequence[tuple[int, int]]) -> list[_Column]:
    """Return a column of each partition: such columns, or parts of one of all partitions."""
    if len(columns) == len(places):
        return columns
    return [columns[0][start:end] for start, end in places]


def _is_wide(kind: pa.DataType, rows: int, partitions: int) -> bool:
    """Return whether a column takes so much of each partition that these are read apart, and need not be cut."""
    if not pa.types.is_fixed_size_list(kind):
        return False
    return bool(rows * kind.list_size * kind.value_type.bit_width // 8 > partitions * _WIDE)
