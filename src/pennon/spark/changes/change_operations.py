"""Deletes, updates and merges of `LanceTable`: planned here, done by the executors, committed here."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pennon.ops.commit import commit_on
from pennon.ops.rows.assignments import Assignments
from pennon.ops.rows.change_rows import Change, Clause, plan_change
from pennon.ops.rows.changed_wire import Changed
from pennon.ops.rows.delete import delete_operation
from pennon.ops.rows.update import UpdateGroupsTask, plan_update, update_operation
from pennon.schema.arrow import schema_to_arrow
from pennon.spark.changes.column_update import update_all_rows
from pennon.spark.changes.merge_clauses import Merge, When
from pennon.spark.changes.merge_growth import grown_snapshot, plan_growth, widened_snapshot
from pennon.spark.changes.merge_plan import MergePlan, plan_merge
from pennon.spark.changes.row_changes import analysed, commit_changes, rows_of_clauses, run_changes
from pennon.spark.changes.rows_found import delete_found, group_rows, translated
from pennon.spark.changes.updated_columns import UpdatedColumns
from pennon.spark.frames.scan import address_frame, reads_whole_fragments
from pennon.spark.history import HistoryEntry
from pennon.spark.run_tasks import run_tasks
from pennon.spark.source.conditions import Condition, as_column, literals_of
from pennon.spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pennon.scan.predicate import Predicate
    from pennon.scan.snapshot import Snapshot
    from pennon.spark.changes.merge_keys import KeyedMerge
    from pennon.spark.source.evolution import Evolution
    from pennon.table.transaction import AppVersion

_METRICS: Final = (
    "numAddedFiles",
    "numRemovedFiles",
    "numAddedBytes",
    "numDeletionVectorsAdded",
    "executionTimeMs",
)
_MERGE_METRICS: Final = (
    "numTargetFilesAdded",
    "numTargetFilesRemoved",
    "numTargetBytesAdded",
    "numTargetDeletionVectorsAdded",
    "executionTimeMs",
)


def delete_rows(
    spark: SparkSession,
    snapshot: Snapshot,
    condition: Condition | None,
    alias: str | None,
    app: AppVersion | None = None,
) -> int:
    """Delete the rows for which a condition is true, and return how many they were.

    ``app``: the application whose batch this is.
    """
    started = time.monotonic()
    predicate: Predicate | str | None = "true"
    if condition is not None:
        predicate = translated(snapshot, condition, alias)
    if predicate is None:
        return _change_where(spark, snapshot, condition, {}, alias, started, app)
    task, removals = delete_found(spark, snapshot, predicate)
    operation, rows = delete_operation(task, removals)
    entry = HistoryEntry(
        "DELETE",
        {"predicate": _text(condition)},
        {
            "numDeletedRows": rows,
            "numRemovedFiles": len(operation.deleted_ids),
            "numDeletionVectorsAdded": len(operation.updated),
            "numCopiedRows": 0,
            "executionTimeMs": _milliseconds(started),
        },
        app,
    )
    commit_on(snapshot, operation, properties=entry.properties(), planned_ns=task.planned_ns)
    return rows


def update_rows(
    spark: SparkSession,
    snapshot: Snapshot,
    condition: Condition | None,
    values: Mapping[str, Condition],
    alias: str | None,
    app: AppVersion | None = None,
) -> int:
    """Give columns of the rows for which a condition is true new values; return how many rows.

    Literals under a condition that needs no Spark are written by our own tasks, where statistics tell them
    which pages to read.  Of all rows the columns alone are written, where that costs less.  ``app``: the application
    whose batch this is.
    """
    started = time.monotonic()
    if condition is None:
        rows = update_all_rows(spark, snapshot, values, alias, started, app)
        if rows is not None:
            return rows
    schema = schema_to_arrow(snapshot.manifest.schema)
    literals = literals_of(values, spark_schema(schema), schema)
    predicate = None if condition is None else translated(snapshot, condition, alias)
    if literals is None or (condition is not None and predicate is None):
        return _change_where(spark, snapshot, condition, values, alias, started, app)
    assignments = Assignments.of_literals(snapshot.manifest.schema, literals)
    most = group_rows(spark, snapshot)
    task = plan_update(snapshot, assignments, predicate, group_rows=most)
    changed = run_tasks(spark, UpdateGroupsTask(task), task.count)
    operation, rows = update_operation(
        task,
        (removal for each in changed for removal in each.removals),
        (fragment for each in changed for fragment in each.new),
    )
    metrics = {"numUpdatedRows": rows, "numCopiedRows": 0, **_metrics(changed, started, _METRICS)}
    entry = HistoryEntry("UPDATE", {"predicate": _text(condition)}, metrics, app)
    commit_on(snapshot, operation, properties=entry.properties(), planned_ns=task.planned_ns)
    return rows


def _change_where(
    spark: SparkSession,
    snapshot: Snapshot,
    condition: Condition | None,
    values: Mapping[str, Condition],
    alias: str | None,
    started: float,
    app: AppVersion | None,
) -> int:
    """Delete (no values) or update the rows that Spark finds."""
    planned_ns = time.time_ns()
    updated = UpdatedColumns.of(spark, snapshot, values, alias)
    change = Change.UPDATE if values else Change.DELETE
    task = plan_change(snapshot, [Clause(change, updated.names)])

    def build(columns: Sequence[str]) -> DataFrame:
        rows = address_frame(spark, snapshot, columns)
        if alias is not None:
            rows = rows.alias(alias)
        if condition is not None:
            rows = rows.where(as_column(condition))
        return updated.chosen(rows)

    few, every = updated.columns_needed([] if condition is None else [condition])
    found = analysed(build, few, every)
    is_placed = change is Change.DELETE and reads_whole_fragments(spark, snapshot)
    changed = run_changes(task, found, is_placed=is_placed)
    (rows,) = rows_of_clauses(changed, 1)
    metrics = _metrics(changed, started, _METRICS)
    is_update = change is Change.UPDATE
    entry = HistoryEntry(
        "UPDATE" if is_update else "DELETE",
        {"predicate": _text(condition)},
        {
            ("numUpdatedRows" if is_update else "numDeletedRows"): rows,
            "numCopiedRows": 0,
            **metrics,
        },
        app,
    )
    commit_changes(task, changed, entry.properties(), planned_ns=planned_ns)
    return rows


def merge_rows(snapshot: Snapshot, merge: Merge, app: AppVersion | None = None) -> dict[str, int]:
    """Merge, and return how many rows were affected, updated, deleted and inserted.

    ``app``: the application whose batch this is.
    """
    started = time.monotonic()
    merge.check()
    evolution = plan_growth(snapshot, merge) if merge.evolves else None
    plan, changed = _run_merge(snapshot, merge, evolution)
    rows = rows_of_clauses(changed, len(merge.clauses))

    def total(change: Change, when: When | None = None) -> int:
        pairs = zip(merge.clauses, rows, strict=True)
        return sum(n for c, n in pairs if c.change is change and when in {None, c.when})

    inserted = total(Change.INSERT)
    counts = {
        "numTargetRowsInserted": inserted,
        "numTargetRowsUpdated": total(Change.UPDATE),
        "numTargetRowsDeleted": total(Change.DELETE),
        "numTargetRowsMatchedUpdated": total(Change.UPDATE, When.MATCHED),
        "numTargetRowsMatchedDeleted": total(Change.DELETE, When.MATCHED),
        "numTargetRowsNotMatchedBySourceUpdated": total(Change.UPDATE, When.NOT_MATCHED_BY_SOURCE),
        "numTargetRowsNotMatchedBySourceDeleted": total(Change.DELETE, When.NOT_MATCHED_BY_SOURCE),
        "numTargetRowsCopied": 0,
        "numOutputRows": inserted + total(Change.UPDATE),
    }
    metrics = {**counts, **_metrics(changed, started, _MERGE_METRICS)}
    entry = HistoryEntry("MERGE", {"predicate": _text(merge.condition)}, metrics, app)
    commit_changes(
        plan.task,
        changed,
        entry.properties(),
        planned_ns=plan.planned_ns,
        adds_keys=inserted > 0,
        base=snapshot,
    )
    return {
        "num_affected_rows": sum(rows),
        "num_updated_rows": total(Change.UPDATE),
        "num_deleted_rows": total(Change.DELETE),
        "num_inserted_rows": inserted,
    }


def _run_merge(
    snapshot: Snapshot, merge: Merge, evolution: Evolution | None
) -> tuple[MergePlan, list[Changed]]:
    """Write what a merge changes, of the rows that its source's keys leave; nothing is committed."""
    grown = None if evolution is None else grown_snapshot(evolution)
    widened: list[Snapshot] = []

    def run(keyed: KeyedMerge | None = None) -> tuple[MergePlan, list[Changed]]:
        plan = plan_merge(snapshot, merge, keyed, grown)
        if evolution is not None:
            if not widened:
                widened.append(widened_snapshot(merge.source.sparkSession, evolution))
            plan = replace(plan, task=replace(plan.task, snapshot=widened[0]))
        return plan, run_changes(plan.task, plan.rows)

    if merge.needs_others or not isinstance(merge.condition, str):
        return run()
    from pennon.spark.changes.merge_keys import (
        with_known_keys,
    )  # saves sqlglot: half a second, for few who need it

    return with_known_keys(snapshot, merge.source, merge.condition, merge.alias, run)


def _metrics(changed: Sequence[Changed], started: float, names: Sequence[str]) -> dict[str, int]:
    files = [file for each in changed for fragment in each.new for file in fragment.files]
    left = [removal.left for each in changed for removal in each.removals]
    numbers = (
        len(files),
        left.count(None),
        sum(file.size_bytes or 0 for file in files),
        len(left) - left.count(None),
        _milliseconds(started),
    )
    return dict(zip(names, numbers, strict=True))


def _milliseconds(started: float) -> int:
    return round(1000 * (time.monotonic() - started))


def _text(condition: Condition | None) -> str:
    return "" if condition is None else str(condition)
