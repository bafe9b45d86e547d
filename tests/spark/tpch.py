"""TPC-H's queries over Lance tables beside Spark's own answers over views of the same rows, in any release of Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from sql_rows import Answer, difference, is_ordered
from sql_tables import TPCH, tpch_queries
from tpch_tables import make_tables

import pennon
import pennon.spark

SCALE = 0.002
"""Some 12,000 line items: no query's answer is empty."""


@contextmanager
def tables(spark: SparkSession, folder: Path) -> Iterator[None]:
    """Give the session a catalog of Lance tables, of up to 5,000 rows a file, and views of the same rows."""
    places: dict[str, str] = {}
    for name, rows in make_tables(SCALE):
        assert name not in places, "a small scale has one part of each table"
        places[name] = str(folder / f"{name}.lance")
        pennon.write_dataset(rows, places[name], max_rows_per_file=5000)
        pq.write_table(rows, folder / f"{name}.parquet")
        view = spark.read.parquet(str(folder / f"{name}.parquet")).cache()
        view.createOrReplaceTempView(name)
    catalog = pennon.spark.attach(spark, places, name=TPCH, views=False)
    yield
    catalog.detach()
    spark.catalog.clearCache()
    for name in places:
        spark.catalog.dropTempView(name)


def faults(spark: SparkSession, numbers: Sequence[int] = range(1, 23)) -> dict[str, str]:
    """Return in what the answer to a query differs, or that it is empty; queries that are right are left out."""
    found: dict[str, str] = {}
    queries = list(tpch_queries(SCALE))
    for query in (queries[number - 1] for number in numbers):
        given = dict(query.parameters) or None
        ours = Answer.of_frame(pennon.spark.sql(spark, query.text, given))
        text = query.text.replace(f"{TPCH}.", "")
        theirs = Answer.of_frame(spark.sql(text, given))
        differs = difference(ours, theirs, ordered=is_ordered(query.text))
        if differs:
            found[query.name] = differs
        elif all(value is None for row in ours.rows for value in row):
            found[query.name] = "finds nothing"
    return found
