"""The read of one Spark task: the same query as everywhere, of a part of the table.

The driver opens the table, pins its version and binds the query.  What travels is the query, with the
table's store and schema (without the list of fragments), and with each task its fragments, so an
executor reads no manifest.  What a filter rules out, the executor finds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import Final

import pyarrow as pa

from pennon.blob.columns import BytesOfBlobs
from pennon.core.units import MIB
from pennon.encoding.exact_batches import exact_batches
from pennon.errors import ArgumentError
from pennon.expr.evaluate import passing
from pennon.expr.tree import Call, Expression, paths_of
from pennon.io import open_store
from pennon.scan.plan.query import (
    BoundQuery,
    ScanOptions,
    bind_condition,
    bind_query,
    every_column,
    parse_predicate,
)
from pennon.scan.predicate import Predicate, SqlPredicate
from pennon.scan.read.execute import Scan
from pennon.scan.read.tasks import ScanTask, bytes_per_row, check_batch_rows
from pennon.scan.run.filter import count_query, read_query_batches
from pennon.scan.snapshot import Key, Snapshot
from pennon.schema.arrow import schema_to_arrow
from pennon.schema.blob import blobs_as_bytes, has_blobs_v2, holds_blobs_v2
from pennon.schema.width import has_width, row_bytes
from pennon.spark.arrow_convert import convert_batch
from pennon.spark.source.options import ReadOptions
from pennon.spark.types import ROW_ADDRESS, SYSTEM_COLUMNS
from pennon.table.versions import read_manifest, version_as_of

SHOWN_IN_SPARK: Final[Key[pa.Schema]] = Key("schema in Spark")
MIN_BATCH_ROWS = 64
BLOB_ROWS = 64
"""Blobs of so many rows are in memory at once."""
MAX_BATCH_ROWS = 16_384
MAX_BATCH_BYTES = 16 * MIB


def open_snapshot(
    uri: str,
    storage_options: Mapping[str, str],
    version: int | str | None = None,
    asof: datetime | None = None,
    branch: str | None = None,
) -> Snapshot:
    """Open one version of a table, the newest by default; a version that is text is a tag.

    Numbers and times are those of the branch, if there is one.  Raises NotFoundError when there is no
    table or no such version, tag or branch, ArgumentError for both pins.
    """
    if version is not None and asof is not None:
        message = "give version or asof, not both"
        raise ArgumentError(message)
    if isinstance(version, str) and branch is not None:
        message = (
            f"the tag {version!r} names a version of a branch already; leave out branch {branch!r}"
        )
        raise ArgumentError(message)
    store = open_store(uri, dict(storage_options) or None)
    if isinstance(version, str) or branch is not None:
        # Most reads name neither, and the workers that plan them are started again and again.
        from pennon.ops.versions.refs import (
            open_version,  # saves imports: what tags and branches need
        )

        newest = Snapshot(store, read_manifest(store))
        if isinstance(version, str):
            return open_version(newest, version)
        here = open_version(newest, (branch, version))
        if asof is None:
            return here
        return open_version(here, version_as_of(here.store, asof))
    if asof is not None:
        version = version_as_of(store, asof)
    return Snapshot(store, read_manifest(store, version))


def snapshot_of(options: ReadOptions) -> Snapshot:
    """Open the version that options choose; see `open_snapshot`."""
    return open_snapshot(
        options.uri, options.storage_options, options.version, options.asof, options.branch
    )


def arrow_schema_of(snapshot: Snapshot) -> pa.Schema:
    """Return the table's Arrow schema, as Spark sees it: blobs are bytes."""
    schema = snapshot.manifest.schema
    return snapshot.remember(SHOWN_IN_SPARK, lambda: schema_to_arrow(blobs_as_bytes(schema)))


@dataclass(frozen=True, slots=True)
class TableScan:
    """A query of one pinned version into Spark's Arrow types; it pickles.

    ``batch_rows`` None: as many as fit `MAX_BATCH_BYTES`, at most `MAX_BATCH_ROWS`.  Small batches
    let the first row of a limited query come soon, and larger ones bring nothing: Spark takes them
    apart row by row.
    """

    query: BoundQuery
    schema: pa.Schema
    batch_rows: int | None = None
    fetches_blobs: bool = False
    """The query reads descriptions of blobs and addresses of rows; then the bytes are fetched."""

    @property
    def read_columns(self) -> pa.Schema:
        """Return the columns that are read: those that are shown, and those that are only tested."""
        condition = self.query.condition
        tested = () if condition is None else condition.inputs.arrow
        shown = set(self.schema.names)
        return pa.schema([*self.schema, *(field for field in tested if field.name not in shown)])

    def read(self, tasks: Sequence[ScanTask]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the tasks in order, as batches of ``schema``."""
        query = self.query.over(tasks)
        batches: Iterator[pa.RecordBatch]
        if self.fetches_blobs:
            batches = self._with_blobs(query, tasks)
        else:
            rows = self.batch_rows or _fitting_rows(query.scan)
            batches = read_query_batches(query, rows)
        if self.batch_rows is None:
            batches = chain.from_iterable(map(_pieces, batches))
        for batch in exact_batches(batches):
            yield convert_batch(batch, self.schema)

    def _with_blobs(self, query: BoundQuery, tasks: Sequence[ScanTask]) -> Iterator[pa.RecordBatch]:
        """Yield few rows at once, whose blobs may lie in files of their own, and be large."""
        fragments = tuple({task.fragment.id: task.fragment for task in tasks}.values())
        manifest = replace(query.snapshot.manifest, fragments=fragments)
        snapshot = replace(query.snapshot, manifest=manifest)
        fetch = BytesOfBlobs(snapshot, query.schema, {})
        for batch in read_query_batches(query, self.batch_rows or BLOB_ROWS):
            for start in range(0, batch.num_rows, BLOB_ROWS):
                yield from fetch.convert([batch.slice(start, BLOB_ROWS)])

    def count(self, tasks: Sequence[ScanTask]) -> int:
        """Return how many rows of the tasks the scan finds; only what a filter needs is read."""
        return count_query(self.query.over(tasks))

    def first(self, rows: int) -> TableScan:
        """Return the scan that ends when it has found so many rows, of those that its filter keeps."""
        return replace(self, query=replace(self.query, limit=rows))

    def where(self, text: str) -> TableScan:
        """Return the scan of the rows that pass a condition in the SQL of all scans.

        Raises ArgumentError if the text is none, or names what the table does not have.
        """
        return self.where_predicate(parse_predicate(self.query.snapshot, text))

    def where_all(self, conditions: Sequence[Expression]) -> TableScan:
        """Return the scan of the rows that pass all of Spark's conditions."""
        if not conditions:
            return self
        stored = every_column(self.query.snapshot, self.query.source)
        return self.where_predicate(pushed_predicate(conditions, self.schema, stored))

    def where_predicate(self, predicate: Predicate) -> TableScan:
        """Return the scan of the rows that pass a predicate."""
        condition = bind_condition(self.query.snapshot, predicate, self.query.source)
        return replace(self, query=replace(self.query, condition=condition))


@dataclass(frozen=True, slots=True)
class ReadTasks:
    """``mapInArrow`` function of a scan: each incoming row is the number of a partition."""

    scan: TableScan
    partitions: tuple[tuple[ScanTask, ...], ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the partitions named by the incoming batches."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self.scan.read(self.partitions[number])


def _fitting_rows(scan: Scan) -> int:
    """Return how many rows to decode for a batch.

    Where all columns have a width, rows have that of the columns that are read.  Where one has not,
    they are taken to be as wide as in the data files, which tell nothing of a single column.
    """
    schema = scan.projection.arrow
    width = max(row_bytes(schema), 1)
    if not all(has_width(field.type) for field in schema):
        width = max(width, *(bytes_per_row(task.fragment) for task in scan.tasks), 0)
    return min(MAX_BATCH_ROWS, max(MIN_BATCH_ROWS, MAX_BATCH_BYTES // width))


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a batch whose values turned out larger than they are in the file."""
    pieces = min(-(-batch.nbytes // MAX_BATCH_BYTES), batch.num_rows)
    step = -(-batch.num_rows // max(pieces, 1))
    for start in range(0, batch.num_rows, max(step, 1)):
        yield batch.slice(start, step)


def plan_table_scan(snapshot: Snapshot, schema: pa.Schema, batch_rows: int | None) -> TableScan:
    """Plan a scan of the columns of ``schema``, by name; a part of a struct reads only that part.

    Raises ArgumentError that lists what the table has when a column is not there.
    """
    names = requested_columns(schema, arrow_schema_of(snapshot))
    bare = replace(snapshot, manifest=replace(snapshot.manifest, fragments=()))
    checked = None if batch_rows is None else check_batch_rows(batch_rows)
    if has_blobs_v2(snapshot.manifest.schema):
        wanted = {name.partition(".")[0] for name in names}
        mine = [each for each in snapshot.manifest.schema.fields if each.name in wanted]
        if any(map(holds_blobs_v2, mine)):
            columns = tuple(dict.fromkeys([*names, ROW_ADDRESS]))
            query = bind_query(bare, ScanOptions(columns=columns, nests=True))
            return TableScan(query, schema, checked, fetches_blobs=True)
    options = ScanOptions(columns=tuple(names), blobs_as_bytes=True, nests=True)
    return TableScan(bind_query(bare, options), schema, checked)


def requested_columns(wanted: pa.Schema, table: pa.Schema) -> list[str]:
    """Name the columns to read, dotted where only a part of a struct is wanted."""
    names: list[str] = []
    for column in wanted:
        if column.name in SYSTEM_COLUMNS:
            names.append(column.name)
            continue
        index = table.get_field_index(column.name)
        if index < 0:
            message = f"no column {column.name!r}; there are {', '.join(table.names)}"
            raise ArgumentError(message)
        names += _parts(column, table.field(index), column.name)
    return names


def _parts(wanted: pa.Field, stored: pa.Field, path: str) -> list[str]:
    if not pa.types.is_struct(wanted.type) or not pa.types.is_struct(stored.type):
        return [path]
    children = {child.name: child for child in stored.type}
    missing = [child.name for child in wanted.type if child.name not in children]
    if missing:
        message = f"{path!r} has no field {', '.join(missing)}; it has {', '.join(children)}"
        raise ArgumentError(message)
    parts = [_parts(c, children[c.name], f"{path}.{c.name}") for c in wanted.type]
    whole = [[f"{path}.{name}"] for name in children]
    if sorted(parts) == sorted(whole):
        return [path]
    return [name for group in parts for name in group]


# --- filters that Spark pushes down ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConvertedPredicate:
    """A condition on columns whose types are others in Spark: ``schema`` has these, in Spark's types."""

    condition: Expression
    schema: pa.Schema

    def paths(self, schema: pa.Schema) -> list[tuple[str, ...]]:  # noqa: ARG002 - bound already
        """See `pennon.scan.predicate.Predicate`."""
        return [(name,) for name in self.schema.names]

    def test(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """See `pennon.scan.predicate.Predicate`."""
        return passing(self.condition, convert_batch(batch, self.schema))

    def __str__(self) -> str:
        return str(self.condition)


def pushed_predicate(
    conditions: Sequence[Expression],
    shown: pa.Schema,
    stored: pa.Schema,
    text: str | None = None,
) -> Predicate:
    """Return the predicate that all of Spark's conditions hold.

    ``shown`` has the columns in Spark's types, ``stored`` in those of the table.  Where they are the
    same, the condition is one of the table, and statistics may rule rows out.  ``text`` is the predicate's, for people; None:
    it is that of the conditions.
    """
    whole = conditions[0]
    if len(conditions) > 1:
        whole = Call("AND", tuple(conditions), pa.bool_())
    paths = paths_of(whole)
    if all(_type_at(shown, path) == _type_at(stored, path) for path in paths):
        return SqlPredicate(str(whole) if text is None else text, whole)
    names = dict.fromkeys(path[0] for path in paths)
    return ConvertedPredicate(whole, pa.schema([shown.field(name) for name in names]))


def _type_at(schema: pa.Schema, path: Sequence[str]) -> pa.DataType | None:
    """Return the type of a column or of a field inside it; None if there is none."""
    here = pa.struct(list(schema))
    for name in path:
        number = here.get_field_index(name) if pa.types.is_struct(here) else -1
        if number < 0:
            return None
        here = here.field(number).type
    return here
