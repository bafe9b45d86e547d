"""DataFrames over one version of a table: task descriptors through ``mapInArrow``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pennon.errors import ArgumentError
from pennon.scan.read.tasks import ScanTask, plan_tasks
from pennon.spark.frames import driver_reads
from pennon.spark.frames.top_rows import TopRows, TopTasks
from pennon.spark.pyspark_classes import RELEASE
from pennon.spark.source.data_source import shown_schema
from pennon.spark.source.options import DEFAULT_PARTITION_BYTES, ReadOptions
from pennon.spark.source.partitions import (
    Parallelism,
    Partition,
    pack_tasks,
    partitions_of,
    plan_partitions,
)
from pennon.spark.source.scan_task import ReadTasks, TableScan, arrow_schema_of, plan_table_scan
from pennon.spark.types import ROW_ADDRESS, ROW_ID, SYSTEM_COLUMNS, arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import types as st

    from pennon.scan.predicate import Predicate
    from pennon.scan.snapshot import Snapshot


ADDRESS: Final = "__pennon_address"
"""What the address of a row is called beside columns that may be named ``_rowaddr``."""


MOST_RANGE_ROWS: Final = 1 << 26
"""Half a gigabyte of numbers: what is larger is not broadcast in any case."""

KEPT_NUMBERS: Final = 64
"""So many frames of numbers are kept by a session."""
_NUMBERS: Final = "_pennon_numbers"
"""The attribute of a session that has them; a table of all sessions would keep these alive, as frames know their session."""


def frame_of(
    spark: SparkSession,
    snapshot: Snapshot,
    options: ReadOptions,
    where: str | Predicate | None = None,
    planned: Sequence[Partition] | None = None,
    rows: int | None = None,
) -> DataFrame:
    """Return a DataFrame over a version, of the columns and in the batches that options ask for.

    ``where`` is a condition, as text in the SQL of all scans.  ``planned`` are the partitions, None: those that suit the
    session.  ``rows``: no more than these pass, and Spark is told so; None: that is not known.
    """
    schema, scan = plan_frame(snapshot, options, where)
    if planned is None:
        planned = partitions_for(spark, plan_tasks(snapshot), scan, options)
    return _read_frame(spark, scan, planned, schema, rows)


def plan_frame(
    snapshot: Snapshot, options: ReadOptions, where: str | Predicate | None
) -> tuple[st.StructType, TableScan]:
    """Return the schema in Spark of the columns that options ask for, and the scan of the rows that pass a condition."""
    schema = shown_schema(arrow_schema_of(snapshot), options)
    scan = plan_table_scan(snapshot, arrow_schema(schema), options.batch_size)
    if where is not None:
        scan = scan.where(where) if isinstance(where, str) else scan.where_predicate(where)
    return schema, scan


def partitions_for(
    spark: SparkSession, tasks: Sequence[ScanTask], scan: TableScan, options: ReadOptions
) -> tuple[Partition, ...]:
    """Return the partitions of all tasks of a table that suit the session."""
    most, parallelism = options.max_partition_bytes, parallelism_of(spark)
    return tuple(partitions_of(tasks, most, parallelism, scan.read_columns))


def _read_frame(
    spark: SparkSession,
    scan: TableScan,
    planned: Sequence[Partition],
    schema: st.StructType,
    rows: int | None,
) -> DataFrame:
    partitions = tuple(planned)
    if not partitions:
        return spark.createDataFrame([], schema)
    if rows is None:
        numbers = numbers_of(spark, partitions)
    else:  # a power of two: the session keeps fewer frames
        numbers = numbers_up_to(spark, len(partitions), 1 << rows.bit_length())
    return numbers.mapInArrow(ReadTasks(scan, partitions), schema)


def local_frame(spark: SparkSession, rows: pa.Table, schema: st.StructType) -> DataFrame:
    """Return a DataFrame of rows that are at hand; PySpark takes no table of structs that has no chunk."""
    if not rows.num_rows:
        return spark.createDataFrame([], schema)
    if RELEASE < (4, 0):
        return spark.range(0, 1, 1, 1).mapInArrow(HeldRows.of(rows), schema)
    return spark.createDataFrame(rows, schema)


@dataclass(frozen=True, slots=True)
class HeldRows:
    """Gives the rows that it holds, as bytes of Arrow's own: Spark 3.5 takes no table of Arrow."""

    data: bytes

    @classmethod
    def of(cls, rows: pa.Table) -> HeldRows:
        """Return what holds some rows."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        return cls(sink.getvalue().to_pybytes())

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows; those of the batches are passed over."""
        for _ in batches:
            pass
        yield from pa.ipc.open_stream(self.data)


def passing_rows(
    spark: SparkSession,
    snapshot: Snapshot,
    options: ReadOptions,
    where: str | Predicate,
    most: int | None = None,
) -> DataFrame:
    """Return a DataFrame of the rows of a version that pass a condition; ``most``: no more than these do, None: that is not known.

    Few rows that little had to be tested for are found here, and handed to Spark with its plan: no job starts
    for them.
    """
    schema, scan = plan_frame(snapshot, options, where)
    tasks = plan_tasks(snapshot)
    rows = driver_reads.passing_rows(scan, tasks)
    if rows is not None:
        return local_frame(spark, rows, schema)
    return _read_frame(spark, scan, partitions_for(spark, tasks, scan, options), schema, most)


def first_rows(
    spark: SparkSession,
    snapshot: Snapshot,
    options: ReadOptions,
    limit: int,
    where: str | Predicate | None = None,
) -> DataFrame:
    """Return a DataFrame of the first rows of a version, of those that pass a condition.

    A few rows are read here and handed to Spark with its plan, as those of `passing_rows` are: no job starts for
    them.  Others are read by tasks that end when they have enough.
    """
    check_limit(limit)
    schema, scan = plan_frame(snapshot, options, where)
    if where is not None:
        scan = scan.first(limit)
    tasks = plan_tasks(snapshot, limit=limit if where is None else None)
    if not tasks:
        return spark.createDataFrame([], schema)
    few = driver_reads.first_rows if where is None else driver_reads.passing_rows
    rows = few(scan, tasks)
    if rows is not None:
        return local_frame(spark, rows, schema)
    partitions = pack_tasks(tasks, options.max_partition_bytes, parallelism_of(spark))
    found = numbers_of(spark, partitions).mapInArrow(ReadTasks(scan, tuple(partitions)), schema)
    return found if where is None else found.limit(limit)


def top_rows(
    spark: SparkSession,
    snapshot: Snapshot,
    options: ReadOptions,
    top: TopRows,
    where: str | Predicate | None = None,
) -> DataFrame:
    """Return a DataFrame of rows of a version among which the first ones in an order are, of those that pass a condition.

    Those of a small table are found here, as `passing_rows` are.
    """
    schema, scan = plan_frame(snapshot, options, where)
    tasks = plan_tasks(snapshot)
    if not tasks:
        return spark.createDataFrame([], schema)
    rows = driver_reads.top_rows(top, scan, tasks)
    if rows is not None:
        return local_frame(spark, rows, schema)
    partitions = partitions_for(spark, tasks, scan, options)
    work = TopTasks(ReadTasks(scan, partitions), top)
    return numbers_of(spark, partitions).mapInArrow(work, schema)


def address_frame(
    spark: SparkSession,
    snapshot: Snapshot,
    columns: Sequence[str],
    tasks: Sequence[ScanTask] | None = None,
) -> DataFrame:
    """Return columns of a table's rows, or of those of some tasks, and their addresses as `ADDRESS`.

    ``columns`` may have ``_rowid`` and ``_rowaddr`` among them.
    """
    partitions: Sequence[Partition] | None = None
    if tasks is not None:
        parallelism = parallelism_of(spark)
        partitions = pack_tasks(tasks, DEFAULT_PARTITION_BYTES, parallelism) if tasks else ()
    return _addressed(spark, snapshot, columns, partitions)


def reads_whole_fragments(spark: SparkSession, snapshot: Snapshot) -> bool:
    """Return whether `address_frame` has all rows of each fragment in one partition."""
    planned = plan_partitions(snapshot, DEFAULT_PARTITION_BYTES, parallelism_of(spark))
    owners = [task.fragment.id for tasks in planned for task in tasks]
    return len(set(owners)) == len(owners)


def fragment_frame(spark: SparkSession, snapshot: Snapshot, columns: Sequence[str]) -> DataFrame:
    """Return the same as `address_frame`, with each fragment's rows, in order, in a partition of their own."""
    return _addressed(spark, snapshot, columns, [(task,) for task in plan_tasks(snapshot)])


def _addressed(
    spark: SparkSession,
    snapshot: Snapshot,
    columns: Sequence[str],
    partitions: Sequence[Partition] | None,
) -> DataFrame:
    known = arrow_schema_of(snapshot).names
    system = [name for name in columns if name in SYSTEM_COLUMNS and name not in known]
    options = ReadOptions(
        uri=snapshot.store.uri,
        columns=tuple(name for name in columns if name not in system),
        with_row_id=ROW_ID in system,
        with_row_address=True,
    )
    rows = frame_of(spark, snapshot, options, planned=partitions)
    if ROW_ADDRESS in system:
        return rows.withColumn(ADDRESS, rows[ROW_ADDRESS])
    return rows.withColumnRenamed(ROW_ADDRESS, ADDRESS)


def numbers_of(spark: SparkSession, partitions: Sequence[Partition]) -> DataFrame:
    """Return the number of each partition, in a partition of its own."""
    return numbers_up_to(
        spark, len(partitions), sum(task.rows for tasks in partitions for task in tasks)
    )


def numbers_up_to(spark: SparkSession, count: int, rows: int) -> DataFrame:
    """Return numbers from 0 on, each in a partition of its own, for tasks that read so many rows.

    Spark takes a frame for as large as what it is made of, and sends small ones whole to every executor
    where two are joined.  So the numbers are made of a range that has as many rows as the table, of which
    the first of each partition is kept; the JVM goes through a range in next to no time.  The session keeps the frame:
    to make it takes as long as to read a small table.
    """
    step = max(min(rows, MOST_RANGE_ROWS) // count, 1)
    known: dict[tuple[int, int], DataFrame] = vars(spark).setdefault(_NUMBERS, {})
    found = known.get((count, step))
    if found is None:
        found = (
            spark.range(0, count, 1, count) if step == 1 else _spread_numbers(spark, count, step)
        )
        if len(known) >= KEPT_NUMBERS:
            known.clear()
        known[count, step] = found
    return found


def _spread_numbers(spark: SparkSession, count: int, step: int) -> DataFrame:
    # as text: the JVM is called once, and looks the plan through once
    numbers = f"range(0, {count * step}, 1, {count})"
    return spark.sql(f"SELECT id div {step} AS id FROM {numbers} WHERE id % {step} = 0")  # noqa: S608 - numbers alone


def check_limit(limit: object) -> None:
    """Raise ArgumentError for what is no number of rows."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        message = f"limit is a number of rows, 0 or more, not {limit!r}"
        raise ArgumentError(message)


def parallelism_of(spark: SparkSession) -> Parallelism:
    """Return what the session wants; a Connect session does not tell its cores."""
    context = getattr(spark, "sparkContext", None)
    return (
        Parallelism.unknown()
        if context is None
        else Parallelism.of_cores(context.defaultParallelism)
    )
