"""Which writer a data source gets: one of all rows, or one that replaces a part of a table."""

from __future__ import annotations

from pyspark.sql.types import StructType

from pennon.errors import ArgumentError
from pennon.ops.write import WriteMode
from pennon.spark.options import WriteOptions
from pennon.spark.replaced_rows import key_columns, plan_replacement, understood
from pennon.spark.replacing_writer import ReplacingWriter
from pennon.spark.types import arrow_schema
from pennon.spark.write_task import plan_table_write
from pennon.spark.writer import LanceWriter


def plan_writer(options: WriteOptions, schema: StructType, *, overwrite: bool) -> LanceWriter:
    """Return the writer of a DataFrame, with the table's version pinned (on the driver).

    Raises ArgumentError for a condition that only Spark can evaluate.
    """
    if options.where is None and not options.overwrite_by:
        mode = WriteMode.OVERWRITE if overwrite else WriteMode.APPEND
        return LanceWriter(plan_table_write(options, schema, mode))
    if not overwrite:
        message = "replaceWhere and overwrite_by go with mode('overwrite')"
        raise ArgumentError(message)
    plan = plan_replacement(options, schema)
    if options.where is None:
        keys = tuple(key_columns(plan, options))
        condition = f"({', '.join(keys)}) as in the new rows"
        return ReplacingWriter(plan, condition=condition, rows=None, keys=keys)
    rows = understood(options.where, schema, arrow_schema(schema))
    return ReplacingWriter(plan, condition=options.where, rows=rows, keys=())
