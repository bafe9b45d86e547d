"""What a vector index is to whoever searches one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.index.row_set import Numbers

Floats: TypeAlias = npt.NDArray[np.float32]
Vectors: TypeAlias = npt.NDArray[Any]
"""Vectors row by row, of any element type."""
Allowed: TypeAlias = Callable[[Numbers], npt.NDArray[np.bool_]]
"""Says of row numbers, as the index has them, which rows may be found."""


@dataclass(frozen=True, slots=True)
class Probes:
    """How much of an index is searched.

    ``minimum`` partitions are; where these have fewer rows than wanted the next ones, too, up to ``maximum``, or all.
    ``ef`` is the length of the search list of an HNSW graph, by default half as many again as the rows wanted.
    """

    minimum: int = 1
    maximum: int | None = 20
    ef: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Rows near queries: for each query in turn, nearest first, of those at one distance the lower number.

    ``queries`` is the number of the query of each, ``rows`` are numbers as the index has them: addresses or stable
    ids.  A row that has several vectors may be there several times.
    """

    queries: Int64Array
    rows: Numbers
    distances: Floats


class VectorIndex(Protocol):
    """An open segment of a vector index."""

    @property
    def kind(self) -> str:
        """Return the kind as pylance calls it, such as ``IVF_PQ``."""
        ...

    @property
    def metric(self) -> str:
        """Return ``l2``, ``cosine``, ``dot`` or ``hamming``."""
        ...

    @property
    def dimension(self) -> int:
        """Return how many values a vector has."""
        ...

    @property
    def size_bytes(self) -> int:
        """Return about how much memory the open index takes, without the partitions that are remembered."""
        ...

    def search(self, queries: Vectors, k: int, probes: Probes, allowed: Allowed | None) -> Found:
        """Return up to ``k`` rows near each query, which are the rows of ``queries``.

        A query with a NaN or an infinite value finds nothing, and neither does one of zeros by ``cosine``.
        Raises ArgumentError for queries of another dimension, FormatError if the files are damaged.
        """
        ...
