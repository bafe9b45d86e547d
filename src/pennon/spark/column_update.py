"""An update of all rows that writes the columns alone, one file a fragment: what an update costs less by.

Each task has the rows of a fragment, in order, as in a backfill (`pennon.spark.backfill`); nothing goes through a
shuffle, and columns that keep their values are not read.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sf

from pennon.errors import ArgumentError, FormatError, MatchError
from pennon.ops.commit import commit_on
from pennon.ops.rows.rewrite_all import (
    RewriteTask,
    columns_cost_less,
    plan_rewrite,
    rewrite_operation,
)
from pennon.scan.plan import live_row_counts
from pennon.schema.arrow import schema_to_arrow
from pennon.spark.arrow_convert import convert_batch
from pennon.spark.conditions import Condition, columns_named, look_aside
from pennon.spark.history import Told
from pennon.spark.merge_plan import assigned_columns
from pennon.spark.messages import parse_fragments, serialize_fragments
from pennon.spark.row_changes import CLAUSE, analysed, choose_values
from pennon.spark.run_tasks import run_on_rows
from pennon.spark.scan_frame import ADDRESS, fragment_frame
from pennon.spark.task_errors import typed_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pennon.scan.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class RewriteColumns:
    """Writes the columns of fragments whose rows a partition has; it pickles."""

    task: RewriteTask

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> bytes:
        """See `pennon.spark.run_tasks.RowsTask`."""
        schema = pa.schema([pa.field(ADDRESS, pa.int64()), *self.task.values])
        return serialize_fragments(self.task.run(convert_batch(each, schema) for each in batches))


def update_all_rows(
    spark: SparkSession,
    snapshot: Snapshot,
    values: Mapping[str, Condition],
    alias: str | None,
    started: float,
) -> int | None:
    """Give columns of all rows new values; return how many rows, None where whole rows cost less."""
    planned_ns = time.time_ns()
    names = list(schema_to_arrow(snapshot.manifest.schema).names)
    assigned = assigned_columns(values, names, alias)
    if not columns_cost_less(snapshot, assigned.keys()) or look_aside(values.values()):
        return None
    task = plan_rewrite(snapshot, assigned.keys())

    def build(columns: Sequence[str]) -> DataFrame:
        rows = fragment_frame(spark, snapshot, columns)
        rows = rows if alias is None else rows.alias(alias)
        return choose_values(rows.withColumn(CLAUSE, sf.lit(0)), snapshot, [assigned]).drop(CLAUSE)

    said = [*values.values(), *(each for each in values if "." in each)]
    rows = analysed(build, columns_named(said, names, alias), names)
    with typed_errors(MatchError, ArgumentError, FormatError):
        messages = run_on_rows(rows, RewriteColumns(task))
    written = [each for message in messages for each in parse_fragments(message)]
    operation = rewrite_operation(task, written)
    count = sum(live_row_counts(snapshot))
    metrics = {
        "numUpdatedRows": count,
        "numCopiedRows": 0,
        "numAddedFiles": len(operation.updated),
        "numRemovedFiles": 0,
        "numAddedBytes": sum(each.files[-1].size_bytes or 0 for each in operation.updated),
        "numDeletionVectorsAdded": 0,
        "executionTimeMs": round(1000 * (time.monotonic() - started)),
    }
    told = Told("UPDATE", {"predicate": ""}, metrics)
    commit_on(snapshot, operation, properties=told.properties(), planned_ns=planned_ns)
    return count
