"""The builder of a merge, clause by clause with Delta's names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pennon.ops.rows.change_rows import Change
from pennon.scan.snapshot import Snapshot
from pennon.spark.changes.change_operations import merge_rows
from pennon.spark.changes.merge_clauses import Merge, MergeClause, When
from pennon.spark.conflicts import once, with_conflict_retries
from pennon.spark.session import merges_schemas
from pennon.spark.source.conditions import Condition, check_condition, check_values
from pennon.spark.stream_query import pass_over
from pennon.table.transaction import AppVersion, app_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COUNTS = ("num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows")


@dataclass(frozen=True, slots=True)
class LanceMergeBuilder:
    """A merge into a version of a table; each method returns a builder with one clause more.

    Of the clauses for a row the first one whose condition is true counts.

    >>> new = spark.createDataFrame([("a", 9)], "key string, value long")
    >>> merge = table.alias("t").merge(new.alias("n"), "t.key = n.key")
    >>> merge.whenMatchedDelete("n.value > t.value").execute().first().num_deleted_rows
    1
    """

    snapshot: Snapshot = field(repr=False)
    merge: Merge

    def whenMatchedUpdate(
        self, condition: Condition | None = None, set: Mapping[str, Condition] | None = None
    ) -> LanceMergeBuilder:
        """Update columns of a row that a row of the source matches."""
        return self._update(When.MATCHED, condition, set)

    def whenMatchedUpdateAll(self, condition: Condition | None = None) -> LanceMergeBuilder:
        """Update all columns of a row that matches to the values of the source."""
        return self._with(When.MATCHED, Change.UPDATE, condition, None)

    def whenMatchedDelete(self, condition: Condition | None = None) -> LanceMergeBuilder:
        """Delete a row that a row of the source matches."""
        return self._with(When.MATCHED, Change.DELETE, condition, {})

    def whenNotMatchedInsert(
        self, condition: Condition | None = None, values: Mapping[str, Condition] | None = None
    ) -> LanceMergeBuilder:
        """Insert a row for one of the source that matches none; columns without a value are NULL."""
        if values is None:
            message = "values in whenNotMatchedInsert cannot be None"
            raise ValueError(message)
        given = check_values(values, "values")
        return self._with(When.NOT_MATCHED, Change.INSERT, condition, given)

    def whenNotMatchedInsertAll(self, condition: Condition | None = None) -> LanceMergeBuilder:
        """Insert a row of the source that matches none."""
        return self._with(When.NOT_MATCHED, Change.INSERT, condition, None)

    def whenNotMatchedBySourceUpdate(
        self, condition: Condition | None = None, set: Mapping[str, Condition] | None = None
    ) -> LanceMergeBuilder:
        """Update columns of a row that no row of the source matches."""
        return self._update(When.NOT_MATCHED_BY_SOURCE, condition, set)

    def whenNotMatchedBySourceDelete(self, condition: Condition | None = None) -> LanceMergeBuilder:
        """Delete a row that no row of the source matches."""
        return self._with(When.NOT_MATCHED_BY_SOURCE, Change.DELETE, condition, {})

    def withSchemaEvolution(self) -> LanceMergeBuilder:
        """Let the table get the columns that the source has and it lacks."""
        return replace(self, merge=replace(self.merge, evolves=True))

    def execute(self, *, txnAppId: str | None = None, txnVersion: int | None = None) -> DataFrame:
        """Merge, and return how many rows were affected, updated, deleted and inserted.

        ``txnAppId``, ``txnVersion``: the application and the number of its batch, which is done once (`pennon.spark.write`).
        Raises MatchError if several rows of the source change one row; nothing is committed then.
        Raises RetryableConflict if other writers stand in the way again and again.
        """
        spark = self.merge.source.sparkSession
        merge = replace(self.merge, evolves=self.merge.evolves or merges_schemas(spark))
        app = app_version(txnAppId, txnVersion)
        system = merge.system_columns(self.snapshot.manifest.schema.names)
        return run_merge(merge.source, self.snapshot, lambda _: merge, app, system)

    def _update(
        self, when: When, condition: Condition | None, values: Mapping[str, Condition] | None
    ) -> LanceMergeBuilder:
        if values is None:
            message = f"set, of rows that are {when.value}, cannot be None"
            raise ValueError(message)
        return self._with(when, Change.UPDATE, condition, check_values(values, "set"))

    def _with(
        self,
        when: When,
        change: Change,
        condition: Condition | None,
        values: Mapping[str, Condition] | None,
    ) -> LanceMergeBuilder:
        if condition is not None:
            check_condition(condition)
        clause = MergeClause(when, change, condition, values)
        merge = replace(self.merge, clauses=(*self.merge.clauses, clause))
        return replace(self, merge=merge)


def run_merge(
    source: DataFrame,
    snapshot: Snapshot,
    plan: Callable[[Snapshot], Merge],
    app: AppVersion | None,
    system_columns: Iterable[str] = (),
) -> DataFrame:
    """Merge, and return the counts of rows; after a conflict the merge is planned anew for the newest version.

    ``source`` has the rows that are merged, which a streaming query waits for; ``system_columns``: see
    `pennon.spark.conflicts.with_conflict_retries`.  Raises as `LanceMergeBuilder.execute`.
    """
    spark = source.sparkSession
    counts = dict.fromkeys(_COUNTS, 0)
    if app is not None and app.is_in(snapshot.manifest.config):
        pass_over(source)
    else:
        counts = once(
            app,
            snapshot,
            lambda: with_conflict_retries(
                spark, lambda now: merge_rows(now, plan(now), app), snapshot, system_columns
            ),
            counts,
        )
    return count_frame(spark, [(name, counts[name]) for name in _COUNTS])


def count_frame(spark: SparkSession, counts: Sequence[tuple[str, int]]) -> DataFrame:
    """Return a frame of one row of numbers."""
    # a list of rows would go through a job of Spark's Python
    return spark.sql(f"SELECT {', '.join(f'{count}L AS `{name}`' for name, count in counts)}")
