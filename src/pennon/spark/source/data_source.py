"""``spark.read.format("lance")`` and ``df.write.format("lance")``.

Spark finds `LanceDataSource` by itself: it looks in every module named ``pyspark_*`` for a
``DefaultSource``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from pennon.errors import ArgumentError
from pennon.spark.source.options import ReadOptions, parse_read_options, parse_write_options
from pennon.spark.source.reader import LanceReader
from pennon.spark.source.scan_task import arrow_schema_of, snapshot_of
from pennon.spark.types import ROW_ADDRESS, ROW_ID, spark_schema, system_field

if TYPE_CHECKING:
    from pennon.spark.source.writer import LanceWriter


class LanceDataSource(DataSource):
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
        return table_schema(parse_read_options(self.options))

    def reader(self, schema: StructType) -> LanceReader:
        """Return a reader of the columns of ``schema``, which may be a part of the table's."""
        return LanceReader(parse_read_options(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> LanceWriter:
        """Return a writer with the table's version pinned."""
        # Spark makes the source anew in three processes a query.
        from pennon.spark.source.writer_plan import plan_writer  # saves 100 ms: what writes

        return plan_writer(parse_write_options(self.options), schema, overwrite=overwrite)


def table_schema(options: ReadOptions) -> StructType:
    """Return what Spark sees of a table under these options."""
    snapshot = snapshot_of(options)
    return shown_schema(arrow_schema_of(snapshot), options)


def shown_schema(schema: pa.Schema, options: ReadOptions) -> StructType:
    """Return Spark's schema of a table's columns: those asked for, and the row columns."""
    if options.columns is not None:
        schema = _narrow(schema, options.columns)
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
