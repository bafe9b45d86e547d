"""Random SELECTs over Lance tables give the rows that Spark gives over the same rows in memory, pushed down or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import pennon
import pennon.spark
from tests.spark.random_joins import TABLES, RandomJoin, table_of
from tests.spark.random_sql import RandomQuery, table_t, table_u

NAMES = {"t": "lake.t", "t_": "lake.t", "u": "u", "u_": "lake.u"}
IN_MEMORY = {"t": "memory_t t", "t_": "memory_t", "u": "memory_u u", "u_": "memory_u"}
PUSH_DOWN = "spark.pennon.sql.pushDown"


@pytest.fixture(scope="module")
def lake(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[pennon.spark.AttachedCatalog]:
    """Two tables of several fragments, and the same rows as views of Spark; versions 1 and 2 have the same rows."""
    folder = tmp_path_factory.mktemp("lake")
    for name, rows in [("t", table_t(7)), ("u", table_u(7))]:
        pennon.write_dataset(rows, folder / f"{name}.lance", max_rows_per_file=25)
        pennon.dataset(folder / f"{name}.lance").update_config({"a": "b"})
        spark.createDataFrame(rows).createOrReplaceTempView(f"memory_{name}")
    made = pennon.spark.attach(spark, str(folder))
    yield made
    made.detach()
    for name in "tu":
        spark.catalog.dropTempView(f"memory_{name}")


@pytest.fixture
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Spark interprets each query: there are many, each runs once, and to compile one takes longer."""
    own = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    for name, value in own.items():
        spark.conf.set(name, value)
    yield
    for name in own:
        spark.conf.unset(name)


def rows_of(frame: DataFrame) -> Counter[str]:
    return Counter(map(repr, frame.collect()))


def outcome(run: Any) -> Counter[str] | str:
    """Return the rows, or the class of the error that Spark raises."""
    try:
        return rows_of(run())
    except PySparkException as error:
        return str(error.getCondition())


def check(spark: SparkSession, seed: int) -> str:
    """Compare the rows of a query; return how Spark was told the filters."""
    query = RandomQuery(seed)
    text = query.text.format(**NAMES)
    memory = query.text.replace(" VERSION AS OF 1", "").format(**IN_MEMORY)
    wanted = outcome(lambda: spark.sql(memory, query.values))
    for pushes in ["true"] if seed % 4 else ["true", "false"]:
        spark.conf.set(PUSH_DOWN, pushes)
        found = outcome(lambda: pennon.spark.sql(spark, text, query.values or None))
        if query.limit is None or isinstance(wanted, str) or isinstance(found, str):
            assert found == wanted, f"seed {seed}, push-down {pushes}: {text} {query.values}"
            continue
        every = outcome(lambda: spark.sql(memory.rpartition(" LIMIT ")[0], query.values))
        assert found.total() == wanted.total(), (
            f"seed {seed}, push-down {pushes}: {text} {query.values}"
        )
        assert isinstance(every, Counter)
        assert not found - every, f"seed {seed}, push-down {pushes}: {text} {query.values}"
    spark.conf.unset(PUSH_DOWN)
    return text


@pytest.mark.usefixtures("lake")
def test_random_selects_give_the_rows_of_spark(spark: SparkSession) -> None:
    for seed in range(12):
        check(spark, seed)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("lake", "interpreted")
@pytest.mark.parametrize("begin", range(0, 2000, 500))
def test_two_thousand_random_selects_give_the_rows_of_spark(
    spark: SparkSession, begin: int
) -> None:
    for seed in range(begin, begin + 500):
        check(spark, seed)


# --- joins and subqueries whose tables limit each other ---------------------------------------------


@pytest.fixture(scope="module")
def linked(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Three tables of a thousand rows and more, deleted ones among them, and the same rows as views of Spark."""
    folder = tmp_path_factory.mktemp("linked")
    for name in TABLES:
        rows = table_of(name)
        path = folder / f"{name}.lance"
        pennon.write_dataset(rows.slice(0, 8), path)
        pennon.dataset(path).delete(f"{name}_row < 8")
        pennon.write_dataset(rows, path, mode="append", max_rows_per_file=700)
        spark.createDataFrame(rows).createOrReplaceTempView(f"memory_{name}")
    made = pennon.spark.attach(spark, str(folder), name="linked")
    yield
    made.detach()
    for name in TABLES:
        spark.catalog.dropTempView(f"memory_{name}")


def check_join(spark: SparkSession, seed: int) -> bool:
    """Compare the rows of a query with push-down and without; return whether keys limited a table."""
    text = RandomJoin(seed).text
    own = text.format(**{name: f"linked.{name}" for name in TABLES})
    wanted = outcome(lambda: spark.sql(text.format(**{name: f"memory_{name}" for name in TABLES})))
    for pushes in ["true"] if seed % 5 else ["true", "false"]:
        spark.conf.set(PUSH_DOWN, pushes)
        found = outcome(lambda: pennon.spark.sql(spark, own))
        assert found == wanted, f"seed {seed}, push-down {pushes}: {own}"
    spark.conf.unset(PUSH_DOWN)
    notes = pennon.spark.sql(spark, own, explain=True).collect()
    return any(" keys of " in note.detail for note in notes)


@pytest.mark.usefixtures("linked")
def test_random_joins_limited_by_keys_give_the_rows_of_spark(spark: SparkSession) -> None:
    assert sum(check_join(spark, seed) for seed in range(12)) > 3


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("linked", "interpreted")
@pytest.mark.parametrize("begin", range(0, 800, 200))
def test_hundreds_of_random_joins_give_the_rows_of_spark(spark: SparkSession, begin: int) -> None:
    for seed in range(begin, begin + 200):
        check_join(spark, seed)
