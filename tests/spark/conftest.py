"""One classic session for all tests of this folder: two cores, tasks tried three times."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import pennon
import pennon.spark
from pennon.spark import AttachedCatalog, LanceTable
from pennon.spark.session import DEFAULTS
from tests.spark.modes import CONF
from tests.spark.small_table import make

ROOT = Path(__file__).parents[2]
ITEMS = pa.table(
    {
        "id": pa.array(range(10), pa.int64()),
        "name": ["a", "b"] * 5,
        "size": pa.array([None, *range(1, 10)], pa.int32()),
        "part": [{"x": n, "y": str(n)} for n in range(10)],
    }
)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session whose workers can import the tests (`tests.spark.failing`)."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONWARNINGS"] = "ignore"
    places = [
        str(Path(__file__).with_name("python_start")),
        *os.environ.get("PYTHONPATH", "").split(os.pathsep),
    ]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, places))
    builder = SparkSession.builder.master("local[2,3]").appName("pennon tests")
    # The programs of `modes` run with Spark's own settings.
    quick = {"spark.python.daemon.module", "spark.python.unix.domain.socket.enabled"}
    more = {name: DEFAULTS[name] for name in quick}
    more["spark.executorEnv.PYTHONPATH"] = str(ROOT)
    # With 1 GB, Spark's default, the JVM of thousands of queries spent a third of its time on garbage.
    more["spark.driver.memory"] = "2g"
    for key, value in {**CONF, **more}.items():
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


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[AttachedCatalog]:
    """A catalog with the table ``items``, of two fragments and three versions (10, 11 and 10 rows)."""
    uri = tmp_path / "items.lance"
    pennon.write_dataset(ITEMS, uri, max_rows_per_file=5)
    pennon.write_dataset(ITEMS.slice(9), uri, mode="append")
    pennon.dataset(uri).delete("id = 0")
    made = pennon.spark.attach(spark, str(tmp_path))
    yield made
    made.detach()
    for each in spark.catalog.listTables():
        if each.isTemporary:
            spark.catalog.dropTempView(each.name)


@pytest.fixture
def ask(spark: SparkSession, lake: AttachedCatalog) -> Any:
    """Run a statement and return its rows as tuples."""

    def run(text: str, *args: Any, **options: Any) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in pennon.spark.sql(spark, text, *args, **options).collect()]

    return run
