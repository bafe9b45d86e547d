"""Rows in place of those for which a condition is true, or that have the same values in some columns.

::

    write      new rows, each tested     a row that the condition does not hold for: nothing is committed
    find       rows that go              of the newest version: deletion files
    commit     one Update                others came in between: found again, and not written again

Whoever reads sees the old rows or the new ones.  An append of others that came meanwhile is looked at as
well, so that what the condition holds for afterwards are the new rows, and what was added later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat
from pyspark.sql.types import StructType

from pennon.core.byte_ranges import Int64Array
from pennon.core.units import DatasetVersion, FragmentId
from pennon.errors import ArgumentError
from pennon.ops.commit import commit_on
from pennon.ops.retry import with_retries
from pennon.ops.rows.delete import plan_delete
from pennon.ops.rows.deletion_vectors import Removal, Removals
from pennon.ops.run_tasks import run_tasks
from pennon.ops.write import WriteMode
from pennon.scan.plan.query import every_column
from pennon.scan.predicate import Predicate
from pennon.scan.projection import plan_scan_projection
from pennon.scan.read.execute import Scan, read_batches
from pennon.scan.read.tasks import plan_tasks
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import schema_to_arrow
from pennon.spark.conflicts import are_addresses
from pennon.spark.history import HistoryEntry, written_metrics
from pennon.spark.names import find_name
from pennon.spark.source.conditions import predicate_of
from pennon.spark.source.evolution import check_same_columns
from pennon.spark.source.options import WriteOptions
from pennon.spark.source.row_write import TablePlan
from pennon.spark.source.write_task import plan_table_write
from pennon.spark.types import spark_schema, with_system_columns
from pennon.table.commit.conflict_check import check_same_table
from pennon.table.fragment import Fragment
from pennon.table.manifest import Manifest
from pennon.table.operations import Update, UpdateMode
from pennon.table.versions import find_location, read_manifest_at

FindRows = Callable[[Snapshot], Sequence[Removal]]
"""Deletes the rows of a version that are replaced, here or on executors; nothing is committed."""

_LONGEST: Final = timedelta(hours=1)
_ROWS_AT_ONCE: Final = 1 << 16


def plan_replacement(options: WriteOptions, schema: StructType) -> TablePlan:
    """Plan to write rows in place of others of a table; one that is not there is made.

    Raises ArgumentError for what does not go with it, and what `plan_table_write` raises.
    """
    if options.merge_schema or options.overwrite_schema:
        message = (
            "a part of a table is overwritten with its columns as they are; append with mergeSchema first, "
            "or overwrite all of it with overwriteSchema"
        )
        raise ArgumentError(message)
    if options.where is not None and options.overwrite_by:
        message = "rows are replaced by a condition or by the values of columns, not by both"
        raise ArgumentError(message)
    plan = plan_table_write(options, schema, WriteMode.APPEND)
    return plan if plan.base is not None else plan_table_write(options, schema, WriteMode.CREATE)


def with_fragments(plan: TablePlan, base: Manifest) -> TablePlan:
    """Return a plan that has travelled with the fragments of its version, ``base``, which is read again.

    Raises IncompatibleConflict if the table was dropped and made anew, NotFoundError if the version was cleaned up.
    """
    store = plan.write.task.store
    location = find_location(store, base.version)
    read = read_manifest_at(store, location)
    check_same_table(store, base, location, read)
    return replace(plan, write=replace(plan.write, base=read))


def key_columns(plan: TablePlan, options: WriteOptions) -> list[str]:
    """Return the columns, as the table calls them, whose values say which rows are replaced.

    Raises ArgumentError for one that the new rows do not have.
    """
    known = schema_to_arrow(plan.write.task.schema).names
    found = []
    for said in options.overwrite_by:
        name = find_name(said, known, case_sensitive=options.case_sensitive)
        if name is None:
            message = f"overwrite_by names {said!r}; the DataFrame has {', '.join(known)}"
            raise ArgumentError(message)
        found.append(name)
    return found


# --- rows that go ------------------------------------------------------------------------------------


def delete_here(predicate: Predicate) -> FindRows:
    """Return what deletes the rows that a condition is true for, on this machine's threads."""

    def find(snapshot: Snapshot) -> list[Removal]:
        task = plan_delete(snapshot, predicate)
        found = run_tasks(task, task.count, what="Finding rows to replace")
        return [each for several in found for each in several]

    return find


def delete_where_here(condition: str) -> FindRows:
    """Return what deletes the rows that Spark's SQL is true for, on this machine's threads."""

    def find(snapshot: Snapshot) -> Sequence[Removal]:
        schema = spark_schema(with_system_columns(schema_to_arrow(snapshot.manifest.schema)))
        stored = every_column(snapshot, snapshot.manifest.schema)
        return delete_here(understood(condition, schema, stored))(snapshot)

    return find


def understood(condition: str, schema: StructType, stored: pa.Schema) -> Predicate:
    """Return Spark's SQL as a condition of our scans, without Spark.

    Raises ArgumentError for what only Spark can evaluate.
    """
    predicate = predicate_of(condition, schema, stored)
    if predicate is None:
        message = (
            f"replaceWhere {condition!r} needs Spark: a data source understands columns, by their exact "
            "names, compared with literals (=, <>, <, <=, >, >=, IN, BETWEEN, IS NULL, AND, OR, NOT); for "
            "all else: pennon.spark.write(df, uri, 'overwrite', where=...)"
        )
        raise ArgumentError(message)
    return predicate


def commit_replaced(
    plan: TablePlan,
    fragments: Sequence[Fragment],
    find: FindRows,
    predicate: str,
    system_columns: Sequence[str] = (),
) -> int:
    """Make new rows, and the end of those that they replace, one version; return its number.

    If others committed meanwhile, what goes is found anew, unless ``system_columns``, those of ``_rowid`` and
    ``_rowaddr`` that say what goes, are addresses: these are other rows' then.  Nothing to add and nothing to take away makes no
    version.  Raises SchemaMismatchError if others changed the columns.
    """
    base = plan.base
    if base is None or plan.evolution is not None:
        message = "rows are replaced in a table that is there, and keeps its columns"
        raise ArgumentError(message)

    def execute(snapshot: Snapshot) -> Manifest:
        check_same_columns(base, snapshot.manifest)
        gone = Removals.of(find(snapshot))
        if not gone.rows and not fragments:
            return snapshot.manifest
        operation = Update(gone.gone, gone.updated, tuple(fragments), mode=UpdateMode.REWRITE_ROWS)
        metrics = {
            **written_metrics(fragments),
            "numDeletedRows": gone.rows,
            "numRemovedFiles": len(gone.gone),
        }
        entry = HistoryEntry("WRITE", {"mode": "Overwrite", "predicate": predicate}, metrics)
        return commit_on(
            snapshot,
            operation,
            properties={**entry.properties(), **plan.properties},
            planned_ns=plan.write.planned_ns,
            adds_keys=bool(fragments),
        )

    def commit() -> int:
        first = Snapshot(plan.write.task.store, base)
        if are_addresses(first, system_columns):
            return execute(first).version
        return with_retries(execute, first, retry_timeout=_LONGEST).version

    return plan.once(commit)


# --- rows by their keys ------------------------------------------------------------------------------


def uncommitted(plan: TablePlan, fragments: Sequence[Fragment]) -> Snapshot:
    """Return the new rows as an unpublished version, so that they can be read."""
    numbered = tuple(
        Fragment(FragmentId(at), each.files, each.physical_rows)
        for at, each in enumerate(fragments)
    )
    base = plan.base or Manifest(plan.write.table_schema, DatasetVersion(0))
    bare = Manifest(base.schema, base.version, numbered, data_format=base.data_format)
    return Snapshot(plan.write.task.store, bare)


@dataclass(frozen=True, slots=True, eq=False)
class AmongKeys:
    """The condition that some columns of a row have the values that they have in some row of ``keys``.

    NULL equals NULL, NaN equals NaN, and -0.0 equals 0.0.
    """

    keys: pa.Table

    def paths(self, schema: pa.Schema) -> list[tuple[str, ...]]:  # noqa: ARG002 - bound already
        """See `pennon.scan.predicate.Predicate`."""
        return [(name,) for name in self.keys.column_names]

    def test(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """See `pennon.scan.predicate.Predicate`."""
        mine = np.zeros(batch.num_rows, np.int64)
        known = np.zeros(self.keys.num_rows, np.int64)
        for name in self.keys.column_names:
            values = _plain(self.keys.column(name))
            distinct = values.unique()
            size = len(distinct) + 1
            known = known * size + _places(values, distinct) + 1
            mine = np.where(
                mine < 0, -1, mine * size + _places(_plain(batch.column(name)), distinct) + 1
            )
            ranks = np.unique(known)
            at = np.minimum(np.searchsorted(ranks, mine), len(ranks) - 1)
            mine = np.where(ranks[at] == mine, at, -1)
            known = np.searchsorted(ranks, known)
        return pa.array(mine >= 0)

    def __str__(self) -> str:
        return f"({', '.join(self.keys.column_names)}) among {self.keys.num_rows} keys"


def _plain(values: Any) -> Any:
    """Return values that compare as Spark's do."""
    if isinstance(values.type, pa.DictionaryType):
        values = values.cast(values.type.value_type)
    return pc.add(values, 0.0) if pat.is_floating(values.type) else values


def _places(values: Any, distinct: pa.Array[Any]) -> Int64Array:
    found = pc.index_in(values, distinct, skip_nulls=False).fill_null(-1)
    return np.asarray(found.to_numpy(), np.int64)


def keys_of(plan: TablePlan, fragments: Sequence[Fragment], names: Sequence[str]) -> AmongKeys:
    """Return the values that some columns have in the new rows."""
    snapshot = uncommitted(plan, fragments)
    projection = plan_scan_projection(snapshot.manifest.schema, list(names))
    scan = Scan(snapshot, projection, tuple(plan_tasks(snapshot)))
    distinct = [
        pa.Table.from_batches([batch]).group_by(list(names)).aggregate([])
        for batch in read_batches(scan, _ROWS_AT_ONCE)
    ]
    return AmongKeys(pa.concat_tables(distinct).group_by(list(names)).aggregate([]))
