"""RQ (RaBitQ): of each vector, turned, the signs of what its centroid leaves, and a few further bits.

::

    turned, less the turned centroid        0.7  -1.2   0.1  -0.4 ...
    signs, one bit for each dimension        1     0     1     0  ...           _rabit_codes
    magnitudes, of num_bits - 1 bits         2     3     0     1  ...           __blocked_ex_codes

A vector is turned by four rounds of random signs and Walsh-Hadamard transforms.  The signs of 32 rows of a partition
are interleaved, so that one instruction looks up 32 of them; magnitudes are stored row by row, 64 numbers at a time.

A distance is estimated from the product of query and signs (and magnitudes), by two factors of each row.  How far
the estimate by the signs alone may be off is a third one: further bits are looked at where it may be near enough.
Source: reference index-vector, 2.9.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.memory import copied
from pennon.errors import FormatError, UnsupportedError
from pennon.index.files import IndexFile
from pennon.index.kernels.vectors.rabit import (
    RabitParts,
    RabitRows,
    keep_estimates,
    pairs_apart,
    sign_tables,
)
from pennon.index.kernels.vectors.work_chunks import WorkChunks
from pennon.index.row_set import Numbers
from pennon.index.vector.base import Floats
from pennon.index.vector.code_columns import check_bytes
from pennon.index.vector.file_settings import Settings
from pennon.index.vector.kmeans import NearestCentroids
from pennon.index.vector.metric import Metric
from pennon.index.vector.model import Columns, Model
from pennon.index.vector.quantizer import Bytes2D, Heaps, Pairs, PreparedScan, ScanOrder
from pennon.index.vector.quantizers.rq_bits import (
    Bytes,
    blocked,
    flips_of,
    from_stream,
    packed_signs,
    stored_width,
    turned,
    unpacked_signs,
)
from pennon.index.vector.rows import Matrix
from pennon.index.vector.wire import Vectors

_SIGNS: Final = "_rabit_codes"
_FACTORS: Final = ("__add_factors", "__scale_factors")
_ERROR: Final = "__error_factors"
_BLOCKED, _STREAM = "__blocked_ex_codes", "__ex_codes"
_FURTHER: Final = ("__add_factors_ex", "__scale_factors_ex")
_TRIES: Final = 24
"""Scales of sizes that are tried."""
_DEVIATIONS: Final = 1.9
"""How many deviations the error of a distance is said to be."""
Turned: TypeAlias = tuple[Floats, npt.NDArray[np.uint8], Floats]
"""Queries that are turned, and the tables and ranges of `sign_tables`."""


class RabitQuantizer:
    """Signs, and further bits."""

    kind: Final = "RQ"

    def __init__(
        self,
        said: Settings,
        names: Sequence[str],
        metric: Metric,
        centroids: Vectors,
        rotation: Floats | None,
    ) -> None:
        """Take how vectors are turned.  Raises FormatError if that does not fit, UnsupportedError."""
        width = centroids.shape[1]
        bits = said.number("num_bits", least=1, default=1)
        size = said.number("code_dim", default=width)
        if size != width or width % 8 or bits > 9 or "RQ" not in metric.quantizers:
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

    def codes(self, columns: Sequence[Vectors], *, by_rows: bool) -> RabitCodes:  # noqa: ARG002
        """See `Quantizer.codes`."""
        signs, factors = columns[0], list(columns[1:3])
        if not self._is_packed:
            signs = packed_signs(signs)
        rest = np.empty((len(signs), 0), np.uint8)
        if self._further:
            rest = columns[3]
            if not self._is_blocked:
                rest = blocked(from_stream(rest, self._further, self._width), self._further)
            factors += columns[4:]
        kinds = {(each.dtype, each.ndim) for each in factors}
        if kinds != {(np.dtype(np.float32), 1)}:
            message = f"factors of codes are {sorted(map(str, kinds))}, and not one float32 a row"
            raise FormatError(message)
        side_by_side = np.concatenate(factors).reshape(len(factors), len(signs))
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

    def apart(self, queries: Floats, pairs: Pairs) -> Floats:
        """Return what the query and the centroid of each pair add to distances."""
        found = np.empty((len(pairs.queries), 3), np.float32)
        pairs_apart(
            queries,
            self.centroids,
            pairs.queries,
            pairs.partitions,
            self._metric.is_product,
            self.is_by_residual,
            found,
        )
        return found


class _Queries:
    """Queries, turned unless that goes by partition."""

    order: Final = ScanOrder.QUERIES
    __slots__ = ("_quantizer", "_queries", "_turned")

    def __init__(self, quantizer: RabitQuantizer, queries: Floats) -> None:
        self._quantizer, self._queries = quantizer, queries
        self._turned: Turned | None = None
        if not quantizer.is_by_residual:
            self._turned = _with_tables(quantizer.turned(queries))

    def prepare(self, pairs: Pairs) -> PreparedScan:
        """See `QueryBatch.prepare`."""
        of = [each.of(rows) for each, rows in zip(pairs.codes, pairs.rows, strict=True)]
        parts, apart = RabitParts(of, pairs.passing), self._quantizer.apart(self._queries, pairs)
        if self._turned is None:
            return _PairsToTurn(self, pairs, parts, apart)
        return _TurnedPairs(self._turned, pairs, parts, apart)

    def less_centroids(self, queries: Int64Array, partitions: Int64Array) -> Turned:
        """Return queries, each less the centroid of a partition, turned."""
        apart = self._queries[queries] - self._quantizer.centroids[partitions]
        return _with_tables(self._quantizer.turned(apart))


@dataclass(frozen=True, slots=True, eq=False)
class _TurnedPairs:
    """Pairs of queries that are turned."""

    chunk_pairs: ClassVar[int] = 1

    turned: Turned
    pairs: Pairs
    parts: RabitParts
    apart: Floats

    def keep(self, heaps: Heaps, chunks: WorkChunks) -> None:
        """See `PreparedScan.keep`."""
        queries = self.pairs.queries
        keep_estimates(
            self.parts,
            self.pairs.places,
            queries,
            queries,
            *self.turned,
            self.apart,
            *heaps,
            chunks,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _PairsToTurn:
    """Pairs whose query is rotated, less the centroid, during the search."""

    chunk_pairs: ClassVar[int] = 1024

    asks: _Queries
    pairs: Pairs
    parts: RabitParts
    apart: Floats

    def keep(self, heaps: Heaps, chunks: WorkChunks) -> None:
        """See `PreparedScan.keep`."""
        for start, end in chunks:
            some = self.pairs.at(slice(start, end))
            keep_estimates(
                self.parts,
                some.places,
                some.queries,
                np.arange(end - start),
                *self.asks.less_centroids(some.queries, some.partitions),
                self.apart[start:end],
                *heaps,
                some.as_one,
            )


def _with_tables(turned: Floats) -> Turned:
    count, width = turned.shape
    tables = np.empty((count, width // 4, 16), np.uint8)
    ranges = np.empty((count, 2), np.float32)
    sign_tables(turned, tables, ranges)
    return turned, tables, ranges


class RabitCodes:
    """The rows of a partition: signs, further bits and factors, as `pennon.index.kernels.vectors.rabit.RabitRows` takes them."""

    __slots__ = ("_arrays", "_rows")

    def __init__(self, signs: Bytes2D, rest: Bytes2D, factors: Floats) -> None:
        self._arrays = signs, rest, factors
        self._rows: tuple[Numbers, RabitRows] | None = None

    def __len__(self) -> int:
        return len(self._arrays[0])

    @property
    def size_bytes(self) -> int:
        """See `Codes.size_bytes`."""
        return sum([each.nbytes for each in self._arrays])

    def of(self, numbers: Numbers) -> RabitRows:
        """Return the rows as kernels take them, remembered: a partition has the same numbers at each search."""
        known = self._rows
        if known is None or known[0] is not numbers:
            self._rows = known = numbers, RabitRows(*self._arrays, numbers)
        return known[1]


def rotated(rows: Floats, signs: bytes) -> Floats:
    """Return vectors turned at random; ``signs`` are four bits for each number."""
    return turned(rows, flips_of(np.frombuffer(signs, np.uint8), rows.shape[1]))


@dataclass(frozen=True, slots=True, eq=False)
class RabitCoder:
    """Signs and sizes of rotated residuals; `of` rotates the centroids once."""

    model: Model
    centroids: Floats

    @classmethod
    def of(cls, model: Model) -> RabitCoder:
        """Rotate the centroids of a model."""
        return cls(model, rotated(model.centroids.astype(np.float32), model.signs))

    @property
    def _more(self) -> int:
        """Return the bits of each size."""
        return self.model.settings.bits - 1

    @property
    def fields(self) -> tuple[pa.Field[Any], ...]:
        """See `Coder.fields`."""
        dim, kind = self.model.dim, pa.float32()
        found = [pa.field(_SIGNS, pa.list_(pa.uint8(), dim // 8))]
        found += [pa.field(f"__{name}_factors", kind) for name in ("add", "scale", "error")]
        if self._more:
            width = stored_width(dim, self._more)
            found.append(pa.field(_BLOCKED, pa.list_(pa.uint8(), width)))
            found += [pa.field(f"__{name}_factors_ex", kind) for name in ("add", "scale")]
        return tuple(found)

    def encode(self, vectors: Matrix, found: NearestCentroids) -> Columns:
        """See `Coder.encode`."""
        rest = vectors.astype(np.float32) - self.model.centroids[found].astype(np.float32)
        turned = rotated(rest, self.model.signs)
        near = self.centroids[found]
        is_set = ~np.signbit(turned)
        squares = np.einsum("ij,ij->i", rest, rest)
        signs = np.packbits(is_set, axis=1, bitorder="little")
        factors = self._factors(turned, near, is_set - np.float32(0.5), squares)
        if not self._more:
            return (signs, *factors)
        sizes = _sizes(turned, squares, self._more)
        steps = is_set * np.float32(1 << self._more) + sizes - ((1 << self._more) - np.float32(0.5))
        more = self._factors(turned, near, steps.astype(np.float32), squares)
        return (signs, *factors, blocked(sizes, self._more), more[0], more[1])

    def _factors(
        self, turned: Floats, near: Floats, units: Floats, squares: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Return what distances are made of: an addend, a scale, and how far they may be off."""
        dim = turned.shape[1]
        own = np.einsum("ij,ij->i", turned, units)
        other = np.einsum("ij,ij->i", near, units)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(own == 0, 0, squares / own)
            spread = np.where(own == 0, 0, squares * (dim / 4) / own**2 - 1)
        error = (
            2 * _DEVIATIONS * np.sqrt(squares) * np.sqrt(np.maximum(spread, 0) / max(dim - 1, 1))
        )
        if self.model.settings.metric.is_product:
            product = np.einsum("ij,ij->i", turned, near)
            add = 1 - product + share * other
            found = np.where(own == 0, 0, add), -share, error / 2
        else:
            found = squares + 2 * share * other, -2 * share, error
        add, scale, error = (each.astype(np.float32) for each in found)
        return add, scale, error

    def pack(self, columns: Columns) -> Columns:
        """See `Coder.pack`."""
        if self.model.settings.is_plain:
            return columns
        return (packed_signs(columns[0]), *columns[1:])

    def unpack(self, columns: Columns) -> Columns:
        """See `Coder.unpack`."""
        if self.model.settings.is_plain:
            return columns
        return (unpacked_signs(columns[0]), *columns[1:])

    def metadata(self, _codebook: int | None) -> dict[str, Any]:
        """See `Coder.metadata`."""
        return {
            "rotate_mat_position": None,
            "fast_rotation_signs": list(self.model.signs),
            "rotation_type": "fast",
            "code_dim": self.model.dim,
            "num_bits": self.model.settings.bits,
            "packed": not self.model.settings.is_plain,
            "query_estimator": "raw_query",
        }


def _sizes(turned: Floats, squares: Floats, bits: int) -> Bytes:
    """Return the size of each number in steps; of those below zero the other way round.

    The scale is the one of several at which the steps point nearest to where the vector does.
    """
    most = (1 << bits) - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        length = np.where(squares > 0, 1 / np.sqrt(squares), 0).astype(np.float32)
    sizes = np.abs(turned) * length[:, None]
    top = np.maximum(sizes.max(axis=1), np.float32(1e-20))
    best = np.full(len(turned), -np.inf, np.float32)
    chosen = np.zeros(turned.shape, np.uint8)
    for part in np.linspace(0.35, 1.0, _TRIES, dtype=np.float32):
        scale = (most + 1) * part / top * np.float32(1.6)
        steps = np.clip(np.floor(sizes * scale[:, None] + np.float32(1e-5)), 0, most)
        middles = steps + np.float32(0.5)
        fit = np.einsum("ij,ij->i", sizes, middles)
        fit /= np.sqrt(np.einsum("ij,ij->i", middles, middles))
        better = fit > best
        best[better] = fit[better]
        chosen[better] = steps[better].astype(np.uint8)
    found: Bytes = np.where(np.signbit(turned), ~chosen & np.uint8(most), chosen)
    found[squares == 0] = 0
    return found
