"""The columns, conditions, limits and aggregates of SQL that go to the scan of a table, by ``explain=True``."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

import pennon
import pennon.spark


def plan(ask: Any, text: str, **values: Any) -> dict[str, str]:
    """Return what ``explain=True`` says of each part."""
    return {part: detail for part, _, detail in ask(text, explain=True, **values)}


# --- what is pushed ---------------------------------------------------------------------------------


def test_columns_filters_and_limits_go_to_the_scan(ask: Any) -> None:
    ask(
        "CREATE TABLE lake.times AS SELECT timestamp_seconds(1769800000 + 3600 * id) AS at FROM range(60)"
    )
    found = plan(ask, "SELECT id, part.x FROM items WHERE size > 3 AND upper(name) = 'A'")
    assert found["table lake.items"] == "version 3; columns id, name, size, part.x; filter size > 3"
    found = plan(ask, "SELECT id + 1 FROM items WHERE 4 < Size LIMIT 2 OFFSET 1")
    assert found["table lake.items"] == "version 3; columns id, size; filter 4 < Size; limit 3"
    found = plan(ask, "SELECT id FROM items WHERE name = :n", n="it's")
    assert found["table lake.items"].endswith("filter name = CAST(X'69742773' AS STRING)")
    found = plan(
        ask,
        "SELECT at FROM (SELECT at FROM times WHERE at >= '2026-01-31' AND at < TIMESTAMP '2026-02-01 12:00:00+01:00')",
    )
    assert found["table lake.times"].endswith(
        "filter at >= '2026-01-31' AND at < CAST('2026-02-01 12:00:00+01:00' AS TIMESTAMP)"
    )
    found = plan(ask, "SELECT * FROM items WHERE name LIKE 'a%'")
    assert found["table lake.items"] == "version 3; all columns; filter name LIKE 'a%'"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM items ORDER BY id LIMIT 2",
        "SELECT DISTINCT name FROM items LIMIT 2",
        "SELECT explode(array(1, 2)) FROM items LIMIT 2",
        "SELECT id FROM items WHERE rand() < 2 LIMIT 2",
        "SELECT id FROM items TABLESAMPLE (100 PERCENT) WHERE id > 1",
        "SELECT a.id FROM items b RIGHT JOIN items a ON a.id = b.id WHERE b.size IS NULL",
        "SELECT a.id FROM items a FULL JOIN items b ON a.id = b.id AND a.id > 1 WHERE b.size = 1",
        "SELECT id FROM items WHERE size = 1 OR rand() > 2",
    ],
)
def test_filters_and_limits_that_would_change_rows_stay_in_spark(ask: Any, text: str) -> None:
    found = plan(ask, text)["table lake.items"]
    assert "filter" not in found
    assert "limit" not in found


def test_each_table_of_joins_and_subqueries_has_its_own_columns_and_filters(ask: Any) -> None:
    lines = ask(
        "SELECT a.name FROM items a LEFT JOIN items b ON a.id = b.id AND b.size = 2 "
        "WHERE a.id > 4 AND EXISTS (SELECT 1 FROM items c WHERE c.id = a.id AND c.size < 9)",
        explain=True,
    )
    assert [detail.partition("; ")[2] for part, _, detail in lines if part.startswith("table")] == [
        "columns id, name; filter a.id > 4",
        "columns id, size; filter b.size = 2",
        "columns id, size; filter c.size < 9",
    ]


def test_columns_beside_columns_constants_and_alternatives_go_to_the_scan(ask: Any) -> None:
    found = plan(ask, "SELECT name FROM items WHERE id > size + 0 OR id < 3")
    assert "filter" not in found["table lake.items"]
    found = plan(ask, "SELECT name FROM items WHERE size < 3 + 4 AND size <> id")
    assert found["table lake.items"].endswith("filter size < 3 + 4")  # an int beside a bigint
    found = plan(
        ask,
        "SELECT i.name FROM items i JOIN items j ON i.id = j.id WHERE i.id < j.id OR i.id = j.size",
    )
    assert "filter" not in found["table lake.items"]
    text = "SELECT i.id FROM items i, items j WHERE (i.id = j.id AND i.name = 'a') OR (i.name = 'b' AND j.size = 1)"
    lines = ask(text, explain=True)
    assert [
        detail.partition("; filter ")[2][:17] for part, _, detail in lines if "table" in part
    ] == [
        "what follows from",
        "",
    ]
    assert len(ask(text)) == 5 + 5
    ask("CREATE TABLE lake.pairs AS SELECT id AS a, 9 - id AS b FROM range(10)")
    found = plan(ask, "SELECT count(*) AS n FROM pairs WHERE a < b HAVING n > 0")
    assert found["table lake.pairs"] == "version 1; partial aggregates; filter a < b"
    assert ask("SELECT count(*) AS n FROM pairs WHERE a <> b AND NOT a > b HAVING n > 0") == [(5,)]


def test_exists_reads_no_column_that_it_does_not_test(ask: Any) -> None:
    text = "SELECT i.id FROM items i WHERE EXISTS (SELECT * FROM items j WHERE j.size = i.id)"
    details = [detail for part, _, detail in ask(text, explain=True) if part.startswith("table")]
    assert details == ["version 3; columns id", "version 3; columns size"]


def test_aggregates_of_one_table_are_made_where_it_is_read(ask: Any) -> None:
    text = (
        "SELECT name AS n, count(*), max(size) AS m, sum(id) FROM items WHERE id > 2 GROUP BY name"
    )
    assert plan(ask, text)["aggregates"] == "the tasks that read the table aggregate"
    assert sorted(ask(text)) == [("a", 3, 8, 18), ("b", 5, 9, 33)]
    assert ask("SELECT count(*) FROM items") == [(10,)]
    found = plan(ask, "SELECT count(DISTINCT name) FROM items")
    assert found["table lake.items"] == "version 3; partial aggregates by name"


def test_columns_of_rows_stand_beside_all_columns(spark: SparkSession, ask: Any) -> None:
    frame = pennon.spark.sql(spark, "SELECT *, _rowid, _fragid FROM items WHERE id = 7")
    assert frame.columns == ["id", "name", "size", "part", "_rowid", "_fragid"]
    assert [row[4:] for row in frame.collect()] == [((1 << 32) + 2, 1)]
    assert ask("SELECT _rowaddr FROM items WHERE id = 5") == [(1 << 32,)]


def test_views_of_a_query_are_gone_when_it_is_analysed(spark: SparkSession, ask: Any) -> None:
    frame = pennon.spark.sql(spark, "SELECT i.id FROM items i JOIN items j ON i.id = j.id")
    ask("DELETE FROM items WHERE id IN (SELECT id FROM items WHERE size = 2)")
    assert spark.catalog.listTables() == []
    assert frame.where("id > 0").count() == 12  # the version that it was analysed for


def test_statement_that_sqlglot_cannot_parse_reads_tables_whole(ask: Any) -> None:
    text = "SELECT q.id, d.id FROM items q INNER JOIN lake.items d APPROX NEAREST 1 BY DISTANCE abs(q.id - d.id)"
    assert plan(ask, text)["table lake.items"] == "version 3; all columns"
    assert len(ask(text)) == 10
    assert ask("FROM items |> WHERE id = 3 |> SELECT name") == [("b",)]
    assert len(ask("TABLE items")) == 10
    assert ask("SELECT count(*) FROM (TABLE lake.items) t") == [(10,)]


def test_braces_and_names_of_tables_in_texts_stay(ask: Any) -> None:
    assert ask("SELECT '{items} lake.items' AS c, id FROM items WHERE id = 1") == [
        ("{items} lake.items", 1)
    ]


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ("id, name", ["id", "name"]),
        ("name, id", ["name", "id"]),
        ("ID, i.Name", ["ID", "Name"]),
        ("`size`, id, size", ["size", "id", "size"]),
    ],
)
def test_columns_of_one_table_are_the_rows_of_its_scan(
    ask: Any, spark: SparkSession, columns: str, names: list[str]
) -> None:
    text = f"SELECT {columns} FROM items AS i WHERE i.id > 2 AND id < 9"
    rows = pennon.spark.sql(spark, text)
    wanted = pennon.spark.sql(spark, f"{text} AND rand() >= 0")
    assert rows.columns == wanted.columns == names
    assert rows.schema == wanted.schema
    assert sorted(rows.collect()) == sorted(wanted.collect())
    assert plan(ask, text)["statement"] == "the rows are the result"
    assert plan(ask, f"{text} AND rand() >= 0")["statement"].startswith("SELECT")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT DISTINCT id FROM items",
        "SELECT id AS n FROM items",
        "SELECT id FROM items LIMIT 3",
        "SELECT id FROM items ORDER BY id",
        "SELECT id FROM items TABLESAMPLE (100 PERCENT)",
        "SELECT part.x FROM items",
        "SELECT id FROM items WHERE rand() < 2",
        "SELECT id, _rowid FROM items",
        "SELECT n FROM items AS i(n, b, c, d)",
        "SELECT id FROM items UNION ALL SELECT id FROM items",
        "SELECT id FROM items, (SELECT 1)",
        "SELECT id FROM (SELECT id FROM items)",
        "SELECT *, id FROM items",
    ],
)
def test_more_than_columns_of_one_table_is_left_to_spark(ask: Any, text: str) -> None:
    assert plan(ask, text)["statement"].startswith("SELECT")
    assert ask(text)


@pytest.mark.parametrize(
    ("join", "filters"),
    [
        ("SEMI JOIN", ["i.id > 2", "j.size = 4"]),
        ("LEFT SEMI JOIN", ["i.id > 2", "j.size = 4"]),
        ("ANTI JOIN", ["", "j.size = 4"]),
        ("LEFT ANTI JOIN", ["", "j.size = 4"]),
    ],
)
def test_filters_of_semi_and_anti_joins_go_to_the_tables_that_lose_rows(
    ask: Any, join: str, filters: list[str]
) -> None:
    text = f"SELECT i.id FROM items i {join} items j ON i.id = j.size AND i.id > 2 AND j.size = 4"
    details = [detail for part, _, detail in ask(text, explain=True) if part.startswith("table")]
    assert [detail.partition("filter ")[2] for detail in details] == filters
    found = {4} if "SEMI" in join else {1, 2, 3, 5, 6, 7, 8, 9}
    assert {row[0] for row in ask(text)} == found
