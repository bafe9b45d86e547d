"""The 22 queries of TPC-H by `pennon.spark.sql`, see `tests.spark.tpch`."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tests.spark.tpch import faults, tables


def test_tpch_queries_of_lance_tables_equal_those_of_spark_views(
    spark: SparkSession, tmp_path: Path
) -> None:
    with tables(spark, tmp_path):
        assert faults(spark) == {}
