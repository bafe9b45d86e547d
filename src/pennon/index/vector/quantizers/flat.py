"""FLAT: vectors as they are; by cosine divided by their norms.

Column ``flat: fixed_size_list<T>[dim]`` of float16, float32 or float64, or of bytes for ``hamming``.
Source: reference index-vector, 2.8.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.errors import UnsupportedError
from pennon.index.files import IndexFile
from pennon.index.vector.code_columns import kept_rows, list_type
from pennon.index.vector.kmeans import NearestCentroids
from pennon.index.vector.metric import BOUNDED_KINDS, FLOAT64_KINDS, Metric
from pennon.index.vector.model import Columns, Model
from pennon.index.vector.quantizer import EncodedQueries, PlainQueries, RowCodes, Uint8Bounds
from pennon.index.vector.rows import Matrix
from pennon.index.vector.wire import Vectors

_VECTORS: Final = "flat"
_TYPES: Final[dict[pa.DataType, np.dtype[Any]]] = {
    pa.float16(): np.dtype(np.float32),
    pa.float32(): np.dtype(np.float32),
    pa.float64(): np.dtype(np.float64),
    pa.uint8(): np.dtype(np.uint8),
}
"""By the type of the items: what they are compared as."""


class Flat:
    """Vectors as they are."""

    kind: Final = "FLAT"
    columns: Final = (_VECTORS,)
    size_bytes: Final = 0
    bits: Final = 8
    parts: Final = 0

    def __init__(self, file: IndexFile, metric: Metric, dimension: int) -> None:
        """Look at the column.  Raises FormatError, UnsupportedError."""
        items = list_type(file, _VECTORS, dimension)
        if (items == pa.uint8()) != metric.is_of_bits or items not in _TYPES:
            message = f"{file.source.path}: vectors of {items} by {metric} are not read"
            raise UnsupportedError(message)
        self._metric, self._type = metric, _TYPES[items]
        self.row_bytes = dimension * self._type.itemsize

    def check(self, file: IndexFile) -> None:
        """See `Quantizer.check`: done as it is made."""

    def codes(self, columns: Sequence[Vectors], *, by_rows: bool) -> RowCodes:
        """See `Quantizer.codes`."""
        values = np.ascontiguousarray(kept_rows(columns[0]), self._type)
        rows = values.view(np.uint8).reshape(len(values), self.row_bytes)
        # walks compare few rows, which gains nothing
        may_be_bounded = self._metric.row_kind in BOUNDED_KINDS and self._type == np.float32
        return RowCodes(rows, Uint8Bounds(rows) if may_be_bounded and not by_rows else None)

    def asks(self, vectors: Vectors) -> PlainQueries:
        """See `Quantizer.asks`."""
        queries = np.ascontiguousarray(vectors, self._type)
        kind = self._metric.row_kind
        if self._type == np.float64:
            kind = FLOAT64_KINDS[kind]
        return PlainQueries(EncodedQueries(kind, queries, starts=self._metric.row_start))


@dataclass(frozen=True, slots=True, eq=False)
class FlatCoder:
    """Vectors as they are."""

    model: Model

    @property
    def fields(self) -> tuple[pa.Field[Any], ...]:
        """See `Coder.fields`."""
        kind = pa.from_numpy_dtype(self.model.centroids.dtype)
        return (pa.field(_VECTORS, pa.list_(kind, self.model.dim), nullable=False),)

    def encode(self, vectors: Matrix, _found: NearestCentroids) -> Columns:
        """See `Coder.encode`."""
        return (vectors,)

    def pack(self, columns: Columns) -> Columns:
        """See `Coder.pack`."""
        return columns

    def unpack(self, columns: Columns) -> Columns:
        """See `Coder.unpack`."""
        return columns

    def metadata(self, _codebook: int | None) -> dict[str, Any]:
        """See `Coder.metadata`."""
        return {"dim": self.model.dim}
