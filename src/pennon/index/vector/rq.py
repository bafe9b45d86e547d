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

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.encoding.kernels.vector_rows import chosen_distances
from pennon.encoding.kernels.vector_scan import looked_up
from pennon.errors import FormatError, UnsupportedError
from pennon.index.files import IndexFile
from pennon.index.vector.base import Floats, Floats2D
from pennon.index.vector.codes import (
    Apart,
    Bytes2D,
    check_bytes,
    floats_of,
    matrix_of,
    pairs_together,
)
from pennon.index.vector.file_settings import Settings
from pennon.index.vector.rq_bits import from_stream, turned_fast, unblocked, unpacked_signs
from pennon.index.vector.wire import Vectors

_SIGNS: Final = "_rabit_codes"
_FACTORS: Final = ("__add_factors", "__scale_factors")
_ERROR: Final = "__error_factors"
_BLOCKED, _STREAM = "__blocked_ex_codes", "__ex_codes"
_FURTHER: Final = ("__add_factors_ex", "__scale_factors_ex")
_BYTE: Final = np.unpackbits(
    np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little"
).astype(np.float32)
"""The bits of each byte."""


class RabitQuantizer:
    """Signs, and further bits."""

    kind: Final = "RQ"
    is_bounded: Final = True

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
        self._by_residual = estimator == "residual_query"
        if estimator not in {"residual_query", "raw_query"} or (self._by_residual and bits > 1):
            message = f"{said.path}: distances by {estimator!r} of {bits} bits are not read"
            raise UnsupportedError(message)
        signs = said.bytes_of("fast_rotation_signs") or b""
        if rotation is None and len(signs) != 4 * (width // 8):
            message = (
                f"{said.path}: {len(signs)} bytes of signs do not turn vectors of {width} values"
            )
            raise FormatError(message)
        self._signs = np.frombuffer(signs, np.uint8)
        if rotation is not None and rotation.shape != (width, width):
            message = (
                f"{said.path}: a matrix {rotation.shape} does not turn vectors of {width} values"
            )
            raise FormatError(message)
        self._rotation, self._metric, self._further = rotation, metric, bits - 1
        self.bits, self.parts = bits, 0
        self._is_packed = said.values.get("packed") is True
        self._centroids = centroids.astype(np.float32)
        self._width = width
        self._has_errors = bits > 1 and _ERROR in names
        self._is_blocked = _BLOCKED in names
        self.row_bytes = width // 8 + 8 + (width + 12 if self._further else 0)

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
        return self._centroids.nbytes + (0 if self._rotation is None else self._rotation.nbytes)

    def check(self, file: IndexFile) -> None:
        """See `Quantizer.check`."""
        check_bytes(file, _SIGNS, self._width // 8)
        if self._further and self._is_blocked:
            check_bytes(file, _BLOCKED, -(-self._width // 64) * 8 * self._further)
        elif self._further:
            check_bytes(file, _STREAM, -(-self._width * self._further // 8))

    def codes(self, columns: Sequence[pa.Array[Any]], *, by_rows: bool) -> RabitCodes:  # noqa: ARG002
        """See `Quantizer.codes`."""
        stored, factors = matrix_of(columns[0]), [floats_of(each) for each in columns[1:3]]
        signs = unpacked_signs(stored) if self._is_packed else np.array(stored.T, order="C")
        if not self._further:
            return RabitCodes(signs, factors[0], factors[1])
        read = unblocked if self._is_blocked else from_stream
        rest = np.ascontiguousarray(read(matrix_of(columns[3]), self._further, self._width))
        more = [floats_of(each) for each in columns[4:]]
        error = more[2] if self._has_errors else None
        return RabitCodes(signs, factors[0], factors[1], rest, more[0], more[1], error)

    def asks(self, vectors: Vectors) -> _Queries:
        """See `Quantizer.asks`."""
        exact = vectors.astype(np.float32)
        return _Queries(self, exact, self._turned(exact))

    def at(self, query: Floats, turned: Floats, tables: Floats | None, number: int) -> RabitAsked:
        """Return a query as it is compared with a partition."""
        centroid = self._centroids[number]
        if self._by_residual:
            turned = self._turned((query - centroid)[None])[0]
        if tables is None or self._by_residual:
            tables = sign_tables(turned)
        apart = query - centroid
        return RabitAsked(
            tables,
            turned,
            self._further,
            self._by_residual,
            self._metric == "dot",
            float(apart @ apart),
            float(query @ centroid),
            float(centroid @ centroid),
        )

    def _turned(self, vectors: Floats) -> Floats:
        if self._rotation is not None:
            return np.ascontiguousarray(vectors @ self._rotation.T)
        return turned_fast(vectors, self._signs)


class _Queries:
    """Queries, turned."""

    __slots__ = ("_quantizer", "_queries", "_tables", "_turned")

    def __init__(self, quantizer: RabitQuantizer, queries: Floats, turned: Floats) -> None:
        self._quantizer, self._queries, self._turned = quantizer, queries, turned
        self._tables = [sign_tables(each) for each in turned]

    @property
    def together(self) -> int:
        """See `Asks.together`."""
        return pairs_together(128 * self._queries.shape[1])

    def at(self, partitions: Int64Array, numbers: Int64Array) -> list[RabitAsked]:
        """See `Asks.at`."""
        return [
            self._quantizer.at(self._queries[at], self._turned[at], self._tables[at], partition)
            for partition, at in zip(partitions.tolist(), numbers.tolist(), strict=True)
        ]


def sign_tables(turned: Floats) -> Floats:
    """Return for each byte that eight signs may be the sum of a query's values where they are positive."""
    return np.ascontiguousarray((_BYTE @ turned.reshape(-1, 8).T).T)


@dataclass(frozen=True, slots=True, eq=False)
class RabitAsked:
    """A query as it is compared with a partition."""

    tables: Floats
    turned: Floats
    further: int
    by_residual: bool
    is_dot: bool
    apart: float
    """The squared distance of query and centroid."""
    product: float
    """Of query and centroid."""
    norm: float
    """The squared norm of the centroid."""

    def distances(self, estimates: Floats, add: Floats) -> Floats:
        """Return distances, of what codes say of the part that depends on query and row."""
        if not self.is_dot:
            return estimates + add + np.float32(self.apart)
        if self.by_residual:
            return estimates + add - np.float32(self.product)
        # the centroid's own part goes by what the row's factor says of it
        share = self.product / self.norm if self.norm else 0.0
        return estimates + np.float32(1 - self.product - share) + np.float32(share) * add


@dataclass(frozen=True, slots=True, eq=False)
class RabitCodes:
    """The rows of a partition: signs byte by byte, further bits row by row, and factors."""

    signs: Bytes2D
    add: Floats
    scale: Floats
    rest: Bytes2D | None = None
    add_rest: Floats | None = None
    scale_rest: Floats | None = None
    error: Floats | None = None

    def __len__(self) -> int:
        return int(self.signs.shape[1])

    @property
    def size_bytes(self) -> int:
        """See `Codes.size_bytes`."""
        arrays = self.signs, self.add, self.scale, self.rest, self.add_rest, self.scale_rest
        return sum(each.nbytes for each in arrays if each is not None)

    def distances(self, asked: Sequence[RabitAsked], bounds: Callable[[], Floats]) -> Floats2D:
        """See `Codes.distances`."""
        pairs = zip(asked, bounds().tolist(), strict=True)
        return np.stack([self._distances(each, bound) for each, bound in pairs])

    def _distances(self, asked: RabitAsked, bound: float) -> Floats:
        total = float(asked.turned.sum(dtype=np.float64))
        products = np.empty(len(self), np.float32)
        looked_up(self.signs, asked.tables[None], 0.0, products[None])
        if asked.by_residual:
            estimates = (2 * products - np.float32(total)) / np.float32(np.sqrt(len(asked.turned)))
        else:
            estimates = products - np.float32(total / 2)
        if self.rest is None or self.add_rest is None or self.scale_rest is None:
            return asked.distances(estimates * self.scale, self.add)
        chosen = np.arange(len(self))
        if bound < np.inf and self.error is not None:
            rough = asked.distances(estimates * self.scale, self.add)
            chosen = np.flatnonzero(rough - self.error * np.float32(np.sqrt(asked.apart)) < bound)
        further = np.empty(len(chosen), np.float32)
        query = asked.turned.view(np.uint8)
        chosen_distances(Apart.CODE_PRODUCTS, self.rest, query, chosen, further)
        weight = 1 << asked.further
        exact = weight * products[chosen] - further - np.float32((weight - 0.5) * total)
        out = np.full(len(self), np.inf, np.float32)
        exact *= self.scale_rest[chosen]
        out[chosen] = asked.distances(exact, self.add_rest[chosen])
        return out
