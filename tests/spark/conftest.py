"""One classic session for all tests of this folder: two cores, tasks tried three times."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from pennon.spark import LanceTable
from tests.spark.modes import CONF
from tests.spark.small_table import make

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session whose workers can import the tests (`tests.spark.failing`)."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONWARNINGS"] = "ignore"
    builder = SparkSession.builder.master("local[2,3]").appName("pennon tests")
    for key, value in {**CONF, "spark.executorEnv.PYTHONPATH": str(ROOT)}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Where a test's table goes."""
    return str(tmp_path / "table.lance")


@pytest.fixture
def table(spark: SparkSession, uri: str) -> LanceTable:
    """A table of two fragments."""
    make(uri)
    return LanceTable.forPath(spark, uri)


@pytest.fixture
def source(spark: SparkSession) -> DataFrame:
    """Rows that match some of the table, and others."""
    return spark.createDataFrame([("a", -1), ("b", 0), ("e", -5), ("f", -6)], "k string, v bigint")
