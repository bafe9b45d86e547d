"""Codes of vectors: FLAT, PQ and SQ; `pennon.index.vector.quantizers.rq_rotation` has RQ.

FLAT are the vectors themselves.  PQ: the number of the nearest code word of each sub-vector, of what a vector is
beside its centroid, with dot of the vector itself; a byte each or half of one, and all first bytes of a partition
come before all second ones.  SQ: each number in 256 steps between two bounds.

Source: reference index-vector, 2.5, 2.7 and 2.8.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.index.vector.kmeans import Centroids, NearestCentroids
from pennon.index.vector.model import Columns, Model
from pennon.index.vector.rows import Matrix

_STEPS: Final = 255
_HALF_BITS: Final = 4


@dataclass(frozen=True, slots=True, eq=False)
class FlatCoder:
    """Vectors as they are."""

    model: Model

    @property
    def fields(self) -> tuple[pa.Field[Any], ...]:
        """See `Coder.fields`."""
        kind = pa.from_numpy_dtype(self.model.centroids.dtype)
        return (pa.field("flat", pa.list_(kind, self.model.dim), nullable=False),)

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


@dataclass(frozen=True, slots=True, eq=False)
class ScalarCoder:
    """Numbers in steps between two bounds."""

    model: Model

    @property
    def fields(self) -> tuple[pa.Field[Any], ...]:
        """See `Coder.fields`."""
        return (pa.field("__sq_code", pa.list_(pa.uint8(), self.model.dim)),)

    @property
    def bounds(self) -> tuple[float, float]:
        """Return the least and the greatest number."""
        return self.model.bounds or (0.0, 0.0)

    @property
    def step(self) -> float:
        """Return how far one code is from the next."""
        start, end = self.bounds
        return (end - start) / _STEPS

    def encode(self, vectors: Matrix, _found: NearestCentroids) -> Columns:
        """See `Coder.encode`."""
        start, end = self.bounds
        if start == end:
            return (np.zeros(vectors.shape, np.uint8),)
        steps = (vectors.astype(np.float64) - start) * _STEPS / (end - start)
        return (np.clip(steps, 0, _STEPS).astype(np.uint8),)

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
        return (pa.field("__pq_code", pa.list_(pa.uint8(), width)),)

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
