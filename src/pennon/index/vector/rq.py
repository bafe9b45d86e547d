"""RQ (RaBitQ): of each vector, turned, the signs of what its centroid leaves, and a few further bits.

::

    turned, less the turned centroid        0.7  -1.2   0.1  -0.4 ...
    signs, one bit for each dimension        1     0     1     0  ...           _rabit_codes
    magnitudes, of num_bits - 1 bits         2     3     0     1  ...           __blocked_ex_codes

A distance is estimated from the product of query and signs (and magnitudes), by two factors of each row.  How far
the estimate by the signs alone may be off is a third one: further bits are looked at where it may be near enough.
Source: reference index-vector, 2.9.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.core.memory import copied
from pennon.encoding.kernels.rabit import keep_estimates, sign_tables
from pennon.errors import FormatError, UnsupportedError
from pennon.index.files import IndexFile
from pennon.index.vector.base import Floats
from pennon.index.vector.codes import (
    Bytes2D,
    Heaps,
    Pairs,
    check_bytes,
    floats_of,
    matrix_of,
)
from pennon.index.vector.file_settings import Settings
from pennon.index.vector.rq_bits import (
    blocked,
    flips_of,
    from_stream,
    packed_signs,
    stored_width,
    turned,
)
from pennon.index.vector.wire import Vectors

_SIGNS: Final = "_rabit_codes"
_FACTORS: Final = ("__add_factors", "__scale_factors")
_ERROR: Final = "__error_factors"
_BLOCKED, _STREAM = "__blocked_ex_codes", "__ex_codes"
_FURTHER: Final = ("__add_factors_ex", "__scale_factors_ex")
_APART: Final = 128
"""Pairs of which it is worked out together how far query and centroid are apart."""
Bytes3D = npt.NDArray[np.uint8]


class RabitQuantizer:
    """Signs, and further bits."""

    kind: Final = "RQ"

    def __init__(
        self,
        said: Settings,
        names: Sequence[str],
        metric: str,
        centroids: Vectors,
        rotation: Floats | None,
    ) -> None:
        """Take how vectors are turned.  Raises FormatError if that does not fit, UnsupportedError."""
        width = centroids.shape[1]
        bits = said.number("num_bits", least=1, default=1)
        size = said.number("code_dim", default=width)
        if size != width or width % 8 or bits > 9 or metric == "hamming":
            message = f"{said.path}: codes of {bits} bits in {size} dimensions of vectors of {width} are not read"
            raise UnsupportedError(message)
        estimator = said.values.get("query_estimator") or "residual_query"
        self.is_by_residual = estimator == "residual_query"
        if estimator not in {"residual_query", "raw_query"} or (self.is_by_residual and bits > 1):
            message = f"{said.path}: distances by {estimator!r} of {bits} bits are not read"
            raise UnsupportedError(message)
        signs = said.bytes_of("fast_rotation_signs") or b""
        if rotation is None and len(signs) != 4 * (width // 8):
            message = (
                f"{said.path}: {len(signs)} bytes of signs do not turn vectors of {width} values"
            )
            raise FormatError(message)
        if rotation is not None and rotation.shape != (width, width):
            message = (
                f"{said.path}: a matrix {rotation.shape} does not turn vectors of {width} values"
            )
            raise FormatError(message)
        if rotation is None:
            self._flips = flips_of(np.frombuffer(signs, np.uint8), width)
        self._rotation, self._metric, self._further = rotation, metric, bits - 1
        self.bits, self.parts = bits, 0
        self._is_packed = said.values.get("packed") is True
        self.centroids = centroids.astype(np.float32)
        self._width = width
        self._has_errors = bits > 1 and _ERROR in names
        self._is_blocked = _BLOCKED in names
        # signs, further bits, and up to five factors
        self.row_bytes = width // 8 + stored_width(width, self._further) + 20

    @property
    def columns(self) -> tuple[str, ...]:
        """See `Quantizer.columns`."""
        found: tuple[str, ...] = (_SIGNS, *_FACTORS)
        if self._further:
            found += (_BLOCKED if self._is_blocked else _STREAM, *_FURTHER)
        return (*found, _ERROR) if self._has_errors else found

    @property
    def size_bytes(self) -> int:
        """See `Quantizer.size_bytes`."""
        return self.centroids.nbytes + (0 if self._rotation is None else self._rotation.nbytes)

    def check(self, file: IndexFile) -> None:
        """See `Quantizer.check`."""
        check_bytes(file, _SIGNS, self._width // 8)
        if self._further and self._is_blocked:
            check_bytes(file, _BLOCKED, stored_width(self._width, self._further))
        elif self._further:
            check_bytes(file, _STREAM, -(-self._width * self._further // 8))

    def codes(self, columns: Sequence[pa.Array[Any]], *, by_rows: bool) -> RabitCodes:  # noqa: ARG002
        """See `Quantizer.codes`."""
        signs, factors = matrix_of(columns[0]), [floats_of(each) for each in columns[1:3]]
        if not self._is_packed:
            signs = packed_signs(signs)
        rest = np.empty((len(signs), 0), np.uint8)
        if self._further:
            rest = matrix_of(columns[3])
            if not self._is_blocked:
                rest = blocked(from_stream(rest, self._further, self._width), self._further)
            factors += [floats_of(each) for each in columns[4:]]
        # what is remembered is a copy: a part would hold all that was read with it
        side_by_side = np.empty((len(factors), len(signs)), np.float32)
        for target, each in zip(side_by_side, factors, strict=True):
            target[:] = each
        return RabitCodes(copied(signs), copied(rest), side_by_side)

    def asks(self, vectors: Vectors) -> _Queries:
        """See `Quantizer.asks`."""
        return _Queries(self, vectors.astype(np.float32))

    def turned(self, queries: Floats) -> Floats:
        """Return queries as codes are compared with them: turned, less the centroid if estimates go by residuals."""
        if self._rotation is not None:
            found = np.ascontiguousarray(queries @ self._rotation.T)
        else:
            found = turned(queries, self._flips)
        return found * np.float32(2 / np.sqrt(self._width)) if self.is_by_residual else found

    def apart(self, queries: Floats, centroids: Floats) -> Floats:
        """Return what each query and the centroid of its partition add to distances.

        How often the addends of rows count, what is added to all distances, and how far query and centroid are apart.
        """
        rest = queries - centroids
        squares = np.einsum("ij,ij->i", rest, rest)
        found = np.empty((len(queries), 3), np.float32)
        found[:, 0], found[:, 1], found[:, 2] = 1, squares, np.sqrt(squares)
        if self._metric == "dot":
            products = np.einsum("ij,ij->i", queries, centroids)
            found[:, 1] = -products
            if not self.is_by_residual:
                # the centroid's own part goes by what the row's factor says of it
                norms = np.einsum("ij,ij->i", centroids, centroids)
                share = np.where(norms == 0, 0, products / norms)
                found[:, 0], found[:, 1] = share, 1 - products - share
        return found


class _Queries:
    """Queries, turned unless that goes by partition."""

    leaves_out: Final = True
    __slots__ = ("_quantizer", "_queries", "_turned")

    def __init__(self, quantizer: RabitQuantizer, queries: Floats) -> None:
        self._quantizer, self._queries = quantizer, queries
        self._turned: tuple[Floats, Bytes3D, Floats] | None = None
        if not quantizer.is_by_residual:
            self._turned = _with_tables(quantizer.turned(queries))

    def keep(self, pairs: Pairs, heaps: Heaps) -> None:
        """See `Asks.keep`."""
        places = pairs.queries
        centroids, asked = self._quantizer.centroids, self._turned
        if asked is None:
            asked = _with_tables(
                self._quantizer.turned(self._queries[places] - centroids[pairs.partitions])
            )
            places = np.arange(len(places))
        apart = np.empty((len(places), 3), np.float32)
        for start in range(0, len(places), _APART):  # these stay in the processor's cache
            some = slice(start, start + _APART)
            queries = self._queries[pairs.queries[some]]
            apart[some] = self._quantizer.apart(queries, centroids[pairs.partitions[some]])
        keep_estimates(
            [(each.signs, each.rest, each.factors) for each in pairs.codes],
            pairs.rows,
            pairs.passing,
            pairs.places,
            pairs.queries,
            places,
            *asked,
            apart,
            *heaps,
        )


def _with_tables(turned: Floats) -> tuple[Floats, Bytes3D, Floats]:
    count, width = turned.shape
    tables = np.empty((count, width // 4, 16), np.uint8)
    ranges = np.empty((count, 2), np.float32)
    sign_tables(turned, tables, ranges)
    return turned, tables, ranges


@dataclass(frozen=True, slots=True, eq=False)
class RabitCodes:
    """The rows of a partition: signs, further bits and factors, as `pennon.encoding.kernels.rabit.keep_estimates` takes them."""

    signs: Bytes2D
    rest: Bytes2D
    factors: Floats

    def __len__(self) -> int:
        return len(self.signs)

    @property
    def size_bytes(self) -> int:
        """See `Codes.size_bytes`."""
        return self.signs.nbytes + self.rest.nbytes + self.factors.nbytes
