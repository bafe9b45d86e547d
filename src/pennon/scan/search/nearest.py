"""A scan that searches vectors: the rows nearest to a query, with their distances, nearest first.

::

    prefilter           the condition rules rows out before the search, else of the rows that the search found
    indices             candidates of the fragments that an index covers
    compared            the rows of all other fragments; then the candidates too, so that distances are of one kind
    best                the k nearest of each query, those of equal distance by row id
    condition           ... those that pass; it may name _distance
    order               ... in another order, if one was asked for
    limit and offset    ... cut
    rows                their columns, taken in that order; query_index before them, _distance behind

Source: reference index-vector, 6.1 and 6.2; ledger F-520.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.core.cached_property import cached_property
from pennon.errors import ArgumentError
from pennon.expr.evaluate import evaluate
from pennon.expr.tree import Expression, paths_of
from pennon.index.vector.metric import default_metric
from pennon.index.vector.search.top_k import Neighbours
from pennon.scan.plan.query import BoundQuery, ScanOptions, bind_columns, every_column
from pennon.scan.plan.take_plan import TakePlan
from pennon.scan.plan.vector_query import QUERY_INDEX, VectorSearch
from pennon.scan.predicate import Predicate, SqlPredicate, arrow_predicate, parse_expression
from pennon.scan.projection import MetaColumn, is_column
from pennon.scan.read.arrays import float32_array, int32_array, int64_array
from pennon.scan.read.compute import inputs_of
from pennon.scan.read.execute import Scan
from pennon.scan.run.sort import sort_rows, take_rows, take_stored, with_sort_keys
from pennon.scan.run.take import take_addresses, take_batches
from pennon.scan.search.compare_vectors import Comparison, compare_again, search_all
from pennon.scan.search.scope import Scope
from pennon.scan.search.vector_indices import VectorIndices, find_index, search_indices
from pennon.scan.snapshot import Snapshot
from pennon.table.fragment import Fragment

DISTANCE: Final = "_distance"
_DEFAULT_K: Final = 10
_METAS: Final = (MetaColumn.ROW_ID.value, MetaColumn.ROW_ADDRESS.value)


_DISTANCE: Final = pa.field(DISTANCE, pa.float32())
_ADDED: Final = {DISTANCE: _DISTANCE}
_ADDED_TO_MANY: Final = {
    DISTANCE: _DISTANCE,
    QUERY_INDEX: pa.field(QUERY_INDEX, pa.int32(), nullable=False),
}


def added_columns(asked: VectorSearch) -> Mapping[str, pa.Field[Any]]:
    """Return the columns that a search adds; conditions and expressions may name them."""
    return _ADDED_TO_MANY if asked.is_batch else _ADDED


def columns_to_name(snapshot: Snapshot, asked: VectorSearch) -> pa.Schema:
    """Return what conditions on the rows that a search found, and expressions, may name."""
    added = added_columns(asked)
    table = every_column(snapshot, snapshot.manifest.schema)
    return pa.schema([*(each for each in table if each.name not in added), *added.values()])


def parse_condition(
    snapshot: Snapshot, text: str | pc.Expression, asked: VectorSearch
) -> Predicate:
    """Return a condition on the rows that a search found.  Raises ArgumentError if it is none."""
    columns = columns_to_name(snapshot, asked)
    if isinstance(text, str):
        return SqlPredicate.parse(text, columns)
    return arrow_predicate(text, columns)


def parse_columns(
    snapshot: Snapshot, columns: Mapping[str, str], asked: VectorSearch
) -> tuple[dict[str, str], dict[str, Expression]]:
    """Return those columns that are stored, by the names to show them under, and expressions over a search.

    Raises ArgumentError for what is neither a column nor an expression.
    """
    schema, known = snapshot.manifest.schema, columns_to_name(snapshot, asked)
    stored = {name: source for name, source in columns.items() if is_column(schema, source)}
    rest = {name: text for name, text in columns.items() if name not in stored}
    return stored, {name: parse_expression(text, known) for name, text in rest.items()}


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


class NearestScan:
    """A scan that searches vectors, bound to a version."""

    def __init__(self, snapshot: Snapshot, options: ScanOptions, asked: VectorSearch) -> None:
        """Bind a scan.  Raises ArgumentError for one that cannot be answered."""
        if options.with_deleted:
            raise ArgumentError("Cannot include deleted rows in a nearest neighbor search")
        if options.fragments is not None and not asked.prefilter:
            message = "a search in some fragments has to filter first: This operation is not supported for fragment scan, use prefilter=True"
            raise ArgumentError(message)
        self._snapshot, self._options, self._asked = snapshot, options, asked
        self._added = added_columns(asked)
        self._names = _names(options)
        if self._names is not None and len({*self._names}) < len(self._names):
            message = f"a column is named twice: {', '.join(self._names)}"
            raise ArgumentError(message)
        before = options.predicate if asked.prefilter else None
        self._scope = Scope(
            snapshot, before, options.fragments, asked.is_fast, options.uses_indices
        )
        self.query: BoundQuery = _bound(snapshot, options, self._stored)
        self._comparison  # noqa: B018 - a metric that the column does not have is found now

    @property
    def _stored(self) -> tuple[str, ...] | Mapping[str, str] | None:
        """Return the columns that are stored; a search does all else itself."""
        columns = self._options.columns
        if columns is None:
            return () if self._options.expressions else None
        if isinstance(columns, tuple):
            return tuple([name for name in columns if name not in self._added])
        return columns

    @cached_property
    def schema(self) -> pa.Schema:
        """Return the schema of what comes out."""
        if self._expressions:
            return self._answered()
        # which the version remembers for some columns, and what is made of it here
        stored = self.query.schema
        key = "answer", id(stored), self._names, self._asked.is_batch, self._asked.is_scored
        return self._snapshot.remember(key, lambda: (stored, self._answered()))[1]

    def _answered(self) -> pa.Schema:
        fields = {field.name: field for field in self.query.schema}
        fields |= {name: pa.field(name, each.type) for name, each in self._expressions.items()}
        metas = [name for name in _METAS if name in fields]
        names = [name for name in fields if name not in metas]
        if self._names is not None:
            names = [
                name for name in self._names if name != QUERY_INDEX or not self._asked.is_batch
            ]
        fields = {**self._added, **fields}
        last = [DISTANCE] if self._asked.is_scored and DISTANCE not in names else []
        first = [QUERY_INDEX] if self._asked.is_batch else []
        last += [name for name in metas if name not in names]
        return pa.schema(
            [fields[name] for name in (*first, *names, *last)], self.query.schema.metadata
        )

    @property
    def _expressions(self) -> Mapping[str, Expression]:
        return self._options.expressions

    @property
    def _k(self) -> int:
        limit = self._options.limit
        if limit == 0:
            return 0
        if self._asked.k is not None:
            return self._asked.k
        return _DEFAULT_K if limit is None else limit

    # --- searching --------------------------------------------------------------------------------

    @cached_property
    def _indices(self) -> VectorIndices | None:
        return find_index(self._snapshot, self._asked)

    @cached_property
    def _comparison(self) -> Comparison:
        metric = self._asked.metric or (None if self._indices is None else self._indices.metric)
        return Comparison.of(self._asked, metric or default_metric(self._asked.column.element))

    @property
    def _compared(self) -> Sequence[Fragment]:
        """Return the fragments all of whose rows are compared with the queries."""
        if self._scope.is_fast:
            return ()
        covered = frozenset[int]() if self._indices is None else self._indices.covered

        def find() -> tuple[Fragment, ...]:
            return tuple([each for each in self._scope.searched if each.id not in covered])

        if self._scope.fragments is not None:
            return find()
        return self._snapshot.remember(("not covered", covered), find)

    def near(self) -> Neighbours:
        """Return the rows that come out, in order."""
        near = self.filtered(self._search())
        if self.query.orderings and len(near):
            near = near.at(self._order(near))
        offset, limit = self._options.offset, self._options.limit
        if not offset and limit is None:
            return near
        return near.at(slice(offset, None if limit is None else offset + limit))

    def filtered(self, near: Neighbours) -> Neighbours:
        """Return those of the rows found that pass the condition, unless it came before the search."""
        predicate = self._options.predicate
        if predicate is None or self._asked.prefilter or not len(near):
            return near
        return near.at(self._passing(near, predicate))

    def _search(self) -> Neighbours:
        """Return the nearest rows of each query."""
        indices, comparison, k = self._indices, self._comparison, self._k
        compared = self._compared
        found = [search_all(self._scope, compared, comparison, k)] if compared else []
        if indices is not None and k:
            scope, asked = self._scope, self._asked
            found.append(search_index(indices, scope, asked, comparison, k, exactly=bool(compared)))
        return (found[0] if len(found) == 1 else Neighbours.joined(found)).best(k)

    def count(self) -> int:
        """Return how many rows come out."""
        return len(self.near())

    # --- columns ----------------------------------------------------------------------------------

    def read(self) -> pa.Table:
        """Return the rows."""
        return self.rows(self.near())

    def rows(self, near: Neighbours) -> pa.Table:
        """Return the columns of rows that were found, in their order."""
        taken = take_stored(self.query, near.addresses)
        columns: dict[str, Any] = {
            name: pa.chunked_array([batch.column(at) for batch in taken])
            for at, name in enumerate(self.query.schema.names)
        }
        columns |= self._values(near)
        if self._expressions:
            paths = [path for each in self._expressions.values() for path in paths_of(each)]
            batches = self._batches(near, paths)
            for name, each in self._expressions.items():
                chunks = [evaluate(each, batch) for batch in batches]
                columns[name] = pa.chunked_array(chunks, each.type)
        schema = self.schema
        return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)

    def _values(self, near: Neighbours) -> dict[str, pa.Array[Any]]:
        """Return the columns that the search adds."""
        values = {DISTANCE: float32_array(near.distances)}
        if self._asked.is_batch:
            values[QUERY_INDEX] = int32_array(near.queries.astype(np.int32))
        return values

    def _passing(
        self, near: Neighbours, predicate: Predicate
    ) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return which rows pass a condition that may name what the search adds."""
        paths = predicate.paths(columns_to_name(self._snapshot, self._asked))
        masks = [predicate.test(batch) for batch in self._batches(near, paths)]
        return np.concatenate(
            [
                np.asarray(mask.fill_null(False).to_numpy(zero_copy_only=False), np.bool_)  # noqa: FBT003 - Arrow's own order
                for mask in masks
            ]
        )

    def _batches(self, near: Neighbours, paths: Sequence[tuple[str, ...]]) -> list[pa.RecordBatch]:
        """Return what expressions need of some rows: columns of the table, and those that the search adds."""
        own = [path for path in dict.fromkeys(paths) if path[0] not in self._added]
        plan = TakePlan(inputs_of(self.query.source, own))
        snapshot = self._snapshot
        taken = take_batches(lambda at: take_addresses(snapshot, plan, at), near.addresses)
        values = self._values(near)
        found, start = [], 0
        for batch in taken:
            part = {name: each.slice(start, batch.num_rows) for name, each in values.items()}
            arrays = [*batch.columns, *part.values()]
            found.append(pa.RecordBatch.from_arrays(arrays, [*batch.schema.names, *part]))
            start += batch.num_rows
        return found

    def _order(self, near: Neighbours) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the places of rows in the order that was asked for; equal ones stay by distance."""
        options = replace(self._options, with_row_id=False, with_row_address=True)
        query = with_sort_keys(_bound(self._snapshot, options, ()))
        keys = take_rows(query, near.addresses)
        keys = keys.append_column("place", int64_array(np.arange(len(near))))
        return np.asarray(sort_rows(keys, query.orderings).column("place").to_numpy(), np.int64)

    # --- words ------------------------------------------------------------------------------------

    def lines(self, uri: str) -> list[str]:
        """Return the plan, a line for each step, from the top down."""
        options, asked, comparison = self._options, self._asked, self._comparison
        k, indices = self._k, self._indices
        found = [f"Read: uri={uri}, columns=[{', '.join(self.schema.names)}]"]
        if options.limit is not None or options.offset:
            found.append(f"Limit: limit={options.limit}, offset={options.offset}")
        if self.query.orderings:
            found.append("Sort: " + ", ".join(map(str, self.query.orderings)))
        if options.predicate is not None and not asked.prefilter:
            found.append(f"Filter: {options.predicate}")
        found.append(f"Sort: _distance ASC NULLS LAST, _rowid ASC NULLS LAST, TopK(fetch={k})")
        queries = f", queries={len(comparison.queries)}" if asked.is_batch else ""
        compared = self._compared
        again = compared or asked.refine_factor is not None
        below = []
        if indices is not None:
            wanted = k * (asked.refine_factor or 1)
            probes = asked.probes(wanted, comparison.metric)
            most = None if probes.maximum is None else f"Some({probes.maximum})"
            found += [f"KNNVectorDistance: metric={comparison.metric}{queries}"] if again else []
            below.append(
                f"ANNSubIndex: name={indices.name}, k={wanted}, deltas={len(indices.segments)}, "
                f"metric={comparison.metric}, minimum_nprobes={probes.minimum}, "
                f"maximum_nprobes={most}{queries}"
            )
        if compared:
            below.append(
                f"KNNVectorDistance: metric={comparison.metric}, column={asked.column.path}, "
                f"num_fragments={len(compared)}{queries}"
            )
        depth = len(found)
        lines = ["  " * at + line for at, line in enumerate(found)]
        lines += ["  " * depth + line for line in below]
        return lines + ["  " * (depth + 1) + line for line in self._scope.lines()]


def _bound(
    snapshot: Snapshot, options: ScanOptions, columns: tuple[str, ...] | Mapping[str, str] | None
) -> BoundQuery:
    """Return the query for columns as they are stored, in the order that the options ask for."""
    schema, projection = bind_columns(snapshot, options, columns)
    scan = Scan(snapshot, projection, (), options.with_deleted)
    return BoundQuery(scan, projection.arrow, schema, orderings=options.orderings)


def _names(options: ScanOptions) -> tuple[str, ...] | None:
    """Return the names of the columns that were asked for, in order; None: all."""
    if options.order:
        return options.order
    return None if options.columns is None else tuple(options.columns)
