"""Exact search: the vectors of rows are read and compared with the queries, block by block.

What is held grows with the number of rows asked for and with a block, never with the rows of the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.core.thread_places import processors
from pennon.core.thread_pools import map_in_order
from pennon.core.units import MIB
from pennon.index.vector.base import Floats2D
from pennon.index.vector.distance import as_stored, distances, matrix_of
from pennon.index.vector.metric import Metric, check_metric
from pennon.index.vector.search.top_k import NOTHING, Best, Neighbours, nearest_of
from pennon.scan.plan.query import BoundQuery, plan_query
from pennon.scan.plan.take_plan import plan_projection
from pennon.scan.plan.vector_query import VectorColumn, VectorSearch
from pennon.scan.projection import MetaColumn, Projection, plan_scan_projection
from pennon.scan.read.arrays import int64_array
from pennon.scan.run.filter import read_query_batches
from pennon.scan.run.take import take_addresses
from pennon.scan.search.scope import Scope
from pennon.scan.snapshot import Key, Snapshot
from pennon.schema.width import row_bytes
from pennon.table.fragment import Fragment

_BLOCK_BYTES: Final = 4 * MIB
"""Vectors that a thread compares at a time."""
_BLOCK_ROWS: Final = 256
_LEAST_ROWS: Final = 16
_CELLS: Final = 1 << 18
"""Distances that are worked out at a time: they stay in a processor's cache."""
VECTORS: Final[Key[Projection]] = Key("vectors to compare")


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Queries, as they are compared with the vectors of a column, by a metric."""

    column: VectorColumn
    queries: Floats2D
    metric: Metric
    lower: float | None = None
    upper: float | None = None

    @classmethod
    def of(cls, asked: VectorSearch, metric: Metric) -> Comparison:
        """Return what a search compares.  Raises ArgumentError if the vectors have no such distance."""
        column = asked.column
        check_metric(metric, column.element)
        queries = as_stored(asked.queries, column.element, metric)
        return cls(column, queries, metric, asked.lower, asked.upper)

    @property
    def answers(self) -> int:
        """Return how many lists of rows come out: one for each query, or one for all."""
        return 1 if self.column.is_multi else len(self.queries)

    def only(self, number: int) -> Comparison:
        """Return the comparison with what one answer is for."""
        if self.column.is_multi:
            return self
        queries = self.queries[number : number + 1]
        return Comparison(self.column, queries, self.metric, self.lower, self.upper)

    def distances(self, vectors: pa.Array[Any]) -> npt.NDArray[np.float32]:
        """Return for each answer the distance of each row; NaN where there is none in the range."""
        found = self._multi(vectors) if self.column.is_multi else self._single(vectors)
        for bound, is_out in ((self.lower, np.less), (self.upper, np.greater_equal)):
            if bound is not None:
                found[is_out(found, np.float32(bound))] = np.nan
        return found

    def _single(self, vectors: pa.Array[Any]) -> npt.NDArray[np.float32]:
        matrix, valid = matrix_of(vectors, self.metric)
        found = distances(matrix, self.queries, self.metric)
        if valid is not None:
            found[:, ~valid] = np.nan
        return found

    def _multi(self, lists: pa.Array[Any]) -> npt.NDArray[np.float32]:
        """Return the sums over the queries of the distance to the nearest vector of a row."""
        starts = np.asarray(lists.offsets.to_numpy(), np.int64)
        first, last = int(starts[0]), int(starts[-1])
        each = self._single(lists.values.slice(first, last - first))
        has_some = np.flatnonzero(np.diff(starts))
        found = np.full((1, len(lists)), np.nan, np.float32)
        if len(has_some):
            nearest = np.fmin.reduceat(each, starts[has_some] - first, axis=1)
            found[0, has_some] = nearest.sum(0, dtype=np.float32)
        if lists.null_count:
            found[:, ~np.asarray(lists.is_valid().to_numpy(zero_copy_only=False))] = np.nan
        return found

    def rows_at_once(self, vectors: pa.Array[Any]) -> int:
        """Return how many rows are compared at a time."""
        count = len(vectors)
        if self.column.is_multi:
            ends = vectors.offsets
            count = ends[-1].as_py() - ends[0].as_py()
        cells = len(self.queries) * -(-count // max(len(vectors), 1))
        return max(_CELLS // max(cells, 1), _LEAST_ROWS)


def search_all(
    scope: Scope, fragments: Sequence[Fragment], comparison: Comparison, k: int
) -> Neighbours:
    """Return the ``k`` nearest rows of fragments for each answer, as far as they are in the scope."""
    if not fragments or not k:
        return NOTHING
    return search_rows(plan_query(vectors_query(scope, comparison), fragments), comparison, k)


def vectors_query(scope: Scope, comparison: Comparison) -> BoundQuery:
    """Return the query, without tasks, for what `search_rows` reads of the rows of a scope."""
    has_ids = scope.snapshot.manifest.has_stable_row_ids
    return scope.bound(comparison.column.path, with_row_id=has_ids)


def search_rows(query: BoundQuery, comparison: Comparison, k: int) -> Neighbours:
    """Return the ``k`` nearest rows of a query for each answer."""
    has_ids = MetaColumn.ROW_ID.value in query.schema.names
    best = Best(comparison.answers, k)

    def work(batch: pa.RecordBatch) -> Neighbours:
        addresses = _numbers(batch, MetaColumn.ROW_ADDRESS)
        ids = _numbers(batch, MetaColumn.ROW_ID) if has_ids else addresses
        return _compare(comparison, batch.column(0), ids, addresses, best, k)

    width = max(row_bytes(query.schema), 1)
    batches = read_query_batches(query, max(_BLOCK_BYTES // width, _BLOCK_ROWS))
    budget = 2 * processors() * _BLOCK_BYTES
    for near in map_in_order(work, batches, lambda batch: batch.nbytes, budget):
        best.add(near)
    return best.found()


def _compare(
    comparison: Comparison,
    vectors: pa.Array[Any],
    ids: npt.NDArray[np.uint64],
    addresses: npt.NDArray[np.uint64],
    best: Best,
    k: int,
) -> Neighbours:
    parts = []
    step = comparison.rows_at_once(vectors)
    for start in range(0, len(vectors), step):
        found = comparison.distances(vectors.slice(start, step))
        queries, places = nearest_of(found, best.bounds, k)
        rows = places + start
        parts.append(Neighbours(queries, ids[rows], addresses[rows], found[queries, places]))
    near = Neighbours.joined(parts)
    return near.best(k) if len(near) > comparison.answers * k else near


def _numbers(batch: pa.RecordBatch, meta: MetaColumn) -> npt.NDArray[np.uint64]:
    return np.asarray(batch.column(meta.value).to_numpy(), np.uint64)


def compare_again(snapshot: Snapshot, near: Neighbours, comparison: Comparison) -> Neighbours:
    """Return rows with their exact distances; those that have none are left out."""
    if not len(near):
        return near
    path = comparison.column.path
    find = partial(plan_scan_projection, snapshot.manifest.schema, (path,))
    plan = plan_projection(snapshot, snapshot.remember(VECTORS, find, path))
    if comparison.answers == 1:
        vectors = take_addresses(snapshot, plan, near.addresses).column(0)
        return _exact(near, comparison.distances(vectors)[0])
    distinct, places = np.unique(near.addresses, return_inverse=True)
    vectors = take_addresses(snapshot, plan, distinct).column(0)
    found = np.empty(len(near), np.float32)
    for number in np.unique(near.queries).tolist():
        mine = np.flatnonzero(near.queries == number)
        rows = vectors.take(int64_array(places[mine]))
        found[mine] = comparison.only(number).distances(rows)[0]
    return _exact(near, found)


def _exact(near: Neighbours, distances: npt.NDArray[np.float32]) -> Neighbours:
    exact = Neighbours(near.queries, near.ids, near.addresses, distances)
    is_none = np.isnan(distances)
    return exact.at(~is_none) if is_none.any() else exact
