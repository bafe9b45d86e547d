"""From the options of a scan to what is read: columns, condition, expressions, rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from pennon.errors import ArgumentError
from pennon.scan.compute import Computation, Computed, Condition
from pennon.scan.execute import Scan
from pennon.scan.fields import Late
from pennon.scan.filter import Predicate, SqlPredicate
from pennon.scan.filter_unit import FilteredScan
from pennon.scan.metrics import ScanStatistics
from pennon.scan.plan import bytes_per_row, check_batch_rows, default_batch_rows, plan_tasks
from pennon.scan.projection import MetaColumn, Projection, plan_scan_projection
from pennon.scan.pruning import prune_tasks
from pennon.scan.snapshot import Snapshot
from pennon.scan.sort import ColumnOrdering
from pennon.schema.blob import describe_blobs
from pennon.schema.field import Schema
from pennon.schema.width import has_width, row_bytes
from pennon.table.fragment import Fragment


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """What a scan is asked for, as far as Pennon does it."""

    columns: tuple[str, ...] | Mapping[str, str] | None = None
    computation: Computation = field(default_factory=Computation)
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
    report: Callable[[ScanStatistics], object] | None = None

    @property
    def is_filtered(self) -> bool:
        """Tell whether there is a condition."""
        return self.computation.predicate is not None

    @property
    def metas(self) -> list[MetaColumn]:
        """Return the computed columns that are added to those named."""
        asked = [(self.with_row_id, MetaColumn.ROW_ID)]
        asked.append((self.with_row_address, MetaColumn.ROW_ADDRESS))
        return [meta for wanted, meta in asked if wanted]


def every_column(snapshot: Snapshot, schema: Schema) -> pa.Schema:
    """Return what an expression may name: the columns of ``schema``, and those of row ids."""
    key = "every column", schema is snapshot.manifest.schema
    return snapshot.remember(
        key, lambda: plan_scan_projection(schema, None, list(MetaColumn)).arrow
    )


def table_schema(snapshot: Snapshot, options: ScanOptions) -> Schema:
    """Return the schema that the scan's columns are chosen from."""
    schema = snapshot.manifest.schema
    return schema if options.blobs_as_bytes else describe_blobs(schema)


def plan_query(snapshot: Snapshot, options: ScanOptions) -> FilteredScan:
    """Return the scan with its condition and computed columns, but without tasks.

    Raises ArgumentError for what the table does not have, or options that do not go together.
    """
    schema, computation = table_schema(snapshot, options), options.computation
    projection = _plan_projection(snapshot, options, schema)
    _check(options, schema, projection)
    condition = computed = None
    if computation.predicate is not None:
        condition = _plan_condition(snapshot, options, computation.predicate, schema)
    if computation.expressions:
        computed = Computed.of(computation.expressions, schema)
    scan = Scan(snapshot, projection, (), options.with_deleted)
    return FilteredScan(scan, computation.shown(projection), condition, computed, options.late)


def plan_rows(query: FilteredScan, options: ScanOptions) -> FilteredScan:
    """Return the query with its tasks; without a condition, these are all rows that come out."""
    snapshot = query.scan.snapshot
    is_cut = not (options.is_filtered or options.orderings)
    offset, limit = (options.offset, options.limit) if is_cut else (0, None)
    tasks = plan_tasks(snapshot, options.fragments, offset, limit, options.with_deleted)
    predicate = options.computation.predicate
    if isinstance(predicate, SqlPredicate) and not options.with_deleted:
        tasks = prune_tasks(snapshot, tasks, predicate.condition)
    most = None
    if options.is_filtered and not options.orderings and options.limit is not None:
        most = options.offset + options.limit
    scan = Scan(snapshot, query.scan.projection, tuple(tasks), query.scan.with_deleted)
    return replace(query, scan=scan, most=most)


def batch_rows(query: FilteredScan, options: ScanOptions) -> int:
    """Return how many rows a batch of a planned query has at most."""
    rows = check_batch_rows(options.batch_size or default_batch_rows(_row_width(query.scan)))
    if options.batch_size_bytes is None:
        return rows
    widest = max((bytes_per_row(f) for f in query.scan.snapshot.manifest.fragments), default=1)
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


def _plan_projection(snapshot: Snapshot, options: ScanOptions, schema: Schema) -> Projection:
    columns = options.columns
    names = tuple(columns.items()) if isinstance(columns, Mapping) else columns
    key: Hashable = ("projection", names, *options.metas, options.blobs_as_bytes)
    return snapshot.remember(key, partial(plan_scan_projection, schema, columns, options.metas))


def _plan_condition(
    snapshot: Snapshot, options: ScanOptions, predicate: Predicate, schema: Schema
) -> Condition:
    def bind() -> Condition:
        return Condition.of(predicate, schema, every_column(snapshot, schema))

    if not isinstance(predicate, SqlPredicate):
        return bind()
    key = "condition", predicate.text, options.blobs_as_bytes
    known = snapshot.remember(key, bind)
    return known if known.predicate is predicate else bind()


def _check(options: ScanOptions, schema: Schema, projection: Projection) -> None:
    """Raise ArgumentError for options that do not go together, or name what is not there."""
    if options.with_deleted and MetaColumn.ROW_ID not in projection.metas:
        message = "include_deleted_rows needs with_row_id, which tells the deleted rows from others"
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
