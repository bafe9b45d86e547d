"""Rows that a condition finds without Spark: deleted by executors, in groups of fragments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pennon.ops.rows.delete import DeleteTask, plan_delete
from pennon.ops.rows.deletion_vectors import Removal
from pennon.ops.rows.find_rows import GROUP_ROWS
from pennon.scan.plan.query import every_column
from pennon.scan.read.tasks import live_row_counts
from pennon.schema.arrow import schema_to_arrow
from pennon.spark.frames.scan import parallelism_of
from pennon.spark.run_tasks import run_tasks
from pennon.spark.source.conditions import Condition, predicate_of
from pennon.spark.types import spark_schema, with_system_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pennon.scan.predicate import Predicate
    from pennon.scan.snapshot import Snapshot

_LEAST_GROUP_ROWS: Final = 1 << 16


def delete_found(
    spark: SparkSession, snapshot: Snapshot, predicate: Predicate | str
) -> tuple[DeleteTask, list[Removal]]:
    """Delete the rows for which a condition is true on the executors; nothing is committed."""
    task = plan_delete(snapshot, predicate, group_rows(spark, snapshot))
    removals = run_tasks(spark, task, task.count)
    return task, [each for several in removals for each in several]


def translated(snapshot: Snapshot, condition: Condition, alias: str | None) -> Predicate | None:
    """Return a condition as one of our own scans, where it has Spark's answer; else None.

    It may name ``_rowid`` and ``_rowaddr``, where no column has such a name.
    """
    schema = with_system_columns(schema_to_arrow(snapshot.manifest.schema))
    stored = every_column(snapshot, snapshot.manifest.schema)
    return predicate_of(condition, spark_schema(schema), stored, alias)


def group_rows(spark: SparkSession, snapshot: Snapshot) -> int:
    """Return how many rows make a task: so many that each core has one, and more in tables that are large."""
    share = -(-sum(live_row_counts(snapshot)) // parallelism_of(spark).least)
    return min(max(share, _LEAST_GROUP_ROWS), GROUP_ROWS)
