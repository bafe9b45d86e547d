"""Double quotes in conditions: text, or with `spark.sql.ansi.doubleQuotedIdentifiers` the name of a column."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

import pennon
import pennon.spark
from pennon.spark import LanceTable

IDENTIFIERS = "spark.sql.ansi.doubleQuotedIdentifiers"
ANSI = "spark.sql.ansi.enabled"


@pytest.fixture
def cities(spark: SparkSession, uri: str) -> LanceTable:
    """Texts that are also the name of a column."""
    pennon.write_dataset(
        pa.table({"s": ["a", "city", "x"], "city": ["a", "b", "x"], "n": [1, 2, 3]}), uri
    )
    return LanceTable.forPath(spark, uri)


@pytest.fixture
def identifiers(spark: SparkSession) -> Iterator[None]:
    """The session takes what is between double quotes for a name."""
    before = str(spark.conf.get(ANSI))
    spark.conf.set(ANSI, "true")
    spark.conf.set(IDENTIFIERS, "true")
    yield
    spark.conf.unset(IDENTIFIERS)
    spark.conf.set(ANSI, before)


@pytest.mark.usefixtures("identifiers")
def test_double_quotes_are_identifiers_if_the_session_enables_them(
    spark: SparkSession, cities: LanceTable
) -> None:
    condition = 's = "city"'
    assert cities.toDF().where(condition).count() == cities.count(condition) == 2
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        cities.delete('s = "a"')
    assert cities.count() == 3
    cities.update("n = 1", {"s": '"city"'})
    cities.update("n = 2", {"s": '"city"'})
    cities.update(set={"s": '"city"'})
    found = pennon.dataset(cities.uri).to_table().sort_by("n")
    assert found["s"].to_pylist() == ["a", "b", "x"]
    new = spark.createDataFrame([("p", "p", 9)], "s string, city string, n long")
    pennon.spark.write(new, cities.uri, "overwrite", where=condition)
    assert pennon.dataset(cities.uri).to_table()["n"].to_pylist() == [9]


def test_double_quotes_are_strings_by_default(cities: LanceTable) -> None:
    condition = 's = "city"'
    assert cities.toDF().where(condition).count() == cities.count(condition) == 1
    cities.update(condition, {"s": '"n"'})
    assert cities.count("s = 'n'") == 1
    cities.delete('s = "n"')
    assert cities.count() == 2


def test_data_source_refuses_double_quotes_in_conditions(
    spark: SparkSession, cities: LanceTable
) -> None:
    new = spark.createDataFrame([("a", "p", 9)], "s string, city string, n long")
    write = new.write.format("lance").mode("overwrite").option("replaceWhere", 's = "a"')
    with pytest.raises(PySparkException, match="needs Spark"):
        write.save(cities.uri)
    assert cities.count() == 3
