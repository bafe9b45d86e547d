"""The methods of `pennon.spark.LanceTable` that change columns; Delta's table has none of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import types as st

from pennon.errors import ArgumentError
from pennon.ops.columns.alter import alter_columns, drop_columns, plan_alter
from pennon.ops.columns.alterations import Alteration
from pennon.ops.columns.commits import commit_columns
from pennon.schema.maps import MARK
from pennon.spark.changes.backfill import Backfill, Function, backfill
from pennon.spark.run_tasks import run_tasks
from pennon.spark.source.conditions import (
    Condition,
    check_flag,
    check_kind,
    check_text,
    check_values,
    column_names,
)
from pennon.spark.table.builder import parse_type
from pennon.spark.table.handle import TableHandle
from pennon.spark.table.merge_builder import count_frame
from pennon.spark.types import lance_schema
from pennon.table.storage_version import storage_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ColumnMethods:
    """Adding columns, changing and dropping them."""

    __slots__ = ()

    def addColumns(
        self: TableHandle,
        columns: Mapping[str, Condition] | Function | DataFrame,
        on: str | Sequence[str] = (),
        *,
        checkpoint: str | None = None,
        readColumns: Sequence[str] | None = None,
        outputSchema: pa.Schema | None = None,
        batchSize: int | None = None,
        fixedSizeList: Mapping[str, int] | None = None,
    ) -> DataFrame:
        """Add columns as one version; return it, and how many fragments were written.

        ``columns``: what each is computed by, SQL or a Column (also of a Spark UDF); a function from a
        batch of rows (Arrow's) to one of new columns (Arrow's or pandas'); or a DataFrame with columns
        to join it ``on``, of which ``_rowaddr`` may be the one.  ``checkpoint``: a folder, seen by all
        executors, where finished fragments are noted; the same call again computes only the others.

        >>> _ = table.addColumns({"twice": "value * 2", "loud": sf.upper("key")})
        >>> table.toDF().first()
        Row(key='a', value=1, twice=2, loud='A')
        """
        wanted = Backfill(
            check_values(columns, "columns") if isinstance(columns, Mapping) else columns,
            (on,) if isinstance(on, str) else tuple(on),
            self.alias_name,
            checkpoint,
            None if readColumns is None else tuple(readColumns),
            outputSchema,
            batchSize,
            dict(fixedSizeList or {}),
            self.storage_options,
        )
        done = backfill(self.spark, self.snapshot(), wanted)
        numbers = [
            ("version", done.version),
            ("num_added_columns", done.columns),
            ("num_written_fragments", done.written),
            ("num_reused_fragments", done.reused),
        ]
        return count_frame(self.spark, numbers)

    def dropColumns(self: TableHandle, *columns: str | Sequence[str]) -> None:
        """Drop columns, or fields inside them (``a.b``), as one version; their bytes stay until a compaction.

        Raises NotFoundError for a column that is not there, InvalidSchemaError if none is left.

        >>> table.dropColumns("value")
        >>> table.toDF().columns
        ['key']
        """
        names = column_names(columns, "dropColumns")
        if not names:
            message = "dropColumns takes at least one column"
            raise ArgumentError(message)
        drop_columns(self.snapshot(), names)

    def renameColumn(self: TableHandle, column: str, newName: str) -> None:
        """Give a column, or a field inside one (``a.b``), another name; no file is written.

        Raises NotFoundError for a column that is not there, InvalidSchemaError for a name that is taken.

        >>> table.renameColumn("value", "number")
        >>> table.toDF().columns
        ['key', 'number']
        """
        check_text(column, "column")
        check_text(newName, "newName")
        _alter(self, Alteration(column, name=newName))

    def alterColumn(
        self: TableHandle,
        column: str,
        *,
        dataType: str | st.DataType | None = None,
        nullable: bool | None = None,
    ) -> None:
        """Change the type of a column, or whether it may be NULL.

        Another type writes the column anew, one file a fragment, on the executors: whole numbers become
        whole numbers, text becomes text, and so on.

        Raises NotFoundError for a column that is not there, InvalidSchemaError for a type that it cannot
        become, and for a column that is to be never NULL but has a NULL, SchemaMismatchError for a value
        that does not fit.

        >>> table.alterColumn("value", dataType="int")
        >>> table.toDF().dtypes
        [('key', 'string'), ('value', 'int')]
        """
        check_text(column, "column")
        if dataType is None and nullable is None:
            message = f"alterColumn({column!r}): say dataType=, nullable= or both"
            raise ArgumentError(message)
        if nullable is not None:
            check_flag(nullable, "nullable must be bool, got")
        wanted = None if dataType is None else _arrow_type(self, column, dataType)
        _alter(self, Alteration(column, nullable=nullable, data_type=wanted))


def _arrow_type(table: TableHandle, column: str, given: str | st.DataType) -> pa.DataType:
    """Return the type that the table stores for one of Spark's."""
    kind = parse_type(table.spark, given) if isinstance(given, str) else given
    check_kind(kind, st.DataType, "dataType must be a DataType or its name, got")
    version = storage_version(table.snapshot().manifest)
    stored = lance_schema(st.StructType([st.StructField(column, kind)]), {}, version).field(0)
    if stored.metadata and MARK.encode() in stored.metadata:
        message = (
            f"column {column!r} becomes no {kind.simpleString()} by itself, for that is more than a type in the "
            "table; append or merge values of it with mergeSchema to a column that is void"
        )
        raise ArgumentError(message)
    return stored.type


def _alter(table: TableHandle, alteration: Alteration) -> None:
    plan = plan_alter(table.snapshot(), [alteration])
    if plan.task is None:
        alter_columns(plan)
        return
    fragments = run_tasks(table.spark, plan.task, plan.task.count)
    commit_columns(plan.snapshot, fragments, plan.schema)
