"""The streaming query whose batch this thread works on: what Spark tells a function of ``foreachBatch``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUERY: Final = "sql.streaming.queryId"
"""The property of tasks, and of the thread, that has the id of the query."""


def query_of(spark: SparkSession) -> str | None:
    """Return the id of the query; None outside of one, and in a session of Connect, which does not tell it."""
    context = getattr(spark, "_sc", None)
    found = None if context is None else context.getLocalProperty(QUERY)
    return str(found) if found else None


def pass_over(rows: DataFrame) -> None:
    """Read a batch that was written before, if a query waits for that.

    Spark refuses a batch of a query with state of which not all partitions were read.
    """
    if query_of(rows.sparkSession) is not None:
        read_whole(rows)


def read_whole(rows: DataFrame) -> None:
    """Read all rows, for nothing but that they were read."""
    rows.write.format("noop").mode("overwrite").save()
