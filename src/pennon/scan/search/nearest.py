"""The rows nearest to vectors, with their distances, nearest first: a source of rows.

::

    prefilter           the condition rules rows out before the search
    indices             candidates of the fragments that an index covers
    compared            the rows of all other fragments; then the candidates too, so that distances are of one kind
    best                the k nearest of each query, those of equal distance by row id

``query_index`` comes before the columns of the table, ``_distance`` behind them (`pennon.scan.answer`).
Source: reference index-vector, 6.1 and 6.2; ledger F-520.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pennon.core.cached_property import cached_property
from pennon.errors import ArgumentError
from pennon.index.vector.base import Probes
from pennon.index.vector.metric import default_metric
from pennon.index.vector.search.top_k import Neighbours
from pennon.scan.answer import Found
from pennon.scan.plan.query import ColumnOrdering, ScanOptions
from pennon.scan.plan.row_search import AddedColumns
from pennon.scan.plan.vector_query import DISTANCE, QUERY_INDEX, VectorSearch
from pennon.scan.projection import MetaColumn
from pennon.scan.read.arrays import float32_array, int32_array
from pennon.scan.run.plan_steps import Plan, Sort, chained, fed_by
from pennon.scan.search.compare_vectors import Comparison, compare_again, search_all
from pennon.scan.search.scope import Scope
from pennon.scan.search.vector_indices import VectorIndices, find_index, search_indices
from pennon.scan.snapshot import Key, Snapshot
from pennon.table.fragment import Fragment

_DEFAULT_K: Final = 10
_NEAREST_FIRST: Final = (ColumnOrdering(DISTANCE), ColumnOrdering(MetaColumn.ROW_ID.value))
NOT_COVERED: Final[Key[tuple[Fragment, ...]]] = Key("fragments not covered")


def search_index(
    indices: VectorIndices,
    scope: Scope,
    asked: VectorSearch,
    comparison: Comparison,
    k: int,
    *,
    exactly: bool,
) -> Neighbours:
    """Return rows near each query that an index finds, ``k`` or more of each.

    ``exactly``: with exact distances, as beside rows that no index covers.
    """
    near = search_indices(indices, scope, asked, comparison, k)
    if exactly or asked.refine_factor is not None:
        return compare_again(scope.snapshot, near, comparison)
    return near


class NearestSource:
    """The rows of a version that are nearest to the queries of a search."""

    cuts: Final = False

    def __init__(self, snapshot: Snapshot, options: ScanOptions, asked: VectorSearch) -> None:
        """Bind a search.  Raises ArgumentError for one that cannot be answered."""
        if options.with_deleted:
            raise ArgumentError("Cannot include deleted rows in a nearest neighbor search")
        if options.fragments is not None and not asked.prefilter:
            message = "a search in some fragments has to filter first: This operation is not supported for fragment scan, use prefilter=True"
            raise ArgumentError(message)
        self._asked = asked
        self._scope = Scope.of(snapshot, options, asked)
        self.added: AddedColumns = asked.added
        self._comparison  # noqa: B018 - a metric that the column does not have is found now

    @cached_property
    def _indices(self) -> VectorIndices | None:
        return find_index(self._scope.snapshot, self._asked)

    @cached_property
    def _comparison(self) -> Comparison:
        metric = self._asked.metric or (None if self._indices is None else self._indices.metric)
        return Comparison.of(self._asked, metric or default_metric(self._asked.column.element))

    @cached_property
    def _compared(self) -> Sequence[Fragment]:
        """Return the fragments all of whose rows are compared with the queries."""
        is_of_segments = self._asked.segments is not None and self._scope.fragments is None
        if self._scope.is_fast or is_of_segments:
            return ()
        covered = frozenset[int]() if self._indices is None else self._indices.covered

        def find() -> tuple[Fragment, ...]:
            return tuple([each for each in self._scope.searched if each.id not in covered])

        if self._scope.fragments is not None:
            return find()
        return self._scope.snapshot.remember(NOT_COVERED, find, covered)

    def _k(self, limit: int | None) -> int:
        if limit == 0:
            return 0
        if self._asked.k is not None:
            return self._asked.k
        return _DEFAULT_K if limit is None else limit

    def find(self, limit: int | None, offset: int) -> Found:  # noqa: ARG002 - the k nearest are found before rows are cut
        """Return the nearest rows of each query; without a k, as many as the limit says."""
        indices, comparison, k = self._indices, self._comparison, self._k(limit)
        compared = self._compared
        found = [search_all(self._scope, compared, comparison, k)] if compared else []
        if indices is not None and k:
            scope, asked = self._scope, self._asked
            found.append(search_index(indices, scope, asked, comparison, k, exactly=bool(compared)))
        return self.found((found[0] if len(found) == 1 else Neighbours.joined(found)).best(k))

    def found(self, near: Neighbours) -> Found:
        """Return rows near the queries with the columns that the search adds."""
        added: dict[str, pa.Array[Any]] = {DISTANCE: float32_array(near.distances)}
        if self._asked.is_batch:
            added[QUERY_INDEX] = int32_array(near.queries.astype(np.int32))
        return Found(near.addresses, added)

    def steps(self, limit: int | None, offset: int) -> tuple[Plan, ...]:  # noqa: ARG002 - as `find`
        """Return the plan of the search."""
        asked, comparison, k, indices = self._asked, self._comparison, self._k(limit), self._indices
        queries = len(comparison.queries) if asked.is_batch else None
        above, below = [Plan(Sort(_NEAREST_FIRST, most=k))], []
        compared = self._compared
        if indices is not None:
            wanted = k * (asked.refine_factor or 1)
            if compared or asked.refine_factor is not None:
                above.append(Plan(CompareVectors(comparison.metric.name, queries)))
            probes = asked.probes(wanted, comparison.metric)
            segments = len(indices.segments)
            step = SearchVectorIndex(
                indices.name, wanted, segments, comparison.metric.name, probes, queries
            )
            below.append(Plan(step))
        if compared:
            path = asked.column.path
            below.append(Plan(CompareVectors(comparison.metric.name, queries, path, len(compared))))
        return chained(above, fed_by(below, self._scope.steps()))


# --- steps of plans -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SearchVectorIndex:
    """A vector index is searched for ``k`` rows."""

    name: str
    k: int
    segments: int
    metric: str
    probes: Probes
    queries: int | None

    def __str__(self) -> str:
        most = self.probes.maximum
        return (
            f"ANNSubIndex: name={self.name}, k={self.k}, deltas={self.segments}, metric={self.metric}, "
            f"minimum_nprobes={self.probes.minimum}, "
            f"maximum_nprobes={None if most is None else f'Some({most})'}{_many(self.queries)}"
        )


@dataclass(frozen=True, slots=True)
class CompareVectors:
    """Vectors are compared with the queries: those of all rows of some fragments, else of rows that were found."""

    metric: str
    queries: int | None
    column: str | None = None
    fragments: int = 0

    def __str__(self) -> str:
        where = (
            "" if self.column is None else f", column={self.column}, num_fragments={self.fragments}"
        )
        return f"KNNVectorDistance: metric={self.metric}{where}{_many(self.queries)}"


def _many(queries: int | None) -> str:
    return "" if queries is None else f", queries={queries}"
