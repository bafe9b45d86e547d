"""One session for all tests of this folder, in Spark 4.0 or 3.5; `tests/spark` has many more, for the newest Spark."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession

from pennon.spark import LanceTable, write

RELEASE = tuple(map(int, pyspark.__version__.split(".")[:2]))
collect_ignore_glob = ["test_*.py"] if RELEASE > (4, 0) else []
CONF = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session of two cores."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("pennon tests")
    for key, value in CONF.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    """A hundred rows of all kinds of types."""
    return spark.range(0, 100, 1, 2).selectExpr(
        "id",
        "id * 2 AS n",
        "concat('name ', id) AS name",
        "array(float(id), float(id % 7)) AS vector",
        "timestamp_seconds(id) AS moment",
        "CAST(timestamp_seconds(id) AS TIMESTAMP_NTZ) AS local_moment",
        "date_add(DATE '2026-01-01', CAST(id AS INT)) AS day",
        "CAST(id AS DECIMAL(10, 2)) AS price",
        "named_struct('a', id, 'b', array('x', 'y')) AS part",
        "map('k', id) AS pairs",
        "CAST('x' AS BINARY) AS bytes",
        "make_dt_interval(CAST(id AS INT)) AS span",
    )


@pytest.fixture
def uri(rows: DataFrame, tmp_path: Path) -> str:
    """Where a table of the rows is."""
    path = str(tmp_path / "table.lance")
    write(rows, path, fixed_size_list={"vector": 2})
    return path


@pytest.fixture
def table(spark: SparkSession, uri: str) -> LanceTable:
    """The table of the rows, in two fragments."""
    return LanceTable.forPath(spark, uri)
