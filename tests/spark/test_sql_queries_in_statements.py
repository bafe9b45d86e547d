"""Each kind of query in each kind of statement gives the rows that it gives alone.

Some queries are answered by the scan of a table, others by views and Spark; a statement around them may be Spark's or ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import pennon
import pennon.spark

QUERIES = {
    "count": "SELECT count(*) AS a, 7L AS b FROM items",
    "count alone": "SELECT count(*) AS a, max(id) AS b FROM items",
    "statistics": "SELECT min(id) AS a, max(id) AS b FROM items WHERE id > 3",
    "columns": "SELECT id AS a, size AS b FROM items",
    "columns as they are": "SELECT a, b FROM pairs",
    "columns turned round": "SELECT b, a FROM pairs WHERE a > 2",
    "all columns": "SELECT * FROM pairs",
    "groups": "SELECT part AS a, sum(size) AS b FROM items GROUP BY part",
    "groups and having": "SELECT part AS a, count(*) AS b FROM items GROUP BY part HAVING count(*) > 2",
    "distinct": "SELECT DISTINCT part AS a, 1L AS b FROM items",
    "first rows": "SELECT a, b FROM pairs ORDER BY a LIMIT 3",
    "none": "SELECT a, b FROM pairs WHERE a > 1000",
    "join": "SELECT i.id AS a, p.b FROM items i JOIN pairs p ON i.id = p.a WHERE p.b > 20",
    "exists": "SELECT id AS a, size AS b FROM items WHERE EXISTS (SELECT 1 FROM pairs WHERE a = id AND b > 40)",
    "scalar": "SELECT id AS a, (SELECT max(b) FROM pairs) AS b FROM items WHERE id = (SELECT max(id) FROM items)",
    "both": "SELECT a, b FROM pairs WHERE a < 2 UNION ALL SELECT count(*), max(id) FROM items",
    "old version": "SELECT count(*) AS a, max(id) AS b FROM items VERSION AS OF 1",
    "common": "WITH c AS (SELECT count(*) AS n FROM items) SELECT n AS a, n AS b FROM c",
}
STATEMENTS = {
    "in FROM": (["SELECT * FROM ({query})"], "{last}"),
    "in WITH": (["WITH q AS ({query}) SELECT * FROM q"], "{last}"),
    "temporary view": (["CREATE OR REPLACE TEMPORARY VIEW seen AS {query}"], "SELECT * FROM seen"),
    "cached": (["CACHE TABLE kept AS {query}"], "SELECT * FROM kept"),
    "cached when it is read": (
        ["CACHE LAZY TABLE kept OPTIONS ('storageLevel' = 'MEMORY_ONLY') AS {query}"],
        "SELECT * FROM kept",
    ),
    "into a folder": (
        ["INSERT OVERWRITE DIRECTORY '{home}/out' USING parquet {query}"],
        "SELECT * FROM parquet.`{home}/out`",
    ),
    "new table of Spark": (
        ["CREATE TABLE of_spark USING parquet LOCATION '{home}/of_spark' AS {query}"],
        "SELECT * FROM of_spark",
    ),
    "into a table of Spark": (
        [
            "CREATE TABLE of_spark (a BIGINT, b BIGINT) USING parquet LOCATION '{home}/of_spark'",
            "INSERT INTO of_spark {query}",
        ],
        "SELECT * FROM of_spark",
    ),
    "new table": (["CREATE TABLE lake.made AS {query}"], "SELECT * FROM made"),
    "over a table": (["INSERT OVERWRITE held {query}"], "SELECT * FROM held"),
    "into a table": (["INSERT INTO held {query}"], "SELECT * FROM held"),
    "by name": (["INSERT INTO held BY NAME {query}"], "SELECT * FROM held"),
    "merged": (
        [
            "MERGE INTO held h USING ({query}) s ON h.a = s.a AND h.b = s.b WHEN NOT MATCHED THEN INSERT *"
        ],
        "SELECT * FROM held",
    ),
}
"""Statements around a query, and what then has its rows: a query, or the last statement itself."""
ADDS = ("into a table", "by name", "merged")
"""Those that leave the row of ``held`` where it is."""


@pytest.fixture
def home(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """A catalog of items (of two versions), pairs, and an empty table of the answers' columns."""
    lake = tmp_path / "lake"
    rows = range(12)
    items = {"id": rows, "part": [n % 3 for n in rows], "size": [n * 7 % 5 for n in rows]}
    numbers = {"a": rows, "b": [5 * n for n in rows]}
    for name, table in (("items", items), ("pairs", numbers), ("held", {"a": [-1], "b": [-1]})):
        columns = {key: pa.array(values, pa.int64()) for key, values in table.items()}
        pennon.write_dataset(pa.table(columns), lake / f"{name}.lance", max_rows_per_file=5)
    pennon.dataset(lake / "items.lance").delete("id = 5")
    made = pennon.spark.attach(spark, str(lake))
    yield tmp_path
    made.detach()
    for statement in (
        "DROP TABLE IF EXISTS of_spark",
        "DROP VIEW IF EXISTS seen",
        "DROP VIEW IF EXISTS kept",
    ):
        spark.sql(statement)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("statement", STATEMENTS)
def test_query_in_a_statement_gives_its_rows(
    spark: SparkSession, home: Path, statement: str, query: str
) -> None:
    text = QUERIES[query]
    statements, answer = STATEMENTS[statement]
    spark.conf.set("spark.pennon.sql.pushDown", "false")
    try:
        wanted = rows_of(pennon.spark.sql(spark, text))
    finally:
        spark.conf.unset("spark.pennon.sql.pushDown")
    assert rows_of(pennon.spark.sql(spark, text)) == wanted
    if statement in ("by name", "merged") and query == "columns turned round":
        wanted = Counter({row[::-1]: count for row, count in wanted.items()})
    for each in statements:
        last = pennon.spark.sql(spark, each.format(query=text, home=home))
    found = last if answer == "{last}" else pennon.spark.sql(spark, answer.format(home=home))
    assert rows_of(found) == wanted + Counter({(-1, -1): 1} if statement in ADDS else {})


def rows_of(frame: DataFrame) -> Counter[tuple[Any, ...]]:
    """Return how often each row is there."""
    return Counter(tuple(row) for row in frame.collect())
