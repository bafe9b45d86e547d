"""Methods of `LanceTable` that change rows: delete, update, merge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from pennon.errors import ArgumentError
from pennon.scan.snapshot import Snapshot
from pennon.spark.changes.change_operations import delete_rows, update_rows
from pennon.spark.changes.merge_clauses import Merge
from pennon.spark.conflicts import once, with_conflict_retries
from pennon.spark.source.conditions import (
    Condition,
    check_condition,
    check_kind,
    check_values,
    system_columns_named,
)
from pennon.spark.table.handle import TableHandle
from pennon.spark.table.merge_builder import LanceMergeBuilder, count_frame
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
