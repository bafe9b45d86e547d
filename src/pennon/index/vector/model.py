"""The trained model of a vector index: its centroids, and the meaning of its codes."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.index.row_set import Numbers
from pennon.index.vector.kmeans import Centroids, NearestCentroids
from pennon.index.vector.rows import Matrix, as_floats
from pennon.index.vector.settings import VectorSettings

Columns = tuple[Any, ...]
"""What is stored of vectors: arrays with a row for each."""


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A trained index; it pickles.

    ``centroids`` are of the column's type, ``codebook`` too: ``[sub-vector, word, dimension]``.  ``bounds`` are of
    SQ, ``signs`` the rotation of RQ.
    """

    settings: VectorSettings
    centroids: Matrix
    codebook: Matrix | None = None
    bounds: tuple[float, float] | None = None
    signs: bytes = b""
    loss: float | None = None

    @property
    def dim(self) -> int:
        """Return the length of vectors, of bits in bytes."""
        return int(self.centroids.shape[1])

    @property
    def partitions(self) -> int:
        """Return the number of partitions."""
        return len(self.centroids)

    def assigner(self) -> Centroids:
        """Return the centroids, to find out which partition a vector is of."""
        wide = self.centroids
        if wide.dtype == np.uint8:
            wide = as_floats(wide)
        return Centroids.of(wide[None], by_product=self.settings.metric.is_product)

    def fits(self, other: Model) -> bool:
        """Return whether partitions and codes mean the same as those of another."""
        mine, theirs = self.settings, other.settings
        return (
            (mine.kind, mine.metric, mine.bits) == (theirs.kind, theirs.metric, theirs.bits)
            and _same(self.centroids, other.centroids)
            and _same(self.codebook, other.codebook)
            and self.signs == other.signs
        )


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """Vectors as an index holds them, and the number of the row of each."""

    rows: Numbers
    columns: Columns

    def at(self, places: Any) -> Coded:
        """Return some of them."""
        return Coded(self.rows[places], tuple(each[places] for each in self.columns))

    @classmethod
    def joined(cls, parts: list[Coded]) -> Coded:
        """Return the rows of one or more parts together."""
        if len(parts) == 1:
            return parts[0]
        columns = zip(*(each.columns for each in parts), strict=True)
        rows = np.concatenate([each.rows for each in parts])
        return cls(rows, tuple(np.concatenate(each) for each in columns))


class Coder(Protocol):
    """The encoder of vectors: codes, and the layout of the codes of a partition."""

    @property
    def fields(self) -> tuple[pa.Field[Any], ...]:
        """Return the columns that a file has beside the row numbers."""

    def encode(self, vectors: Matrix, found: NearestCentroids) -> Columns:
        """Return the codes of vectors, each of a partition."""

    def pack(self, columns: Columns) -> Columns:
        """Return the codes of all rows of a partition, as they are stored."""

    def unpack(self, columns: Columns) -> Columns:
        """Return what `pack` was given."""

    def metadata(self, codebook: int | None) -> dict[str, Any]:
        """Return what the file says of the codes; ``codebook`` is the number of its buffer."""


def _same(mine: Matrix | None, theirs: Matrix | None) -> bool:
    if mine is None or theirs is None:
        return mine is theirs
    return (
        mine.dtype == theirs.dtype and mine.shape == theirs.shape and bool((mine == theirs).all())
    )
