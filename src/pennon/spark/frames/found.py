"""A DataFrame of the rows that one search finds: the driver searches, and hands the rows to Spark with its plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.scan.answer import answer_search
from pennon.spark.arrow_convert import convert_batch
from pennon.spark.frames.scan import local_frame
from pennon.spark.types import arrow_schema, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pennon.scan.plan.query import ScanOptions
    from pennon.scan.snapshot import Snapshot


def found_frame(spark: SparkSession, snapshot: Snapshot, options: ScanOptions) -> DataFrame:
    """Return the rows that a search finds, best first, with the columns that it adds.

    Raises ArgumentError for a search that cannot be answered.
    """
    rows = answer_search(snapshot, options).read()
    schema = spark_schema(rows.schema)
    shown = arrow_schema(schema)
    batches = [convert_batch(batch, shown) for batch in rows.to_batches()]
    return local_frame(spark, pa.Table.from_batches(batches, shown), schema)
