"""PQ: a vector as words, one for each of its parts, from a codebook that has some words for each part.

::

    dim 8, 4 parts, 8 bits      v0 v1 | v2 v3 | v4 v5 | v6 v7   ->   17 | 4 | 203 | 90
    in a file, of N rows        17 ... (N bytes) | 4 ... | 203 ... | 90 ...            if "transposed"
    4 bits                      byte j has the words of parts 2 j (low) and 2 j + 1 (high)

By l2 and cosine it is the residual, what is left of the vector without the partition's centroid, that is coded; by
dot the vector.  A distance is the sum of what a table says of each word.
Source: reference index-vector, 2.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.memory import copied
from pennon.encoding.kernels.vector_scan import word_tables
from pennon.errors import FormatError, UnsupportedError
from pennon.index.files import IndexFile
from pennon.index.vector.base import Floats
from pennon.index.vector.codes import (
    Apart,
    Asked,
    Bytes2D,
    Everywhere,
    RowCodes,
    TableCodes,
    check_bytes,
    matrix_of,
    pairs_together,
)
from pennon.index.vector.wire import Vectors

_CODES: Final = "__pq_code"


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
        metric: str,
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
        self._is_transposed = is_transposed
        self.row_bytes = parts * bits // 8

    @property
    def size_bytes(self) -> int:
        """See `Quantizer.size_bytes`."""
        return self._words.nbytes

    def check(self, file: IndexFile) -> None:
        """See `Quantizer.check`."""
        check_bytes(file, _CODES, self.row_bytes)

    def codes(self, columns: Sequence[pa.Array[Any]], *, by_rows: bool) -> RowCodes | TableCodes:
        """See `Quantizer.codes`."""
        return self.codes_of(matrix_of(columns[0]), by_rows=by_rows)

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

    def asks(self, vectors: Vectors) -> _Residuals | Everywhere:
        """See `Quantizer.asks`."""
        queries = vectors.astype(np.float32)
        if self._metric == "dot":
            return Everywhere(self.asked(queries, 1.0 - len(self._words)))
        return _Residuals(self, queries.astype(self._centroids.dtype, copy=False))

    def residuals(self, queries: Vectors, partitions: Int64Array) -> Asked:
        """Return queries as they are compared with residuals, each of a partition."""
        near = queries - self._centroids[partitions]
        return self.asked(near.astype(np.float32, copy=False), 0.0)

    def asked(self, queries: Floats, start: float) -> Asked:
        """Return what is compared with codes: tables of what each word is apart from its part of each query."""
        parts, _, count = self._words.shape
        tables = np.empty((len(queries), parts, count), np.float32)
        word_tables(self._words, queries, self._metric == "dot", tables)
        if self.bits == 4:  # a table for each byte
            pairs = tables[:, 1::2, :, None] + tables[:, ::2, None, :]
            tables = pairs.reshape(len(queries), parts // 2, 256)
        return Asked(Apart.TABLES, tables, start)


def check_words(codebook: Vectors, bits: int, parts: int, dimension: int, metric: str) -> None:
    """Raise FormatError unless a codebook has words of some bits for each part of vectors, or UnsupportedError."""
    if bits not in {4, 8} or metric == "hamming":
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


class _Residuals:
    """Queries that are compared with residuals."""

    __slots__ = ("_quantizer", "_queries")

    def __init__(self, quantizer: ProductQuantizer, queries: Vectors) -> None:
        self._quantizer, self._queries = quantizer, queries

    @property
    def together(self) -> int:
        """See `Asks.together`."""
        return pairs_together(self._quantizer.row_bytes * 256 * 4)

    def at(self, partitions: Int64Array, numbers: Int64Array) -> Asked:
        """See `Asks.at`."""
        return self._quantizer.residuals(self._queries[numbers], partitions)
