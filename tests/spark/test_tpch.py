"""The 22 queries of TPC-H by `pennon.spark.sql`, see `tests.spark.tpch`."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.tpch import faults, tables


@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param([1, 13, 16, 22], id="aggregates, outer join, NOT LIKE, NOT EXISTS"),
        pytest.param(range(1, 23), id="all", marks=pytest.mark.slow),
    ],
)
def test_tpch_queries_of_lance_tables_equal_those_of_spark_views(
    spark: SparkSession, tmp_path: Path, numbers: list[int]
) -> None:
    with tables(spark, tmp_path):
        assert faults(spark, numbers) == {}
