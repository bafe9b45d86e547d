"""Reading a `LanceTable`: counts, DataFrames of some version or some rows, and of what it is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias, Unpack

from pyspark.sql import types as st

from pennon.compat.arguments import check_options
from pennon.errors import ArgumentError
from pennon.ops.task_wire import parse_number, serialize_number
from pennon.scan.read.tasks import count_live_rows, plan_tasks
from pennon.schema.arrow import schema_to_arrow
from pennon.spark.changes.row_changes import analysed
from pennon.spark.changes.rows_found import translated
from pennon.spark.frames.changes import change_frame
from pennon.spark.frames.difference import difference_frame
from pennon.spark.frames.driver_reads import tests_little
from pennon.spark.frames.lookup import taken_frame
from pennon.spark.frames.scan import address_frame, parallelism_of
from pennon.spark.keywords import ReadKeywords
from pennon.spark.run_tasks import run_tasks
from pennon.spark.source import listings
from pennon.spark.source.conditions import (
    Condition,
    as_column,
    check_condition,
    column_names,
    columns_named,
)
from pennon.spark.source.options import DEFAULT_PARTITION_BYTES
from pennon.spark.source.partitions import Partition, pack_tasks
from pennon.spark.source.scan_task import TableScan, open_snapshot, plan_table_scan
from pennon.spark.table.functions import read
from pennon.spark.table.handle import TableHandle
from pennon.spark.types import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pennon.scan.snapshot import Snapshot


VersionName: TypeAlias = int | str | tuple[str, int | None]
"""The number of a version, a tag, or a branch and a number in it."""


def _opened(table: TableHandle, version: VersionName) -> Snapshot:
    """Return a version of a table."""
    if isinstance(version, tuple):
        branch, number = version
        return open_snapshot(table.uri, table.storage_options, number, branch=branch)
    return open_snapshot(table.uri, table.storage_options, version)


@dataclass(frozen=True, slots=True)
class CountRows:
    """Counts the rows that a scan finds in the partition of a number; it pickles."""

    to_bytes = staticmethod(serialize_number)
    from_bytes = staticmethod(parse_number)

    scan: TableScan
    partitions: tuple[Partition, ...]

    def run(self, number: int) -> int:
        """Return the number of rows of a partition."""
        return self.scan.count(self.partitions[number])


def count_rows(
    spark: SparkSession, snapshot: Snapshot, condition: Condition | None, alias: str | None
) -> int:
    """Return for how many rows a condition is true; without one the manifest says it."""
    if condition is None:
        return count_live_rows(snapshot)
    predicate = translated(snapshot, condition, alias)
    if predicate is None:
        return _count_in_spark(spark, snapshot, condition, alias)
    scan = plan_table_scan(snapshot, arrow_schema(st.StructType([])), None)
    scan = scan.where_predicate(predicate)
    tasks = plan_tasks(snapshot)
    if tests_little(scan, tasks):
        return scan.count(tasks)
    partitions = pack_tasks(tasks, DEFAULT_PARTITION_BYTES, parallelism_of(spark))
    task = CountRows(scan, tuple(partitions))
    return sum(run_tasks(spark, task, len(partitions)))


def _count_in_spark(
    spark: SparkSession, snapshot: Snapshot, condition: Condition, alias: str | None
) -> int:
    names = list(schema_to_arrow(snapshot.manifest.schema).names)

    def build(columns: Sequence[str]) -> DataFrame:
        rows = address_frame(spark, snapshot, columns)
        rows = rows if alias is None else rows.alias(alias)
        return rows.where(as_column(condition))

    return analysed(build, columns_named([condition], names, alias), names).count()


class TableReads:
    """The methods of `LanceTable` that Delta has not, and that read."""

    __slots__ = ()

    def count(self: TableHandle, condition: Condition | None = None) -> int:
        """Return the number of rows, or of those for which a condition is true.

        The manifest knows all of them, and no job starts.  Text that compares columns with literals is
        tested where the table is read, and only numbers come back; of a small table it is tested here.

        >>> table.count(), table.count("value > 1")
        (3, 2)
        """
        if condition is not None:
            check_condition(condition)
        return count_rows(self.spark, self.snapshot(), condition, self.alias_name)

    def read(
        self: TableHandle, columns: Sequence[str] | None = None, **options: Unpack[ReadKeywords]
    ) -> DataFrame:
        """Return a DataFrame of the table; the options are those of `pennon.spark.read`.

        They choose a version (``version``, ``tag``, ``branch``, ``asof``), rows (``filter``, ``limit``), or
        aggregates (``aggregate``, ``group_by``).

        >>> table.read(["key"], filter="value > 1").collect()
        [Row(key='b'), Row(key='c')]
        """
        check_options(options, read, "LanceTable.read")
        known: Any = {"storage_options": self.storage_options, **options}
        return read(self.spark, self.uri, columns, **known)

    def changes(
        self: TableHandle,
        begin_version: int,
        end_version: int | None = None,
        *,
        columns: Sequence[str] | None = None,
        net: bool = False,
    ) -> DataFrame:
        """Return the rows that each version after ``begin_version``, up to ``end_version``, changed.

        See `pennon.LanceDataset.changes`; ``end_version`` None is the newest.  Rows are read by tasks, of the
        fragments that differ.  ``spark.read.format("lance").option("readChangeFeed", "true")`` gives the same, with
        Delta's options: there ``startingVersion`` is the first version whose changes are shown.

        >>> _ = table.delete("value = 1")
        >>> table.changes(1).select("key", "_change_type").collect()
        [Row(key='a', _change_type='delete')]
        """
        snapshot = self.snapshot()
        end = int(snapshot.manifest.version) if end_version is None else end_version
        return change_frame(self.spark, snapshot, (begin_version, end), columns, net=net)

    def diff(
        self: TableHandle,
        before: VersionName,
        after: VersionName | None = None,
        *,
        on: Sequence[str],
    ) -> DataFrame:
        """Return the rows in which two versions differ, told apart by the key columns ``on``.

        A version is a number, a tag, or a branch and a number (None: its newest); ``after`` is the newest one if it is
        left out.  The columns are the keys, ``_difference`` (``added``, ``removed``, ``changed``),
        ``_changed_columns`` (names, of a row that changed), and ``before`` and ``after``, the other columns as a struct.
        A column that only one version has is no difference of its rows; nor is it if rows lie in other files or in
        another order.  Keys should be unique: rows of one key are compared each with each.

        >>> _ = table.update("key = 'b'", {"value": "20"})
        >>> table.diff(1, on=["key"]).select("key", "_difference", "_changed_columns").collect()
        [Row(key='b', _difference='changed', _changed_columns=['value'])]
        """
        keys = column_names([on], "on")
        if not keys:
            message = "on names the key columns, by which rows are told apart"
            raise ArgumentError(message)
        new = self.snapshot() if after is None else _opened(self, after)
        return difference_frame(self.spark, _opened(self, before), new, keys)

    def takeRows(
        self: TableHandle,
        rows: Iterable[SupportsIndex],
        columns: Sequence[str] | None = None,
        *,
        by: str = "_rowid",
    ) -> DataFrame:
        """Return the rows with some row ids, in the order asked; unknown ids are left out.

        ``by``: "_rowid", or "_rowaddr" for row addresses.  They are read here, no task starts.

        >>> table.takeRows([2, 0]).collect()
        [Row(key='c', value=3), Row(key='a', value=1)]
        """
        return taken_frame(self.spark, self.snapshot(), rows, columns, by)

    def versions(self: TableHandle) -> DataFrame:
        """Return the versions, oldest first, with their rows, files and bytes.

        >>> _ = table.delete("value = 1")
        >>> [row.version for row in table.versions().collect()]
        [1, 2]
        """
        rows = list(listings.version_rows(self.snapshot()))
        return self.spark.createDataFrame(rows, listings.VERSION_SCHEMA)

    def fragments(self: TableHandle) -> DataFrame:
        """Return the fragments of the newest version, in their order.

        >>> table.fragments().count()
        1
        """
        rows = list(listings.fragment_rows(self.snapshot()))
        return self.spark.createDataFrame(rows, listings.FRAGMENT_SCHEMA)

    def files(self: TableHandle) -> DataFrame:
        """Return the data files of the newest version, and the fields whose values they hold.

        >>> table.files().count()
        1
        """
        rows = list(listings.file_rows(self.snapshot()))
        return self.spark.createDataFrame(rows, listings.FILE_SCHEMA)
