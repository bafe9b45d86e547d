"""The 22 queries of TPC-H by `pennon.spark.sql` over Lance, beside Spark's own over the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from sql_rows import difference, is_ordered
from sql_tables import TPCH, tpch_queries
from tpch_tables import TABLES, make_tables

import pennon
import pennon.spark

SCALE = 0.002
"""Some 12,000 line items: no query's answer is empty."""


def without_catalog(text: str) -> str:
    """Return a query over Spark's temporary views, which have no database."""
    return text.replace(f"{TPCH}.", "")


@pytest.fixture
def run(
    spark: SparkSession, tmp_path: Path
) -> Iterator[Callable[[str, dict], tuple[pa.Table, pa.Table]]]:
    """The tables in Lance as a catalog, in Spark as views; gives the answers of both to a query."""
    parts: dict[str, list[pa.Table]] = {}
    for name, rows in make_tables(SCALE):
        parts.setdefault(name, []).append(rows)
    assert list(parts) == list(TABLES)
    places = {}
    for name, rows in parts.items():
        table = pa.concat_tables(rows)
        places[name] = str(tmp_path / f"{name}.lance")
        pennon.write_dataset(table, places[name], max_rows_per_file=5000)
        spark.createDataFrame(table).createOrReplaceTempView(name)
    catalog = pennon.spark.attach(spark, places, name=TPCH, views=False)

    def answers(text: str, parameters: dict) -> tuple[pa.Table, pa.Table]:
        given = parameters or None
        ours = pennon.spark.sql(spark, text, given)
        return ours.toArrow(), spark.sql(without_catalog(text), given).toArrow()

    yield answers
    catalog.detach()
    for name in TABLES:
        spark.catalog.dropTempView(name)


def test_tpch_queries_of_lance_tables_equal_those_of_spark_views(
    run: Callable[[str, dict], tuple[pa.Table, pa.Table]],
) -> None:
    for query in tpch_queries(SCALE):
        ours, theirs = run(query.text, dict(query.parameters))
        differs = difference(ours, theirs, ordered=is_ordered(query.text))
        assert not differs, f"{query.name}: {differs}"
        values = [value for row in ours.to_pylist() for value in row.values()]
        assert any(value is not None for value in values), f"{query.name} finds nothing"
