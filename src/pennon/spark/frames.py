"""DataFrames over one version of a table: task descriptors through ``mapInArrow``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pennon.spark.options import ReadOptions
from pennon.spark.partitions import Parallelism, plan_partitions
from pennon.spark.scan_task import ReadTasks, arrow_schema_of, plan_table_scan
from pennon.spark.source import shown_schema
from pennon.spark.types import ROW_ADDRESS, arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pennon.scan.snapshot import Snapshot


ADDRESS: Final = "__pennon_address"
"""What the address of a row is called beside columns that may be named ``_rowaddr``."""


def frame_of(
    spark: SparkSession, snapshot: Snapshot, options: ReadOptions, where: str | None = None
) -> DataFrame:
    """Return a DataFrame over a version, of the columns and in the batches that options ask for.

    ``where`` is a condition in the SQL of all scans.
    """
    schema = shown_schema(arrow_schema_of(snapshot), options)
    scan = plan_table_scan(snapshot, arrow_schema(schema), options.batch_size)
    if where is not None:
        scan = scan.where(where)
    partitions = tuple(
        plan_partitions(snapshot, options.max_partition_bytes, parallelism_of(spark))
    )
    if not partitions:
        return spark.createDataFrame([], schema)
    numbers = spark.range(0, len(partitions), 1, len(partitions))
    return numbers.mapInArrow(ReadTasks(scan, partitions), schema)


def address_frame(spark: SparkSession, snapshot: Snapshot, columns: Sequence[str]) -> DataFrame:
    """Return columns of a table's rows, and their addresses as `ADDRESS`."""
    options = ReadOptions(uri=snapshot.store.uri, columns=tuple(columns), with_row_address=True)
    return frame_of(spark, snapshot, options).withColumnRenamed(ROW_ADDRESS, ADDRESS)


def parallelism_of(spark: SparkSession) -> Parallelism:
    """Return what the session wants; a Connect session does not tell its cores."""
    context = getattr(spark, "sparkContext", None)
    return (
        Parallelism.unknown()
        if context is None
        else Parallelism.of_cores(context.defaultParallelism)
    )
