"""RQ (RaBitQ): the signs of rotated residuals, and as many more bits of each number as are asked for.

A vector less its centroid is rotated at random; each number of that is a sign bit, and with more bits its size in
steps.  Factors beside the codes make distances of them without bias.

    rotation       four rounds of signs that are turned and a Walsh-Hadamard transform
    signs          32 rows of a partition interleaved, so that one instruction looks up 32 of them
    sizes          64 numbers at a time, row by row

Source: reference index-vector, 2.9.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.index.vector.kmeans import NearestCentroids
from pennon.index.vector.model import Columns, Model
from pennon.index.vector.quantizers.rq_bits import (
    Bytes,
    blocked,
    flips_of,
    packed_signs,
    stored_width,
    turned,
    unpacked_signs,
)
from pennon.index.vector.rows import Floats, Matrix

_TRIES: Final = 24
"""Scales of sizes that are tried."""
_ERROR: Final = 1.9
"""How many deviations the error of a distance is said to be."""


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
        found = [pa.field("_rabit_codes", pa.list_(pa.uint8(), dim // 8))]
        found += [pa.field(f"__{name}_factors", kind) for name in ("add", "scale", "error")]
        if self._more:
            width = stored_width(dim, self._more)
            found.append(pa.field("__blocked_ex_codes", pa.list_(pa.uint8(), width)))
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
        error = 2 * _ERROR * np.sqrt(squares) * np.sqrt(np.maximum(spread, 0) / max(dim - 1, 1))
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
