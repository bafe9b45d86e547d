"""``spark.read.format("lance")`` and ``df.write.format("lance")``.

Spark finds `LanceDataSource` by itself: it looks in every module named ``pyspark_*`` for a
``DefaultSource``.

Spark plans a Python source in a process of its own: it unpickles the data source, asks for a
reader, hands over filters (or not, see `PushedFilters`), asks for partitions, and pickles the
reader for the executors.  So the reader pins a version when it is made, and everything in it
pickles.

What Spark planned it keeps, for every later use of the same DataFrame or view (Spark 4.3.0,
``PythonDataSourceV2.readInfo``).  Two things follow:

* A DataFrame or a temporary view stays at the version of its first query.
* A reader that dropped rows by a filter would drop them in other queries too: with the push-down
  setting on, ``df.filter(...).count()`` and then ``df.count()`` would count the same rows.  So
  filters are only applied here under the option ``push_filters``, for a DataFrame that serves one
  query; without it Spark applies them.

Spark tells a Python source neither which columns a query uses nor its limit.  Columns are pruned by
``.schema(...)`` or the option ``columns``.  A limit is served by stopping early: Spark drops the
worker in the middle of a batch, so the next query starts in a fresh one.  That costs the imports of
this package and of pyarrow, hence the care for what is imported and for the size of batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StructType

from pennon.errors import ArgumentError
from pennon.scan.changes.columns import change_columns
from pennon.spark.pyspark_classes import ds, push_filters
from pennon.spark.source.filters import condition_of
from pennon.spark.source.options import (
    STREAM_WRITE_KEYS,
    ReadOptions,
    check_not_of_stream,
    known_options,
    parse_read_options,
    parse_shown_options,
    parse_write_options,
)
from pennon.spark.source.partitions import Parallelism, Partition, plan_partitions
from pennon.spark.source.scan_task import arrow_schema_of, plan_table_scan, snapshot_of
from pennon.spark.telemetry import measured_read
from pennon.spark.types import ROW_ADDRESS, ROW_ID, arrow_schema, spark_schema, system_field

if TYPE_CHECKING:
    from pennon.spark.source.writer import LanceWriter


class LanceDataSource(ds.DataSource):
    """The Lance format for Spark; options in `pennon.spark.source.options`.

    >>> spark.read.format("lance").load(path).count()
    3
    """

    @classmethod
    def name(cls) -> str:
        """Return the name for ``format(...)`` and ``USING``."""
        return "lance"

    def schema(self) -> StructType:
        """Return the table's schema, narrowed by ``columns``, with the row columns asked for."""
        return table_schema(parse_shown_options(self.options))

    def reader(self, schema: StructType) -> ds.DataSourceReader:
        """Return a reader of the columns of ``schema``, which may be a part of the table's."""
        options = parse_read_options(self.options)
        if options.changes is None:
            return LanceReader(options, schema)
        from pennon.spark.source.change_reader import ChangeReader  # saves what few queries need

        return ChangeReader.of(options, options.changes, schema)

    def writer(self, schema: StructType, overwrite: bool) -> LanceWriter:
        """Return a writer with the table's version pinned."""
        # Spark makes the source anew in three processes a query.
        from pennon.spark.source.writer_plan import plan_writer  # saves 100 ms: what writes

        check_not_of_stream(known_options(self.options), STREAM_WRITE_KEYS, "writeStream")
        return plan_writer(parse_write_options(self.options), schema, overwrite=overwrite)

    def streamReader(self, schema: StructType) -> ds.DataSourceStreamReader:
        """Return a reader of a table as a stream, with the columns of ``schema``."""
        from pennon.spark.source.stream_limits import stream_reader  # saves what few queries need

        return stream_reader(self.options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> ds.DataSourceStreamWriter:
        """Return a writer of one batch of a stream; Spark makes one for each batch."""
        from pennon.spark.source.stream_sink import stream_writer  # saves what few queries need

        return stream_writer(self.options, schema, overwrite=overwrite)


# --- reading ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LancePartition(ds.InputPartition):
    """The rows that one task reads; it travels to one executor."""

    tasks: Partition


class PushedFilters:
    """``reader.pushFilters`` under both settings of ``spark.sql.python.filterPushdown.enabled``.

    With the setting off, Spark's planner refuses every reader whose ``pushFilters`` is not the base
    class's own, by comparing ``pushFilters.__func__``; with the setting on it simply calls
    ``pushFilters``.  A reader cannot know the setting, so ours answers both: it is called like a
    method and names the base class's function as its own.
    """

    __func__ = staticmethod(push_filters())

    def __init__(self, reader: LanceReader) -> None:
        self._reader = reader

    def __call__(self, filters: list[ds.Filter]) -> list[ds.Filter]:
        """Keep the filters that the reader can answer and return the others to Spark."""
        return self._reader.accept_filters(filters)


class LanceReader(ds.DataSourceReader):
    """Reads one version of a table; its partitions are those of `pennon.spark.source.partitions`."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        """Pin the version and plan what each partition reads (on the driver)."""
        snapshot = snapshot_of(options)
        self._schema = schema
        self._pushes_filters = options.push_filters
        columns = arrow_schema(schema)
        self._scan = plan_table_scan(snapshot, columns, options.batch_size)
        self._partitions = plan_partitions(
            snapshot, options.max_partition_bytes, Parallelism.unknown(), columns
        )
        self.pushFilters = PushedFilters(self)  # type: ignore[method-assign]

    def accept_filters(self, filters: list[ds.Filter]) -> list[ds.Filter]:
        """Split the filters (their conjunction) into ours, kept, and Spark's, returned."""
        if not self._pushes_filters:
            return filters
        pairs = [(each, condition_of(each, self._schema)) for each in filters]
        ours = [condition for _, condition in pairs if condition is not None]
        self._scan = self._scan.where_all(ours)
        return [each for each, condition in pairs if condition is None]

    def partitions(self) -> list[ds.InputPartition]:
        """Return the partitions; an empty table has none, which Spark turns into one of None."""
        return [LancePartition(tasks) for tasks in self._partitions]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the batches of one partition (on an executor)."""
        if isinstance(partition, LancePartition):
            for batch in measured_read("read", self._scan.read(partition.tasks)):
                if batch.num_rows:
                    yield batch

    def __getstate__(self) -> dict[str, object]:
        """Pickle without the partitions: each travels by itself."""
        return {**self.__dict__, "_partitions": []}


# --- schemas ---------------------------------------------------------------------------------------


def table_schema(options: ReadOptions) -> StructType:
    """Return what Spark sees of a table under these options."""
    snapshot = snapshot_of(options)
    return shown_schema(arrow_schema_of(snapshot), options)


def shown_schema(schema: pa.Schema, options: ReadOptions) -> StructType:
    """Return Spark's schema of a table's columns: those asked for, and the row columns, or those of a change."""
    if options.columns is not None:
        schema = _narrow(schema, options.columns)
    if options.changes is not None:
        nullable = [each.with_nullable(True) for each in schema]  # noqa: FBT003 - Arrow's own order
        return spark_schema(pa.schema([*nullable, *change_columns()]))
    if options.with_row_id:
        schema = schema.append(system_field(ROW_ID))
    if options.with_row_address:
        schema = schema.append(system_field(ROW_ADDRESS))
    return spark_schema(schema)


def _narrow(schema: pa.Schema, columns: tuple[str, ...]) -> pa.Schema:
    """Keep the named columns in the order given; ``a.b`` keeps only ``b`` of the struct ``a``."""
    wanted: dict[str, list[str]] = {}
    for name in columns:
        top, _, rest = (name, "", "") if name in schema.names else name.partition(".")
        if schema.get_field_index(top) < 0:
            message = f"no column {name!r}; there are {', '.join(schema.names)}"
            raise ArgumentError(message)
        wanted.setdefault(top, []).append(rest)
    return pa.schema([_narrow_field(schema.field(top), rest) for top, rest in wanted.items()])


def _narrow_field(field: pa.Field, paths: list[str]) -> pa.Field:
    if "" in paths:
        return field
    if not pa.types.is_struct(field.type):
        message = f"{field.name!r} is {field.type}, which has no fields {', '.join(paths)}"
        raise ArgumentError(message)
    children = pa.schema([field.type.field(i) for i in range(field.type.num_fields)])
    return field.with_type(pa.struct(list(_narrow(children, tuple(paths)))))
