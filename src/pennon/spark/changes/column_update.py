"""An update of all rows that writes the columns alone, one file a fragment: what an update costs less by.

Each task has the rows of a fragment, in order, as in a backfill (`pennon.spark.changes.backfill`); nothing goes through a
shuffle, and columns that keep their values are not read.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.errors import ArgumentError, FormatError, MatchError
from pennon.ops.commit import commit_on
from pennon.ops.rows.rewrite_all import (
    RewriteTask,
    columns_cost_less,
    plan_rewrite,
    rewrite_operation,
)
from pennon.scan.read.tasks import live_row_counts
from pennon.spark.changes.chosen_values import CLAUSE, table_values
from pennon.spark.changes.row_changes import analysed
from pennon.spark.changes.updated_columns import UpdatedColumns
from pennon.spark.frames.scan import ADDRESS, fragment_frame
from pennon.spark.history import HistoryEntry
from pennon.spark.run_tasks import run_on_rows
from pennon.spark.source.conditions import Condition, look_aside
from pennon.spark.task_errors import typed_errors
from pennon.table.fragment import Fragment
from pennon.table.fragment_wire import parse_fragments, serialize_fragments
from pennon.table.transaction import AppVersion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pennon.scan.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class RewriteColumns:
    """Writes the columns of fragments whose rows a partition has; it pickles."""

    to_bytes = staticmethod(serialize_fragments)
    from_bytes = staticmethod(parse_fragments)

    task: RewriteTask

    def run(self, batches: Iterator[pa.RecordBatch]) -> list[Fragment]:
        """Return the fragments with their new files."""
        return self.task.run(map(self._values, batches))

    def _values(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        fields = [pa.field(ADDRESS, pa.int64()), *self.task.values]
        arrays = [batch.column(0), *table_values(batch, self.task.values)]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def update_all_rows(
    spark: SparkSession,
    snapshot: Snapshot,
    values: Mapping[str, Condition],
    alias: str | None,
    started: float,
    app: AppVersion | None = None,
) -> int | None:
    """Give columns of all rows new values; return how many rows, None where whole rows cost less.

    ``app``: the application whose batch this is.
    """
    planned_ns = time.time_ns()
    updated = UpdatedColumns.of(spark, snapshot, values, alias)
    if not columns_cost_less(snapshot, updated.names) or look_aside(values.values()):
        return None
    task = plan_rewrite(snapshot, updated.names)

    def build(columns: Sequence[str]) -> DataFrame:
        rows = fragment_frame(spark, snapshot, columns)
        return updated.chosen(rows if alias is None else rows.alias(alias))

    rows = analysed(build, *updated.columns_needed(()))
    with typed_errors(MatchError, ArgumentError, FormatError):
        found = run_on_rows(rows.drop(CLAUSE), RewriteColumns(task))
    written = [each for several in found for each in several]
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
    entry = HistoryEntry("UPDATE", {"predicate": ""}, metrics, app)
    commit_on(snapshot, operation, properties=entry.properties(), planned_ns=planned_ns)
    return count
