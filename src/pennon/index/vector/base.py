"""The interface of vector indices: probes and results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.index.row_set import Numbers
from pennon.index.vector.metric import Metric

Floats: TypeAlias = npt.NDArray[np.float32]
Floats2D: TypeAlias = npt.NDArray[Any]
"""Vectors, one in each row, of the type that they are compared in."""
Prefilter: TypeAlias = Callable[[Numbers], npt.NDArray[np.bool_]]
"""Return for row numbers, as an index has them, which of them may be found."""


@dataclass(frozen=True, slots=True)
class Probes:
    """The part of an index that a search reads.

    The minimum and maximum number of partitions, None for all, and the length of an HNSW search list.
    """

    minimum: int = 1
    maximum: int | None = 20
    ef: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class SearchResult:
    """Rows near queries: for each query in turn, nearest first.

    ``rows`` are numbers as the index has them (addresses or stable ids), ``queries`` the number of the query
    of each.
    """

    queries: Int64Array
    rows: Numbers
    distances: Floats

    def behind(self, queries: int) -> SearchResult:
        """Return the same of queries that come behind so many others."""
        return SearchResult(self.queries + queries, self.rows, self.distances) if queries else self

    @classmethod
    def joined(cls, parts: Sequence[SearchResult]) -> SearchResult:
        """Return what several searches found, one behind the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([np.empty(0, np.int64), *(each.queries for each in parts)]),
            np.concatenate([np.empty(0, np.uint64), *(each.rows for each in parts)]),
            np.concatenate([np.empty(0, np.float32), *(each.distances for each in parts)]),
        )


class VectorIndex(Protocol):
    """An index over a column of vectors, of one segment."""

    @property
    def metric(self) -> Metric:
        """Return the metric that it finds near vectors by."""

    @property
    def dimension(self) -> int:
        """Return how many numbers a vector has."""

    @property
    def kind(self) -> str:
        """Return the name of its kind, e.g. ``IVF_PQ``."""

    @property
    def size_bytes(self) -> int:
        """Return about how much memory the open index takes."""

    def search(
        self, queries: Floats2D, k: int, probes: Probes, prefilter: Prefilter | None
    ) -> SearchResult:
        """Return up to ``k`` rows near each query, of those that the prefilter lets pass; None: all.

        Raises FormatError if the files are damaged.
        """
