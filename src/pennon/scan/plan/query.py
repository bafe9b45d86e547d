"""The planner of all scans: from what is asked for to the rows and columns that are read.

::

    ScanOptions    columns, expressions, condition, order, rows: as they were asked for
    bind_query     ... found in one version of the table, with their types; opens no file
    plan_query     ... with its tasks: the rows that may come out, cut by fragment
    choose_rows    what a condition rules out before a row is read

Scanners, operations on tables and Spark all come here.  Spark binds on the driver, and chooses rows
where a task runs (`BoundQuery.over`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from pennon.core.fast_dataclass import dataclass
from pennon.core.interpreter_end import check_imports_work
from pennon.core.loggers import SCAN
from pennon.errors import ArgumentError
from pennon.expr.tree import Expression
from pennon.scan.metrics import ScanStatistics
from pennon.scan.plan.filter_columns import Late
from pennon.scan.plan.pruning import prune_tasks
from pennon.scan.plan.row_search import NONE_ADDED, Added, RowSearch
from pennon.scan.predicate import Predicate, SqlPredicate, arrow_predicate, parse_expression
from pennon.scan.projection import (
    MetaColumn,
    Projection,
    is_column,
    plan_scan_projection,
    plan_take_projection,
)
from pennon.scan.read.compute import Computed, Condition, inputs_of
from pennon.scan.read.execute import Scan
from pennon.scan.read.tasks import (
    ScanTask,
    bytes_per_row,
    check_batch_rows,
    default_batch_rows,
    plan_tasks,
)
from pennon.scan.snapshot import Key, Snapshot
from pennon.schema.field import Schema
from pennon.schema.width import has_width, row_bytes
from pennon.table.fragment import Fragment

if TYPE_CHECKING:
    from pennon.index.row_set import Selection
    from pennon.scan.plan.index_lookup import IndexLookup


_NOTHING: Final = Projection(Schema((), {}), ())
EVERY_COLUMN: Final[Key[pa.Schema]] = Key("every column")
PREDICATE: Final[Key[SqlPredicate]] = Key("predicate")
INPUTS: Final[Key[Projection]] = Key("inputs")
PROJECTION: Final[Key[Projection]] = Key("projection")
LOOKUP: Final[Key[tuple[SqlPredicate, IndexLookup | None]]] = Key("lookup")


@dataclass
class ColumnOrdering:
    """A column to sort by; pylance's ``ColumnOrdering``.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> from pennon.dataset import ColumnOrdering
    >>> order = ColumnOrdering("id", ascending=False)
    >>> ds.to_table(order_by=[order])["id"].to_pylist()
    [3, 2, 1]
    """

    column_name: str
    ascending: bool = True
    nulls_first: bool = False

    def __str__(self) -> str:
        direction = "ASC" if self.ascending else "DESC"
        return f"{self.column_name} {direction} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """The options of a scan that Pennon supports.

    ``columns`` are shown as they are stored, ``expressions`` are computed of them; ``order`` has the
    names of both, where there are expressions.  ``nests``: parts of structs stay in their structs, as
    in takes, instead of columns of their own.
    """

    columns: tuple[str, ...] | Mapping[str, str] | None = None
    predicate: Predicate | None = None
    expressions: Mapping[str, Expression] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    orderings: tuple[ColumnOrdering, ...] = ()
    limit: int | None = None
    offset: int = 0
    batch_size: int | None = None
    batch_size_bytes: int | None = None
    fragments: tuple[Fragment, ...] | None = None
    with_row_id: bool = False
    with_row_address: bool = False
    with_deleted: bool = False
    strict_batch_size: bool = False
    io_buffer_size: int | None = None
    late: Late = None
    blobs_as_bytes: bool = False
    nests: bool = False
    uses_indices: bool = True
    report: Callable[[ScanStatistics], object] | None = None
    search: RowSearch | None = None
    mask: Predicate | None = None
    """The rows that a search may find at all, whether its condition comes before it or behind it."""

    @property
    def metas(self) -> tuple[MetaColumn, ...]:
        """Return the meta columns that are added to the columns named."""
        if not (self.with_row_id or self.with_row_address):
            return ()
        asked = [(self.with_row_id, MetaColumn.ROW_ID)]
        asked.append((self.with_row_address, MetaColumn.ROW_ADDRESS))
        return tuple(meta for wanted, meta in asked if wanted)


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query of one version of a table, with its tasks if it is planned; it pickles.

    ``scan`` has the tasks and shows the columns that are stored; ``schema`` has all that come out.
    ``source``: the fields that columns were chosen from, blobs as they are shown.
    """

    scan: Scan
    schema: pa.Schema
    source: Schema
    condition: Condition | None = None
    computed: Computed | None = None
    late: Late = None
    orderings: tuple[ColumnOrdering, ...] = ()
    offset: int = 0
    limit: int | None = None
    uses_indices: bool = True
    tested: Snapshot | None = None
    """Where the columns of the condition are read; the scan's own snapshot, unless it is measured."""

    @property
    def snapshot(self) -> Snapshot:
        """Return the version of the table."""
        return self.scan.snapshot

    @property
    def is_plain(self) -> bool:
        """Return whether stored columns come out as they are, and nothing else has to be done."""
        return self.condition is None and self.computed is None

    @property
    def most(self) -> int | None:
        """Return how many rows that pass the condition are enough; None: all are wanted."""
        if self.condition is None or self.orderings or self.limit is None:
            return None
        return self.offset + self.limit

    @property
    def inputs(self) -> list[Projection]:
        """Return the columns that are needed beside those shown."""
        return [each.inputs for each in (self.condition, self.computed) if each is not None]

    def counting(self) -> BoundQuery:
        """Return the query for the same rows without any column."""
        scan = replace(self.scan, projection=_NOTHING)
        return replace(self, scan=scan, schema=pa.schema([]), computed=None)

    def over(self, tasks: Sequence[ScanTask], found: Selection | None = None) -> BoundQuery:
        """Return the query over parts of a table, without the rows that its condition rules out.

        ``found``: what indices say of the condition, if they were asked before.
        """
        scan = self.scan
        left = tuple(choose_rows(self, tasks, found))
        return replace(self, scan=Scan(scan.snapshot, scan.projection, left, scan.with_deleted))

    def reading(self, snapshot: Snapshot) -> BoundQuery:
        """Return the query with all that it reads read through a snapshot of the same version: a metered one."""
        if snapshot is self.snapshot:
            return self
        return replace(self, scan=replace(self.scan, snapshot=snapshot), tested=snapshot)


def every_column(snapshot: Snapshot, schema: Schema) -> pa.Schema:
    """Return what an expression may name: the columns of ``schema``, and the meta columns."""
    return snapshot.remember(
        EVERY_COLUMN,
        lambda: plan_scan_projection(schema, None, list(MetaColumn)).arrow,
        schema is snapshot.manifest.schema,
    )


# --- what is asked for ----------------------------------------------------------------------------


def columns_to_name(snapshot: Snapshot, schema: Schema, added: Added = NONE_ADDED) -> pa.Schema:
    """Return what an expression may name: see `every_column`, and the columns that a search adds."""
    if not added:
        return every_column(snapshot, schema)

    def join() -> pa.Schema:
        table = every_column(snapshot, schema)
        return pa.schema([*(each for each in table if each.name not in added), *added.values()])

    return snapshot.remember(EVERY_COLUMN, join, schema is snapshot.manifest.schema, *added)


def parse_predicate(
    snapshot: Snapshot,
    text: str | pc.Expression,
    schema: Schema | None = None,
    search: RowSearch | None = None,
) -> Predicate:
    """Return the condition that SQL text or a pyarrow expression is for a version's rows.

    ``schema`` has the columns that it may name, by default the table's.  A condition on the rows that a ``search``
    found may name what the search adds, too.
    Raises ArgumentError if it is none, or names what the table does not have.
    """
    schema = snapshot.manifest.schema if schema is None else schema
    added = NONE_ADDED if search is None or search.prefilter else search.added.fields
    columns = columns_to_name(snapshot, schema, added)
    if not isinstance(text, str):
        return arrow_predicate(text, columns)
    parse = partial(SqlPredicate.parse, text, columns)
    own = schema is snapshot.manifest.schema
    return snapshot.remember(PREDICATE, parse, text, own, *added)


def parse_columns(
    snapshot: Snapshot,
    columns: Mapping[str, str],
    schema: Schema | None = None,
    search: RowSearch | None = None,
) -> tuple[dict[str, str], dict[str, Expression]]:
    """Return those columns that are stored, by the names to show them under, and expressions.

    ``schema`` has the columns that they may name, by default the table's; expressions may name what a ``search``
    adds, too.  Raises ArgumentError for what is neither a column nor an expression.
    """
    schema = snapshot.manifest.schema if schema is None else schema
    stored = {name: source for name, source in columns.items() if is_column(schema, source)}
    rest = {name: text for name, text in columns.items() if name not in stored}
    added = NONE_ADDED if search is None else search.added.fields
    table = columns_to_name(snapshot, schema, added) if rest else pa.schema([])
    return stored, {name: parse_expression(text, table) for name, text in rest.items()}


# --- binding --------------------------------------------------------------------------------------


def bind_query(snapshot: Snapshot, options: ScanOptions) -> BoundQuery:
    """Return what the options ask of a version, without tasks.

    Raises ArgumentError for what the table does not have, or options that do not go together.
    """
    manifest = snapshot.manifest
    SCAN.debug(
        "%s: scan of version %d, columns %s", snapshot.store.uri, manifest.version, options.columns
    )
    schema, projection = bind_columns(snapshot, options, options.columns)
    condition = computed = None
    if options.predicate is not None:
        condition = bind_condition(snapshot, options.predicate, schema)
    if options.expressions:
        computed = Computed.of(options.expressions, schema)
    return BoundQuery(
        Scan(snapshot, projection, (), options.with_deleted),
        _shown(options, projection),
        schema,
        condition,
        computed,
        options.late,
        options.orderings,
        options.offset,
        options.limit,
        options.uses_indices,
    )


def bind_condition(snapshot: Snapshot, predicate: Predicate, schema: Schema) -> Condition:
    """Return a predicate with the columns that it needs, of the fields of ``schema``.

    Raises ArgumentError if it does not fit.
    """
    paths = tuple(predicate.paths(every_column(snapshot, schema)))
    is_stored = schema is snapshot.manifest.schema
    inputs = snapshot.remember(INPUTS, partial(inputs_of, schema, paths), paths, is_stored)
    return Condition(predicate, inputs, inputs.arrow)


def bind_columns(
    snapshot: Snapshot, options: ScanOptions, columns: tuple[str, ...] | Mapping[str, str] | None
) -> tuple[Schema, Projection]:
    """Return the fields that columns are chosen from, and what comes out of them; raises as `bind_query` does."""
    schema = snapshot.manifest.schema if options.blobs_as_bytes else snapshot.shown_schema
    names = columns if columns is None or isinstance(columns, tuple) else tuple(columns.items())
    metas = options.metas
    find = partial(plan_scan_projection, schema, columns, metas)
    if options.nests:
        find = partial(plan_take_projection, schema, columns)
    about = (names, *metas, options.blobs_as_bytes, options.nests)
    found = snapshot.remember(PROJECTION, find, *about)
    _check(options, schema, found)
    return schema, found


def _shown(options: ScanOptions, stored: Projection) -> pa.Schema:
    """Return the schema of what comes out, given the columns that come out as they are stored."""
    if not options.expressions:
        return stored.arrow
    plain = {column.arrow.name: column.arrow for column in stored.columns}
    computed = {name: pa.field(name, each.type) for name, each in options.expressions.items()}
    rest = [name for name in plain if name not in options.order]
    fields = [(plain | computed)[name] for name in (*options.order, *rest)]
    return pa.schema(fields, stored.arrow.metadata)


def _check(options: ScanOptions, schema: Schema, projection: Projection) -> None:
    """Raise ArgumentError for options that do not go together, or name what is not there."""
    if options.with_deleted and MetaColumn.ROW_ID not in projection.metas:
        message = (
            "include_deleted_rows needs with_row_id, which tells the deleted rows from others, but "
            "with_row_id is false"
        )
        raise ArgumentError(message)
    if options.strict_batch_size and options.batch_size_bytes is not None:
        message = "strict_batch_size and batch_size_bytes do not go together"
        raise ArgumentError(message)
    if isinstance(options.late, frozenset):
        unknown = sorted(options.late - {field.name for field in schema.fields})
        if unknown:
            names = ", ".join(field.name for field in schema.fields)
            message = f"late_materialization: no column named {unknown[0]!r}; there are {names}"
            raise ArgumentError(message)


# --- planning -------------------------------------------------------------------------------------


def plan_query(
    query: BoundQuery,
    fragments: Sequence[Fragment] | None = None,
    found: Selection | None = None,
) -> BoundQuery:
    """Return the query with its tasks in the fragments given, by default all.

    Without a condition and an order, these are all rows that come out.  ``found``: see `BoundQuery.over`.
    """
    check_imports_work()
    is_cut = query.condition is None and not query.orderings
    offset, limit = (query.offset, query.limit) if is_cut else (0, None)
    tasks = plan_tasks(query.snapshot, fragments, offset, limit, query.scan.with_deleted)
    return query.over(tasks, found)


def choose_rows(
    query: BoundQuery, tasks: Sequence[ScanTask], found: Selection | None = None
) -> Sequence[ScanTask]:
    """Return the parts of tasks in which a row may pass the condition, in order.

    ``found``: what indices say of it, if they were asked before.  Whatever rules rows out before a column of theirs is read is asked here, and nowhere else: row
    ids and addresses, then the statistics of pages, then indices.
    """
    condition = query.condition
    if condition is None or query.scan.with_deleted:
        return tasks
    if not isinstance(condition.predicate, SqlPredicate):
        return tasks
    left = prune_tasks(query.snapshot, tasks, condition.predicate)
    lookup = lookup_of(query)
    if lookup is None:
        return left
    chosen = lookup.choose_rows(query.snapshot, left, found)
    if query.snapshot.meter is not None:
        query.snapshot.meter.leave(sum(task.rows for task in chosen))
    return chosen


def lookup_of(query: BoundQuery) -> IndexLookup | None:
    """Return which indices are asked of a query's condition; None if none is."""
    condition = query.condition
    if condition is None or query.scan.with_deleted or not query.uses_indices:
        return None
    if not isinstance(condition.predicate, SqlPredicate) or not query.snapshot.manifest.indices:
        return None
    from pennon.scan.plan.index_lookup import plan_lookup  # noqa: PLC0415 - saves what reads indices: most tables have none

    predicate, snapshot = condition.predicate, query.snapshot

    def plan() -> tuple[SqlPredicate, IndexLookup | None]:
        return predicate, plan_lookup(snapshot, predicate.condition)

    known, lookup = snapshot.remember(LOOKUP, plan, predicate.text)
    return lookup if known is predicate else plan()[1]


def batch_rows(query: BoundQuery, options: ScanOptions) -> int:
    """Return how many rows a batch of a planned query has at most."""
    rows = check_batch_rows(options.batch_size or default_batch_rows(_row_width(query.scan)))
    if options.batch_size_bytes is None:
        return rows
    widest = max((bytes_per_row(f) for f in query.snapshot.manifest.fragments), default=1)
    return max(min(rows, options.batch_size_bytes // widest), 1)


def _row_width(scan: Scan) -> int:
    """Return about how many bytes a row takes in memory.

    Columns without a width are taken for as wide as all columns are in the data files, which tell
    nothing of a single one.
    """
    schema = scan.projection.arrow
    least = row_bytes(schema)
    if all(has_width(field.type) for field in schema):
        return least
    return max(least, *(bytes_per_row(task.fragment) for task in scan.tasks), 0)
