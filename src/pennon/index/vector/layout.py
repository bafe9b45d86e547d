"""The two files of an index of vectors, and what they say of themselves: for those who search it, merge it, describe it.

::

    index.idx        lance:index {type, distance_type}, lance:ivf -> centroids and rows of graphs, lance:hnsw
    auxiliary.idx    distance_type, lance:ivf -> rows of each partition, storage_metadata -> how codes are read;
                     columns: the number of each row, and its code

What a file says is believed no further than its rows: sizes are compared before they are used.
Source: reference index-vector, 2.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.errors import FormatError, UnsupportedError
from pennon.index.files import IndexFile, IndexFiles, whole_numbers
from pennon.index.row_set import RowSet
from pennon.index.vector.file_settings import (
    Settings,
    json_of,
    metric_of,
    parsed,
    settings,
    settings_of,
    text_of,
)
from pennon.index.vector.metric import Metric
from pennon.index.vector.wire import Partitions, Vectors, parse_partitions, parse_tensor
from pennon.schema.version import V0_1

INDEX: Final = "index.idx"
AUXILIARY: Final = "auxiliary.idx"
ROWS: Final = "_rowid"
KIND: Final = "lance:index"
IVF: Final = "lance:ivf"
GRAPHS: Final = "lance:hnsw"
METRIC: Final = "distance_type"
STORAGE: Final = "storage_metadata"
_QUANTIZERS: Final = {"flat": "FLAT", "__pq_code": "PQ", "__sq_code": "SQ", "_rabit_codes": "RQ"}
"""By a column that only files of the kind have."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The files of an index.  ``kind`` is what ``index.idx`` says, ``HNSW`` in some of 0.15; ``said`` is of the codes.

    ``graphs`` are the rows of each partition's graph, ``parts`` those of its codes.
    """

    index: IndexFile
    codes: IndexFile
    kind: str
    metric: Metric
    quantizer: str
    centroids: Vectors
    graphs: Partitions
    parts: Partitions
    said: Settings

    @property
    def has_graphs(self) -> bool:
        """Return whether partitions have graphs."""
        return GRAPHS in self.index.data.schema_metadata

    def matrix(self, number: Any) -> Vectors:
        """Return the matrix of a global buffer beside the codes, by its number.  Raises FormatError."""
        return parse_tensor(_buffer(self.codes, number))

    @property
    def codebook(self) -> Vectors:
        """Return the codebook of PQ, as it is stored.  Raises FormatError."""
        inside = self.said.bytes_of("codebook_tensor")
        if inside is not None:
            return parse_tensor(inside)
        return self.matrix(self.said.values.get("codebook_position"))

    def graph_settings(self) -> list[Callable[[], Settings]]:
        """Return for each partition what the index says of its graph, parsed when called: FormatError for an empty one.

        Raises FormatError unless it has one entry for each.
        """
        path = self.index.source.path
        return [partial(_graph, path, text) for text in self.graph_texts()]

    def graph_texts(self) -> list[str]:
        """Return the same as it stands there."""
        path, entries = self.index.source.path, json_of(self.index, GRAPHS)
        count = len(self.graphs.lengths)
        if not isinstance(entries, list) or len(entries) != count:
            message = f"{path}: {GRAPHS} must list one graph for each of {count} partitions"
            raise FormatError(message)
        return list(map(str, entries))


def read_layout(files: IndexFiles, index: IndexFile | None = None) -> Layout:
    """Read the ends of both files; ``index.idx`` may be open already.

    Raises FormatError if they are damaged or do not fit one another, UnsupportedError if they are of a kind or a
    layout that is not read here, NotFoundError if there are none.
    """
    index = files.file(INDEX) if index is None else index
    if index.data.version == V0_1:
        message = f"{index.source.path} is of the layout of releases up to 0.15"
        raise UnsupportedError(message)
    codes = files.file(AUXILIARY)
    said = settings_of(index, KIND)
    graphs = parse_partitions(_buffer(index, text_of(index, IVF)))
    parts = parse_partitions(_buffer(codes, text_of(codes, IVF)))
    centroids = graphs.centroids
    if centroids is None or len(parts.lengths) != len(centroids):
        count = "no" if centroids is None else len(centroids)
        message = f"{codes.source.path} has {len(parts.lengths)} partitions and {count} centroids"
        raise FormatError(message)
    check_rows(codes, parts)
    metric = metric_of(text_of(codes, METRIC), codes.source.path)
    quantizer = _quantizer(codes)
    kind = _kind(said, quantizer, metric)
    return Layout(index, codes, kind, metric, quantizer, centroids, graphs, parts, _storage(codes))


def rows_named(files: IndexFiles) -> RowSet:
    """Return all rows that an index names.  Raises NotFoundError for those of releases up to 0.8, of one file."""
    (rows,) = files.file(AUXILIARY).read([ROWS])
    return RowSet.of(whole_numbers(rows, "row numbers of an index"))


def check_rows(file: IndexFile, partitions: Partitions) -> None:
    """Raise FormatError unless the partitions are the rows of a file."""
    rows, ends = file.rows, partitions.offsets + partitions.lengths
    total = int(partitions.lengths.sum())
    if total != rows or (len(ends) and int(ends.max()) > rows):
        message = (
            f"{file.source.path} has {rows} rows, and its partitions have {total}, or leave it"
        )
        raise FormatError(message)


def _kind(said: Settings, quantizer: str, metric: Metric) -> str:
    """Return which index one says that it is.  Raises FormatError if its codes are of another one."""
    kind = str(said.values.get("type"))
    # 0.15 says no more than that there is a graph
    if kind != "HNSW" and kind.rpartition("_")[2] != quantizer:
        message = f"{said.path} is of an index of {kind}, and its codes are {quantizer}"
        raise FormatError(message)
    if metric_of(said.values.get(METRIC), said.path) != metric:
        message = (
            f"{said.path} is of an index by {said.values[METRIC]}, and its codes are by {metric}"
        )
        raise FormatError(message)
    return kind


def _quantizer(codes: IndexFile) -> str:
    names = codes.names
    for name, kind in _QUANTIZERS.items():
        if name in names:
            return kind
    message = (
        f"{codes.source.path} has the columns {', '.join(names)}, which are codes of no kind that "
        "is read"
    )
    raise UnsupportedError(message)


def _storage(codes: IndexFile) -> Settings:
    path, entries = codes.source.path, json_of(codes, STORAGE)
    if not isinstance(entries, list) or not entries or not isinstance(entries[0], str):
        message = f"{path}: {STORAGE} is {entries!r:.80}, and no list of texts"
        raise FormatError(message)
    return settings(parsed(entries[0], path), path, STORAGE)


def _graph(path: str, text: str) -> Settings:
    return settings(parsed(text, path), path, GRAPHS)


def _buffer(file: IndexFile, number: Any) -> pa.Buffer:
    """Return the global buffer whose number is given, as a text or a number.  Raises FormatError."""
    text = str(number)
    if not text.isdecimal() or len(text) > 9:
        message = f"{file.source.path} has no global buffer {number!r}"
        raise FormatError(message)
    return file.global_buffer(int(text))
