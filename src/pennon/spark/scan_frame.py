"""DataFrames over one version of a table: task descriptors through ``mapInArrow``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf

from pennon.scan.plan import plan_tasks
from pennon.spark.options import ReadOptions
from pennon.spark.partitions import Parallelism, Partition, plan_partitions
from pennon.spark.scan_task import ReadTasks, arrow_schema_of, plan_table_scan
from pennon.spark.source import shown_schema
from pennon.spark.types import ROW_ADDRESS, arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pennon.scan.snapshot import Snapshot


ADDRESS: Final = "__pennon_address"
"""What the address of a row is called beside columns that may be named ``_rowaddr``."""


MOST_RANGE_ROWS: Final = 1 << 26
"""Half a gigabyte of numbers: what is larger is not broadcast in any case."""


def frame_of(
    spark: SparkSession, snapshot: Snapshot, options: ReadOptions, where: str | None = None
) -> DataFrame:
    """Return a DataFrame over a version, of the columns and in the batches that options ask for.

    ``where`` is a condition in the SQL of all scans.
    """
    partitions = plan_partitions(snapshot, options.max_partition_bytes, parallelism_of(spark))
    return _frame(spark, snapshot, options, partitions, where)


def _frame(
    spark: SparkSession,
    snapshot: Snapshot,
    options: ReadOptions,
    planned: Sequence[Partition],
    where: str | None = None,
) -> DataFrame:
    schema = shown_schema(arrow_schema_of(snapshot), options)
    scan = plan_table_scan(snapshot, arrow_schema(schema), options.batch_size)
    if where is not None:
        scan = scan.where(where)
    partitions = tuple(planned)
    if not partitions:
        return spark.createDataFrame([], schema)
    numbers = _numbers(spark, partitions)
    return numbers.mapInArrow(ReadTasks(scan, partitions), schema)


def address_frame(spark: SparkSession, snapshot: Snapshot, columns: Sequence[str]) -> DataFrame:
    """Return columns of a table's rows, and their addresses as `ADDRESS`."""
    options = ReadOptions(uri=snapshot.store.uri, columns=tuple(columns), with_row_address=True)
    return frame_of(spark, snapshot, options).withColumnRenamed(ROW_ADDRESS, ADDRESS)


def fragment_frame(spark: SparkSession, snapshot: Snapshot, columns: Sequence[str]) -> DataFrame:
    """Return the same as `address_frame`, with each fragment's rows, in order, in a partition of their own."""
    options = ReadOptions(uri=snapshot.store.uri, columns=tuple(columns), with_row_address=True)
    partitions = [(task,) for task in plan_tasks(snapshot)]
    return _frame(spark, snapshot, options, partitions).withColumnRenamed(ROW_ADDRESS, ADDRESS)


def _numbers(spark: SparkSession, partitions: Sequence[Partition]) -> DataFrame:
    """Return the number of each partition, in a partition of its own.

    Spark takes a frame for as large as what it is made of, and sends small ones whole to every executor
    where two are joined.  So the numbers are made of a range that has as many rows as the table, of which
    the first of each partition is kept; the JVM goes through a range in next to no time.
    """
    count = len(partitions)
    rows = sum(task.rows for tasks in partitions for task in tasks)
    step = max(min(rows, MOST_RANGE_ROWS) // count, 1)
    return (
        spark.range(0, count * step, 1, count)
        .where(sf.col("id") % step == 0)
        .select(sf.expr(f"id div {step} AS id"))
    )


def parallelism_of(spark: SparkSession) -> Parallelism:
    """Return what the session wants; a Connect session does not tell its cores."""
    context = getattr(spark, "sparkContext", None)
    return (
        Parallelism.unknown()
        if context is None
        else Parallelism.of_cores(context.defaultParallelism)
    )
