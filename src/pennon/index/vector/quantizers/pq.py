"""PQ: a vector as words, one for each of its parts, from a codebook that has some words for each part.

::

    dim 8, 4 parts, 8 bits      v0 v1 | v2 v3 | v4 v5 | v6 v7   ->   17 | 4 | 203 | 90
    in a file, of N rows        17 ... (N bytes) | 4 ... | 203 ... | 90 ...            if "transposed"
    4 bits                      byte j has the words of parts 2 j (low) and 2 j + 1 (high)

By l2 and cosine it is the residual, what is left of the vector without the partition's centroid, that is coded; by
dot the vector: of each part the nearest word.  A distance is the sum of what a table says of each word.
Source: reference index-vector, 2.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.counted import counted
from pennon.core.fast_dataclass import dataclass
from pennon.core.kernels.places import places
from pennon.core.memory import copied
from pennon.encoding.kernels.order_rows import FixedRows
from pennon.errors import FormatError, UnsupportedError
from pennon.index.files import IndexFile
from pennon.index.kernels.vectors.vector_scan import keep_words, word_tables
from pennon.index.kernels.vectors.work_chunks import WorkChunks
from pennon.index.vector.base import Floats
from pennon.index.vector.code_columns import check_bytes
from pennon.index.vector.kmeans import Centroids, NearestCentroids
from pennon.index.vector.metric import DistanceKind, Metric
from pennon.index.vector.model import Columns, Model
from pennon.index.vector.quantizer import (
    Bytes2D,
    EncodedQueries,
    Heaps,
    Pairs,
    PreparedScan,
    RowCodes,
    ScanOrder,
    TableCodes,
)
from pennon.index.vector.rows import Matrix
from pennon.index.vector.wire import Vectors

_CODES: Final = "__pq_code"
_HALF_BITS: Final = 4


class ProductQuantizer:
    """Words of a codebook."""

    kind: Final = "PQ"
    columns: Final = (_CODES,)

    def __init__(
        self,
        codebook: Vectors,
        *,
        bits: int,
        parts: int,
        metric: Metric,
        centroids: Vectors,
        is_transposed: bool,
    ) -> None:
        """Take a codebook, flat.  Raises FormatError if it does not fit the vectors, UnsupportedError."""
        dimension = centroids.shape[1]
        check_words(codebook, bits, parts, dimension, metric)
        words = codebook.astype(np.float32).reshape(parts, 1 << bits, dimension // parts)
        self._words = np.ascontiguousarray(words.transpose(0, 2, 1))
        self._metric, self.bits, self.parts = metric, bits, parts
        self._centroids = centroids
        self._near = None
        if self.has_residuals and centroids.size and centroids.dtype == np.float32:
            flat = np.ascontiguousarray(centroids).view(np.uint8).reshape(-1)
            self._near = FixedRows([flat], centroids.shape[1] * centroids.itemsize)
        self._is_transposed = is_transposed
        self.row_bytes = parts * bits // 8

    @property
    def size_bytes(self) -> int:
        """See `Quantizer.size_bytes`."""
        return self._words.nbytes

    def check(self, file: IndexFile) -> None:
        """See `Quantizer.check`."""
        check_bytes(file, _CODES, self.row_bytes)

    def codes(self, columns: Sequence[Vectors], *, by_rows: bool) -> RowCodes | TableCodes:
        """See `Quantizer.codes`."""
        return self.codes_of(columns[0], by_rows=by_rows)

    def codes_of(self, stored: Bytes2D, *, by_rows: bool) -> RowCodes | TableCodes:
        """Return the codes of a partition, given as they are stored."""
        count = len(stored)
        if self._is_transposed:
            by_bytes = stored.reshape(-1).reshape(self.row_bytes, count)
        else:
            by_bytes = stored.T
        if by_rows:
            return RowCodes(copied(by_bytes.T))
        return TableCodes(copied(by_bytes))

    def asks(self, vectors: Vectors) -> _Queries:
        """See `Quantizer.asks`."""
        return _Queries(self, vectors.astype(np.float32))

    def keep(self, pairs: Pairs, codes: list[Bytes2D], queries: Floats, heaps: Heaps) -> None:
        """Put the rows of partitions, ``codes`` byte by byte, that are nearest to the queries that ask them into heaps."""
        is_product = self._metric.is_product
        # partitions come one after the other, and their words are looked up while they are near
        numbers, partitions, owners = pairs.queries, pairs.partitions, pairs.places
        if (owners[1:] < owners[:-1]).any():
            order = np.argsort(owners, kind="stable")
            numbers, partitions, owners = numbers[order], partitions[order], owners[order]
        vectors, asked, near = queries, numbers, None
        if self._near is not None:
            of_codes = np.zeros(len(codes), np.int64)
            of_codes[owners] = partitions
            near = self._near.put(of_codes).view(np.float32).reshape(len(codes), -1)
        elif self.has_residuals:
            vectors = self.residuals(queries[numbers], partitions)
            asked = counted(len(vectors))
        keep_words(
            codes,
            pairs.rows,
            pairs.passing,
            places(owners, counted(len(codes)), behind=True),
            numbers,
            asked,
            self._words,
            vectors,
            near,
            is_product,
            self._start,
            *heaps,
        )

    def residuals(self, queries: Floats, partitions: Int64Array) -> Floats:
        """Return queries as they are compared with codes of rows, each of a partition."""
        kind = self._centroids.dtype
        near = queries.astype(kind, copy=False) - self._centroids[partitions]
        return near.astype(np.float32, copy=False)

    @property
    def has_residuals(self) -> bool:
        """Return whether it is residuals that are coded."""
        return self._metric.codes_residuals

    @property
    def _start(self) -> float:
        """Return what is added to the sums of tables."""
        return 0.0 if self.has_residuals else 1.0 - len(self._words)

    def asked(self, queries: Floats) -> EncodedQueries:
        """Return what is compared with codes: tables of what each word is apart from its part of each query."""
        parts, _, count = self._words.shape
        tables = np.empty((len(queries), parts, count), np.float32)
        word_tables(self._words, queries, self._metric.is_product, tables)
        if self.bits == 4:  # a table for each byte
            pairs = tables[:, 1::2, :, None] + tables[:, ::2, None, :]
            tables = pairs.reshape(len(queries), parts // 2, 256)
        return EncodedQueries(DistanceKind.TABLES, tables, self._start)


def check_words(codebook: Vectors, bits: int, parts: int, dimension: int, metric: Metric) -> None:
    """Raise FormatError unless a codebook has words of some bits for each part of vectors, or UnsupportedError."""
    if bits not in {4, 8} or "PQ" not in metric.quantizers:
        message = f"codebooks of 2^{bits} words by {metric} are not read"
        raise UnsupportedError(message)
    if not parts or dimension % parts or (bits == 4 and parts % 2):
        message = f"vectors of {dimension} values have no {parts} parts of {bits} bits"
        raise FormatError(message)
    if codebook.size != dimension << bits:
        message = (
            f"a codebook of {codebook.size} values does not have 2^{bits} words for each part of "
            f"vectors of {dimension}"
        )
        raise FormatError(message)


def by_bytes(codes: Sequence[RowCodes | TableCodes]) -> list[Bytes2D]:
    """Return codes byte by byte."""
    return [
        each.bytes if isinstance(each, TableCodes) else np.ascontiguousarray(each.rows.T)
        for each in codes
    ]


class _Queries:
    """Queries for PQ codes; by cosine they are encoded like rows."""

    order: Final = ScanOrder.QUERIES
    __slots__ = ("_quantizer", "_vectors")

    def __init__(self, quantizer: ProductQuantizer, vectors: Floats) -> None:
        self._quantizer, self._vectors = quantizer, vectors

    def prepare(self, pairs: Pairs) -> PreparedScan:
        """See `QueryBatch.prepare`."""
        return _WordPairs(self._quantizer, self._vectors, pairs, by_bytes(pairs.codes))

    def at(self, partitions: Int64Array, numbers: Int64Array) -> EncodedQueries:
        """See `RowQueries.at`."""
        vectors = self._vectors[numbers]
        if self._quantizer.has_residuals:
            vectors = self._quantizer.residuals(vectors, partitions)
        return self._quantizer.asked(vectors)


@dataclass(frozen=True, slots=True, eq=False)
class _WordPairs:
    """Pairs of queries and partitions; some partitions share lookup tables."""

    chunk_pairs: ClassVar[int] = 1024

    quantizer: ProductQuantizer
    vectors: Floats
    pairs: Pairs
    codes: list[Bytes2D]

    def keep(self, heaps: Heaps, chunks: WorkChunks) -> None:
        """See `PreparedScan.keep`."""
        for start, end in chunks:
            self.quantizer.keep(self.pairs.at(slice(start, end)), self.codes, self.vectors, heaps)


@dataclass(frozen=True, slots=True, eq=False)
class ProductCoder:
    """Numbers of code words."""

    model: Model
    words: Centroids

    @classmethod
    def of(cls, model: Model) -> ProductCoder:
        """Lay out the codebook of a model, to be compared with vectors."""
        if model.codebook is None:
            message = "a model of PQ has a codebook"
            raise ValueError(message)
        return cls(model, Centroids.of(model.codebook))

    @property
    def _parts(self) -> int:
        return self.words.parts

    @property
    def fields(self) -> tuple[pa.Field[Any], ...]:
        """See `Coder.fields`."""
        width = self._parts * self.model.settings.bits // 8
        return (pa.field(_CODES, pa.list_(pa.uint8(), width)),)

    def encode(self, vectors: Matrix, found: NearestCentroids) -> Columns:
        """See `Coder.encode`."""
        coded, _ = self.words.nearest(coded_part(self.model, vectors, found))
        codes: Any = coded.astype(np.uint8)
        if self.model.settings.bits == _HALF_BITS:
            codes = codes[:, 0::2] | codes[:, 1::2] << _HALF_BITS
        return (codes,)

    def pack(self, columns: Columns) -> Columns:
        """See `Coder.pack`."""
        (codes,) = columns
        if self.model.settings.is_plain:
            return columns
        return (np.ascontiguousarray(codes.T).reshape(codes.shape),)

    def unpack(self, columns: Columns) -> Columns:
        """See `Coder.unpack`."""
        (codes,) = columns
        if self.model.settings.is_plain:
            return columns
        return (np.ascontiguousarray(codes.reshape(codes.shape[::-1]).T),)

    def metadata(self, codebook: int | None) -> dict[str, Any]:
        """See `Coder.metadata`."""
        return {
            "codebook_position": codebook,
            "nbits": self.model.settings.bits,
            "num_sub_vectors": self._parts,
            "dimension": self.model.dim,
            "codebook_tensor": [],
            "transposed": not self.model.settings.is_plain,
        }


def coded_part(model: Model, vectors: Matrix, found: NearestCentroids) -> Matrix:
    """Return what PQ codes of vectors: what they are beside their centroids, with dot all of them."""
    if not model.settings.metric.codes_residuals:
        return vectors
    wide = np.float64 if vectors.dtype == np.float64 else np.float32
    rest: Matrix = vectors.astype(wide) - model.centroids[found].astype(wide)
    return rest
