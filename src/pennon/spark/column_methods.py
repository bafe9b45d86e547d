"""The methods of `pennon.spark.LanceTable` that change columns; Delta's table has none of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from pennon.scan.snapshot import Snapshot
from pennon.spark.backfill import Backfill, Function, backfill
from pennon.spark.conditions import Condition, check_values
from pennon.spark.merge_builder import count_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class TableHandle(Protocol):
    """What the methods need of a table."""

    @property
    def spark(self) -> SparkSession:
        """Return the session."""
        ...

    @property
    def storage_options(self) -> Mapping[str, str]:
        """Return the options of the object store."""
        ...

    @property
    def alias_name(self) -> str | None:
        """Return the name that expressions may use."""
        ...

    def snapshot(self) -> Snapshot:
        """Return the newest version."""
        ...


class ColumnMethods:
    """Adding columns."""

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
        return count_frame(self.spark.range(0), numbers)
