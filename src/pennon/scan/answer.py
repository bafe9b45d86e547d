"""Scans of rows that a search finds: one pipeline for every kind of search.

::

    RowSource        finds rows, best first, and adds columns to them: distances, scores, ...
    condition        ... those that pass, unless it limited the search; it may name the added columns
    order            ... in another order, if one was asked for
    offset, limit    ... cut, unless the source did that
    fetch            their stored columns, taken in that order
    expressions      evaluated over stored and added columns
    schema           the added columns in their places among the others

A kind of search is a class with the members of `RowSource`, in a module of `pennon.scan.search`; its search value names it.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from operator import attrgetter
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.cached_property import cached_property
from pennon.core.fast_dataclass import dataclass
from pennon.encoding.large_columns import combined
from pennon.errors import ArgumentError
from pennon.expr.evaluate import evaluate
from pennon.expr.tree import paths_of
from pennon.index.files import watched
from pennon.index.row_set import Numbers
from pennon.scan.metrics import Meter
from pennon.scan.plan.query import (
    BoundQuery,
    ScanOptions,
    batch_rows,
    bind_columns,
    columns_to_name,
)
from pennon.scan.plan.row_search import AddedColumns
from pennon.scan.plan.take_plan import TakePlan
from pennon.scan.predicate import Predicate
from pennon.scan.projection import MetaColumn
from pennon.scan.read.arrays import column_of, int64_array
from pennon.scan.read.compute import inputs_of, rows_at_once
from pennon.scan.read.execute import Scan
from pennon.scan.run.explain import analyzed, index_metrics, metrics
from pennon.scan.run.page_scan import measured
from pennon.scan.run.plan_steps import Filter, Limit, Plan, ReadFound, Sort, chained
from pennon.scan.run.sort import sort_rows, take_rows, with_sort_keys
from pennon.scan.run.take import take_addresses, take_batches, take_stored
from pennon.scan.snapshot import Key, Snapshot

T = TypeVar("T")
SHOWN: Final[Key[pa.Schema]] = Key("schema of an answer")
_METAS: Final = (MetaColumn.ROW_ID.value, MetaColumn.ROW_ADDRESS.value)
_PLACE: Final = "place"


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Rows that a source found, in its order: their addresses, and the columns that it adds."""

    addresses: Numbers
    added: Mapping[str, pa.Array[Any]]

    def __len__(self) -> int:
        """Return how many rows they are."""
        return len(self.addresses)

    def at(self, places: Int64Array | slice) -> Found:
        """Return some of them."""
        addresses = self.addresses[places]
        if isinstance(places, slice):
            return Found(addresses, {name: each[places] for name, each in self.added.items()})
        chosen = int64_array(places)
        return Found(addresses, {name: each.take(chosen) for name, each in self.added.items()})

    @classmethod
    def joined(cls, parts: Sequence[Found]) -> Found:
        """Return rows of several in one, of one at least; all have the same columns."""
        names = parts[0].added
        added = {name: pa.concat_arrays([each.added[name] for each in parts]) for name in names}
        return cls(np.concatenate([each.addresses for each in parts]), added)


class RowSource(Protocol):
    """Finds rows, and adds columns to them; it is bound to a version and to the options of a scan."""

    @property
    def added(self) -> AddedColumns:
        """Return the columns that come with the rows."""

    @property
    def cuts(self) -> bool:
        """Return whether `find` leaves out the rows before the offset, and beyond the limit."""

    def find(self, limit: int | None, offset: int) -> Found:
        """Return the rows, best first; the limit and the offset are those of the scan."""

    def steps(self, limit: int | None, offset: int) -> tuple[Plan, ...]:
        """Return the plan of `find`."""


SourceT = TypeVar("SourceT", bound=RowSource)


class Answer(Generic[SourceT]):
    """The rows of a source as a scan shows them, bound to a version."""

    def __init__(
        self,
        snapshot: Snapshot,
        options: ScanOptions,
        source_of: Callable[[Snapshot, ScanOptions], SourceT],
    ) -> None:
        """Bind a scan.  Raises ArgumentError for one that cannot be answered."""
        self._snapshot, self._options, self._source_of = snapshot, options, source_of
        self.source: SourceT = source_of(snapshot, options)
        self._added = self.source.added
        self._names = _names(options)
        if self._names is not None and len({*self._names}) < len(self._names):
            message = f"a column is named twice: {', '.join(self._names)}"
            raise ArgumentError(message)
        self.query: BoundQuery = _bound(snapshot, options, self._stored)

    @property
    def _stored(self) -> tuple[str, ...] | Mapping[str, str] | None:
        """Return the columns that are stored; all others are added or computed."""
        columns = self._options.columns
        if columns is None:
            return () if self._options.expressions else None
        if isinstance(columns, tuple):
            return tuple([name for name in columns if name not in self._added.fields])
        return columns

    @cached_property
    def schema(self) -> pa.Schema:
        """Return the schema of what comes out."""
        options, added = self._options, self._added
        if options.expressions:
            return self._make_schema()
        columns = options.columns
        stored = columns if columns is None or isinstance(columns, tuple) else (*columns.items(),)
        about = stored, options.metas, options.blobs_as_bytes, added
        return self._snapshot.remember(SHOWN, self._make_schema, *about)

    def _make_schema(self) -> pa.Schema:
        fields = {field.name: field for field in self.query.schema}
        computed = self._options.expressions
        fields |= {name: pa.field(name, each.type) for name, each in computed.items()}
        metas = [name for name in _METAS if name in fields]
        names = [name for name in fields if name not in metas]
        first, last = self._added.first, self._added.last
        if self._names is not None:
            names = [name for name in self._names if name not in first]
        fields = {**self._added.fields, **fields}
        behind = [name for name in (*last, *metas) if name not in names]
        return pa.schema(
            [fields[name] for name in (*first, *names, *behind)], self.query.schema.metadata
        )

    # --- rows -------------------------------------------------------------------------------------

    def found(self) -> Found:
        """Return the rows that come out, in order."""
        offset, limit = self._options.offset, self._options.limit
        found = self.filtered(self.source.find(limit, offset))
        if self.query.orderings and len(found):
            found = found.at(self._order(found))
        if self.source.cuts or (not offset and limit is None):
            return found
        return found.at(slice(offset, None if limit is None else offset + limit))

    def filtered(self, found: Found) -> Found:
        """Return those of the rows found that pass the condition, unless it limited the search."""
        predicate = self._behind
        if predicate is None or not len(found):
            return found
        paths = predicate.paths(
            columns_to_name(self._snapshot, self.query.source, self._added.fields)
        )
        masks = [predicate.test(batch) for batch in self._batches(found, paths)]
        passes = [mask.fill_null(False).to_numpy(zero_copy_only=False) for mask in masks]  # noqa: FBT003 - Arrow's own order
        return found.at(np.flatnonzero(np.concatenate(passes)))

    @property
    def _behind(self) -> Predicate | None:
        """Return the condition on rows that were found, if it did not limit the search."""
        search = self._options.search
        return None if search is None or search.prefilter else self._options.predicate

    def _order(self, found: Found) -> Int64Array:
        """Return the places of rows in the order that was asked for; equal ones stay as they were found."""
        options = replace(self._options, with_row_id=False, with_row_address=True)
        query = with_sort_keys(_bound(self._snapshot, options, ()))
        keys = take_rows(query, found.addresses)
        keys = keys.append_column(_PLACE, int64_array(np.arange(len(found))))
        return np.asarray(sort_rows(keys, query.orderings).column(_PLACE).to_numpy(), np.int64)

    def rows(self, found: Found) -> pa.Table:
        """Return the columns of rows that were found, in their order."""
        taken = take_stored(self.query, found.addresses)
        columns: dict[str, Any] = {
            name: column_of([part.arrays[at] for part in taken])
            for at, name in enumerate(self.query.schema.names)
        }
        columns |= found.added
        expressions = self._options.expressions
        if expressions:
            paths = [path for each in expressions.values() for path in paths_of(each)]
            batches = self._batches(found, paths)
            for name, each in expressions.items():
                chunks = [evaluate(each, batch) for batch in batches]
                columns[name] = pa.chunked_array(chunks, each.type)
        schema = self.schema
        return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)

    def _batches(self, found: Found, paths: Sequence[tuple[str, ...]]) -> list[pa.RecordBatch]:
        """Return what expressions need of some rows: columns of the table, and those that the source adds."""
        own = [path for path in dict.fromkeys(paths) if path[0] not in found.added]
        plan = TakePlan(inputs_of(self.query.source, own))
        snapshot = self._snapshot
        taken = take_batches(lambda at: take_addresses(snapshot, plan, at), found.addresses)
        batches, start = [], 0
        for batch in itertools.chain.from_iterable(map(_cut, taken)):
            added = [each.slice(start, batch.num_rows) for each in found.added.values()]
            names = [*batch.schema.names, *found.added]
            batches.append(pa.RecordBatch.from_arrays([*batch.columns, *added], names))
            start += batch.num_rows
        return batches

    # --- scans ------------------------------------------------------------------------------------

    def read(self) -> pa.Table:
        """Return the rows."""
        return self._reported(lambda answer: answer.rows(answer.found()))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return the rows in batches."""
        rows = batch_rows(self.query, self._options)
        return iter(combined(self.read()).to_batches(max_chunksize=rows))

    def count(self) -> int:
        """Return how many rows come out."""
        return self._reported(lambda answer: len(answer.found()))

    def _reported(self, work: Callable[[Answer[SourceT]], T]) -> T:
        """Do some work, and tell the callback, if there is one, what it read."""
        if self._options.report is None:
            return work(self)
        snapshot, report = measured(self._snapshot, self._options)
        answer = self._over(snapshot)
        with report, watched(snapshot.meter):
            return work(answer)

    def _over(self, snapshot: Snapshot) -> Answer[SourceT]:
        return Answer(snapshot, self._options, self._source_of)

    def plan(self, uri: str) -> Plan:
        """Return the plan."""
        return chained([Plan(ReadFound(uri, tuple(self.schema.names)))], self.steps())[0]

    def steps(self) -> tuple[Plan, ...]:
        """Return the plan of `found`."""
        options, predicate = self._options, self._behind
        offset, limit = options.offset, options.limit
        steps = []
        if (limit is not None or offset) and not self.source.cuts:
            steps.append(Plan(Limit(limit, offset)))
        if self.query.orderings:
            steps.append(Plan(Sort(self.query.orderings)))
        if predicate is not None:
            steps.append(Plan(Filter(predicate)))
        return chained(steps, self.source.steps(limit, offset))

    def explain(self, uri: str, *, verbose: bool) -> str:  # noqa: ARG002 - searches tell no more
        """Return the plan as text."""
        return str(self.plan(uri))

    def analyze(self, uri: str, *, counts: bool) -> str:
        """Run the scan, and return the plan with what was read and how long it took; ``counts``: rows are counted."""
        meter = Meter(self._snapshot.store.limits)
        began = time.perf_counter()
        with watched(meter):
            found = self._over(self._snapshot.metered(meter))
            rows = len(found.found()) if counts else found.rows(found.found()).num_rows
        seconds = time.perf_counter() - began
        plan = replace(self.plan(uri), metrics=metrics(meter))
        return analyzed(plan.with_last_metrics(index_metrics(meter)), rows, seconds)


def answer_search(snapshot: Snapshot, options: ScanOptions) -> Answer[Any]:
    """Return the answer to the search of a scan.  Raises ArgumentError for one that cannot be answered.

    A search of texts loads nothing that compares vectors, and the other way round.
    """
    search = options.search
    if search is None:
        message = "a scan without a search has no source of rows"
        raise ValueError(message)
    module, _, name = search.source.partition(":")
    source = attrgetter(name)(import_module(f"pennon.scan.search.{module}"))
    return Answer(snapshot, options, partial(source, asked=search))


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


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield a batch in pieces that expressions are evaluated over at once; one without rows is a piece, too."""
    most = rows_at_once([[column] for column in batch.columns])
    for start in range(0, max(batch.num_rows, 1), most):
        yield batch.slice(start, most)
