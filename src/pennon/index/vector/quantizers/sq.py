"""SQ: each value as one byte, by the same bounds for all.

::

    bounds -1.0 .. 4.1      value 0.5  ->  trunc((0.5 - -1.0) * 255 / 5.1) = 75

Column ``__sq_code: fixed_size_list<uint8>[dim]``.  By l2 and cosine a query is coded, too; by dot it is not.
Source: reference index-vector, 2.7.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.errors import FormatError, UnsupportedError
from pennon.index.files import IndexFile
from pennon.index.vector.code_columns import check_bytes, kept_rows
from pennon.index.vector.file_settings import Settings
from pennon.index.vector.kmeans import NearestCentroids
from pennon.index.vector.metric import DistanceKind, Metric
from pennon.index.vector.model import Columns, Model
from pennon.index.vector.quantizer import EncodedQueries, PlainQueries, RowCodes
from pennon.index.vector.rows import Matrix
from pennon.index.vector.wire import Vectors

_CODES: Final = "__sq_code"
_GREATEST: Final = 255


class ScalarQuantizer:
    """Bytes between two bounds."""

    kind: Final = "SQ"
    columns: Final = (_CODES,)
    size_bytes: Final = 0
    bits: Final = 8
    parts: Final = 0

    def __init__(self, settings: Settings, metric: Metric, dimension: int) -> None:
        """Take the bounds.  Raises FormatError, UnsupportedError."""
        self._start, end = bounds_of(settings, metric, dimension)
        self._range = end - self._start
        self._metric, self.row_bytes = metric, dimension

    def check(self, file: IndexFile) -> None:
        """See `Quantizer.check`."""
        check_bytes(file, _CODES, self.row_bytes)

    def codes(self, columns: Sequence[Vectors], *, by_rows: bool) -> RowCodes:  # noqa: ARG002
        """See `Quantizer.codes`."""
        return RowCodes(kept_rows(columns[0]))

    def asks(self, vectors: Vectors) -> PlainQueries:
        """See `Quantizer.asks`."""
        step = self._range / _GREATEST
        if self._metric.is_product:
            exact = vectors.astype(np.float32)
            # 1 less the sum of q * (start + code * step)
            starts = 1.0 - self._start * exact.sum(axis=1, dtype=np.float64)
            return PlainQueries(
                EncodedQueries(DistanceKind.CODE_PRODUCTS, exact, starts.astype(np.float32), step)
            )
        if not self._range:
            nothing = np.zeros(vectors.shape, np.uint8)
            return PlainQueries(EncodedQueries(DistanceKind.CODE_SQUARES, nothing, factor=0.0))
        places = (vectors.astype(np.float64) - self._start) * _GREATEST / self._range
        coded = places.clip(0, _GREATEST).astype(np.uint8)
        return PlainQueries(EncodedQueries(DistanceKind.CODE_SQUARES, coded, factor=step * step))


def bounds_of(settings: Settings, metric: Metric, dimension: int) -> tuple[float, float]:
    """Return the bounds of codes of vectors.  Raises FormatError, UnsupportedError."""
    bits = settings.number("num_bits", default=8)
    if bits != 8 or "SQ" not in metric.quantizers:
        message = f"{settings.path}: values of {bits} bits by {metric} are not read"
        raise UnsupportedError(message)
    if settings.number("dim", default=dimension) != dimension:
        message = (
            f"{settings.path}: codes of {settings.values['dim']} values of vectors of {dimension}"
        )
        raise FormatError(message)
    bounds = settings.below("bounds")
    start, end = bounds.value("start"), bounds.value("end")
    if not 0 <= end - start < float(np.finfo(np.float32).max):
        message = f"{settings.path}: values between {bounds.values} are none"
        raise FormatError(message)
    return start, end


@dataclass(frozen=True, slots=True, eq=False)
class ScalarCoder:
    """Numbers in steps between two bounds."""

    model: Model

    @property
    def fields(self) -> tuple[pa.Field[Any], ...]:
        """See `Coder.fields`."""
        return (pa.field(_CODES, pa.list_(pa.uint8(), self.model.dim)),)

    @property
    def bounds(self) -> tuple[float, float]:
        """Return the least and the greatest number."""
        return self.model.bounds or (0.0, 0.0)

    @property
    def step(self) -> float:
        """Return how far one code is from the next."""
        start, end = self.bounds
        return (end - start) / _GREATEST

    def encode(self, vectors: Matrix, _found: NearestCentroids) -> Columns:
        """See `Coder.encode`."""
        start, end = self.bounds
        if start == end:
            return (np.zeros(vectors.shape, np.uint8),)
        steps = (vectors.astype(np.float64) - start) * _GREATEST / (end - start)
        return (np.clip(steps, 0, _GREATEST).astype(np.uint8),)

    def decode(self, columns: Columns) -> Matrix:
        """Return the vectors that codes stand for: the middle of each step, so that no code falls."""
        middles: Matrix = columns[0].astype(np.float64) + 0.5
        return self.bounds[0] + middles * self.step

    def pack(self, columns: Columns) -> Columns:
        """See `Coder.pack`."""
        return columns

    def unpack(self, columns: Columns) -> Columns:
        """See `Coder.unpack`."""
        return columns

    def metadata(self, _codebook: int | None) -> dict[str, Any]:
        """See `Coder.metadata`."""
        start, end = self.bounds
        return {"dim": self.model.dim, "num_bits": 8, "bounds": {"start": start, "end": end}}
