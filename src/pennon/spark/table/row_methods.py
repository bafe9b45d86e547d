"""Methods of `LanceTable` that change rows: delete, update, merge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from pennon.errors import ArgumentError
from pennon.scan.snapshot import Snapshot
from pennon.spark.changes.apply_changes import Events, merge_of_type_1, merge_of_type_2
from pennon.spark.changes.change_operations import delete_rows, update_rows
from pennon.spark.changes.merge_clauses import Merge
from pennon.spark.conflicts import once, with_conflict_retries
from pennon.spark.frames.scan import frame_of
from pennon.spark.source.conditions import (
    Condition,
    check_condition,
    check_kind,
    check_values,
    system_columns_named,
)
from pennon.spark.source.options import ReadOptions
from pennon.spark.table.handle import TableHandle
from pennon.spark.table.merge_builder import LanceMergeBuilder, count_frame, run_merge
from pennon.table.transaction import AppVersion, app_version

if TYPE_CHECKING:
    from pyspark.sql import Column


class RowMethods:
    """Changes of rows."""

    __slots__ = ()

    def delete(
        self: TableHandle,
        condition: Condition | None = None,
        *,
        txnAppId: str | None = None,
        txnVersion: int | None = None,
    ) -> DataFrame:
        """Delete the rows for which a condition is true, or all; return the number of deleted rows.

        ``txnAppId``, ``txnVersion``: the application and the number of its batch, which is done once (`pennon.spark.write`).

        >>> table.delete("value > 1").first()
        Row(num_affected_rows=2)
        """
        if condition is not None:
            check_condition(condition)
        app = app_version(txnAppId, txnVersion)
        rows = _with_retries(
            self,
            lambda now: delete_rows(self.spark, now, condition, self.alias_name, app),
            [] if condition is None else [condition],
            app,
        )
        return _count(self, rows)

    def update(
        self: TableHandle,
        condition: Condition | None = None,
        set: Mapping[str, str | Column] | None = None,
        *,
        txnAppId: str | None = None,
        txnVersion: int | None = None,
    ) -> DataFrame:
        """Give columns new values in the rows for which a condition is true; return the number of updated rows.

        ``txnAppId``, ``txnVersion``: the application and the number of its batch, which is done once (`pennon.spark.write`).

        >>> table.update("value > 1", {"value": "value * 10"}).first()
        Row(num_affected_rows=2)
        """
        if set is None:
            message = "set cannot be None: update(condition, {column: value})"
            raise ValueError(message)
        if condition is not None:
            check_condition(condition)
        values = check_values(set, "set")
        if not values:
            message = "an update names at least one column"
            raise ArgumentError(message)
        app = app_version(txnAppId, txnVersion)
        rows = _with_retries(
            self,
            lambda now: update_rows(self.spark, now, condition, values, self.alias_name, app),
            [*values.values(), *([] if condition is None else [condition])],
            app,
        )
        return _count(self, rows)

    def merge(self: TableHandle, source: DataFrame, condition: Condition) -> LanceMergeBuilder:
        """Return a builder of a merge: a condition says which rows of a DataFrame match rows of the table.

        >>> new = spark.createDataFrame([("a", 9), ("d", 4)], "key string, value long")
        >>> merge = table.alias("t").merge(new.alias("n"), "t.key = n.key")
        >>> merge = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll()
        >>> merge.execute().first().num_inserted_rows
        1
        """
        check_kind(source, DataFrame, "source must be DataFrame, got")
        check_condition(condition)
        return LanceMergeBuilder(self.snapshot(), Merge(source, condition, self.alias_name))

    def applyChanges(
        self: TableHandle,
        source: DataFrame,
        keys: Sequence[str],
        sequenceBy: Condition | None = None,
        *,
        applyAsDeletes: Condition | None = None,
        exceptColumns: Sequence[str] = (),
        storedAsScdType: int = 1,
        txnAppId: str | None = None,
        txnVersion: int | None = None,
    ) -> DataFrame:
        """Apply the events of a source (another database's log, or a change feed), and return as `merge` does.

        Each row of ``source`` is an event of the key in ``keys``: the new values, or a deletion where the condition
        ``applyAsDeletes`` is true.  Events of one key count in the order of ``sequenceBy``, a column or expression.
        Of a change feed (`changes`, ``readChangeFeed``) both are known.  ``exceptColumns`` are columns of the source
        that the table does not get.

        ``storedAsScdType`` 1 keeps the last state of each key; where the table has the column that ``sequenceBy``
        names, an event that is not newer than its row is passed over.  2 keeps all states: the table has the columns
        ``__START_AT`` and ``__END_AT``, of the sequence's type, and the state that is open has NULL as its end.

        ``txnAppId``, ``txnVersion``: the application and the number of its batch, which is done once.

        >>> events = spark.createDataFrame(
        ...     [("a", 7, 1, "put"), ("b", None, 2, "gone")], "key string, value long, at long, what string"
        ... )
        >>> found = table.applyChanges(
        ...     events, ["key"], "at", applyAsDeletes="what = 'gone'", exceptColumns=["at", "what"]
        ... )
        >>> found.select("num_updated_rows", "num_deleted_rows").first()
        Row(num_updated_rows=1, num_deleted_rows=1)
        """
        check_kind(source, DataFrame, "source must be DataFrame, got")
        events = Events.of(source, keys, sequenceBy, applyAsDeletes, exceptColumns)
        plan = _plan_of_changes(self, events, sequenceBy, storedAsScdType)
        return run_merge(source, self.snapshot(), plan, app_version(txnAppId, txnVersion))


def _plan_of_changes(
    table: TableHandle, events: Events, sequence_by: Condition | None, kind: int
) -> Callable[[Snapshot], Merge]:
    """Return what plans the merge of events into a version: what it does depends on the states that the version has."""
    if kind == 1:
        return lambda now: merge_of_type_1(
            now,
            events,
            sequence_by
            if isinstance(sequence_by, str) and sequence_by in now.manifest.schema.names
            else None,
        )
    if kind == 2:
        return lambda now: merge_of_type_2(
            now, events, frame_of(table.spark, now, ReadOptions(table.uri))
        )
    message = f"storedAsScdType is 1 (the last state of each key) or 2 (all states), not {kind!r}"
    raise ArgumentError(message)


def _with_retries(
    table: TableHandle,
    change: Callable[[Snapshot], int],
    said: Sequence[Condition],
    app: AppVersion | None,
) -> int:
    """Change rows of the newest version, and after conflicts of newer ones; none if the application did so."""
    snapshot = table.snapshot()
    system = system_columns_named(said, snapshot.manifest.schema.names, table.alias_name)
    return once(
        app, snapshot, lambda: with_conflict_retries(table.spark, change, snapshot, system), 0
    )


def _count(table: TableHandle, rows: int) -> DataFrame:
    return count_frame(table.spark, [("num_affected_rows", rows)])
