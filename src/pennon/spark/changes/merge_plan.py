"""A merge as Spark plans it: the rows that change, and the task that changes them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from pyspark.errors import AnalysisException

from pennon.ops.rows.change_rows import ChangeTask, Clause, plan_change
from pennon.spark.changes.merge_clauses import Merge as Merge
from pennon.spark.changes.merge_clauses import MergeClause as MergeClause
from pennon.spark.changes.merge_clauses import When as When
from pennon.spark.changes.merge_rows import MergeRows
from pennon.spark.changes.row_changes import analysed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pennon.scan.snapshot import Snapshot
    from pennon.spark.changes.merge_keys import KeyedMerge

_AMBIGUOUS: Final = "AMBIGUOUS_REFERENCE"


@dataclass(frozen=True, slots=True)
class MergePlan:
    """The changes of a merge: the rows, as `pennon.spark.changes.row_changes` takes them, and their task."""

    task: ChangeTask
    rows: DataFrame
    planned_ns: int


def plan_merge(
    snapshot: Snapshot, merge: Merge, keyed: KeyedMerge | None = None, grown: Snapshot | None = None
) -> MergePlan:
    """Plan a merge; ``keyed`` is what the source's keys leave of the table.

    ``grown`` is the version with the columns that the merge brings; None: as it is.  Raises ArgumentError or
    SchemaMismatchError for clauses that do not fit the table, and what Spark raises for conditions that are none.
    """
    planned_ns = time.time_ns()
    merge.check()
    rows_of = MergeRows(snapshot, merge, grown or snapshot)
    changes = [
        Clause(clause.change, tuple(rows_of.names_set(number)))
        for number, clause in enumerate(merge.clauses)
    ]
    task = plan_change(rows_of.grown, changes, once=merge.deletes_whatever_matches)
    few, every = rows_of.columns_needed()
    build = partial(rows_of.rows, keyed)
    try:
        rows = analysed(build, few, every)
    except AnalysisException as error:
        if _AMBIGUOUS not in str(error):
            raise
        try:
            rows = analysed(partial(build, apart=True), few, every)
        except AnalysisException:
            raise error from None
    return MergePlan(task, rows, planned_ns)
