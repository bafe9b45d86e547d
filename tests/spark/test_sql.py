"""`pennon.spark.attach` and names, versions and statements of Spark in `pennon.spark.sql`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import pennon
import pennon.spark
from pennon.catalog import NamedTables
from pennon.errors import (
    ArgumentError,
    NotFoundError,
    UnsupportedError,
)
from pennon.spark import AttachedCatalog, LanceTable
from pennon.spark.statements.magic import load_ipython_extension, run_cell

# --- names ----------------------------------------------------------------------------------------


def test_sql_table_names_with_catalog_without_it_in_other_case_and_as_path(
    ask: Any, tmp_path: Path
) -> None:
    for name in (
        "lake.items",
        "items",
        "LAKE.ITEMS",
        "lake.default.items",
        f"lance.`{tmp_path}/items.lance`",
    ):
        assert ask(f"SELECT count(*) FROM {name}") == [(10,)]


def test_name_that_the_catalog_lacks_is_refused_with_the_nearest(ask: Any) -> None:
    for text in ("SELECT * FROM lake.item", "DELETE FROM lake.item", "OPTIMIZE lake.item"):
        with pytest.raises(NotFoundError, match=r"lake has no table item; did you mean 'items'"):
            ask(text)


def test_name_that_no_catalog_has_is_one_of_spark(spark: SparkSession, ask: Any) -> None:
    spark.range(3).createOrReplaceTempView("numbers")
    assert ask("SELECT count(*) FROM numbers WHERE id > :least", least=0) == [(2,)]
    assert ask("SELECT count(*) FROM numbers JOIN items USING (id)") == [(2,)]
    with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
        ask("SELECT * FROM nothing")


def test_common_table_expression_hides_the_table_of_its_name(ask: Any) -> None:
    assert ask("WITH items AS (SELECT 1 AS one) SELECT * FROM items") == [(1,)]
    assert ask("WITH items AS (SELECT max(id) AS m FROM items) SELECT m FROM items") == [(9,)]


def test_columns_qualified_by_alias_table_and_catalog(ask: Any) -> None:
    assert ask("SELECT i.id FROM lake.items i WHERE i.id = 3") == [(3,)]
    assert ask("SELECT lake.items.part.y, items.id FROM items WHERE lake.items.id = 3") == [
        ("3", 3)
    ]
    assert ask("SELECT lake.items.* FROM lake.items WHERE items.id = 3")[0][:2] == (3, "b")


def test_use_chooses_catalog_and_namespace(spark: SparkSession, ask: Any) -> None:
    ask("CREATE NAMESPACE lake.train")
    ask("USE lake.train")
    ask("CREATE TABLE images AS SELECT 1 AS id")
    assert ask("SHOW TABLES") == [("train", "images", False)]
    assert ask("SELECT * FROM images") == ask("SELECT * FROM lake.train.images") == [(1,)]
    with pytest.raises(NotFoundError):
        ask("USE lake.nowhere")
    ask("USE default")
    assert ("train", "images", False) not in ask("SHOW TABLES")


def test_attached_dict_and_catalog_with_options_that_no_text_shows(
    spark: SparkSession, tmp_path: Path, lake: AttachedCatalog
) -> None:
    uri = str(tmp_path / "items.lance")
    named = pennon.spark.attach(spark, {"a.b": uri}, "named")
    secret = NamedTables({"b": uri}, {"token": "hidden"})
    other = pennon.spark.attach(spark, secret, "other")
    assert pennon.spark.sql(spark, "SELECT count(*) FROM named.a.b").first() == (10,)
    assert named.tables() == ["a.b"]
    assert "hidden" not in repr(other) + repr(named)
    with pytest.raises(ArgumentError, match="storage_options"):
        pennon.spark.attach(spark, secret, storage_options={"token": "x"})
    for name in ("no name", "a.b", ""):
        with pytest.raises(ArgumentError, match="name of a catalog"):
            pennon.spark.attach(spark, uri, name)
    named.detach()
    other.detach()


def test_attached_catalog_gives_tables_frames_and_views(
    spark: SparkSession, lake: AttachedCatalog
) -> None:
    assert (lake.name, lake.tables("it*"), lake.tables("x*")) == ("lake", ["items"], [])
    assert isinstance(lake.table("items"), LanceTable)
    assert lake.toDF(["items"]).count() == 10
    assert lake.views() == ["items"]
    assert spark.sql("SELECT count(*) FROM items").first() == (10,)
    assert lake.view("items", "other name") == "other name"
    assert spark.table("`other name`").count() == 10


def test_pinned_catalog_stays_at_the_version_of_first_use(
    spark: SparkSession, lake: AttachedCatalog
) -> None:
    pinned = pennon.spark.attach(spark, lake.catalog, "pinned", fresh=False, views=False)
    count = "SELECT count(*) FROM pinned.items"
    assert pennon.spark.sql(spark, count).first() == (10,)
    lake.table("items").delete("id > 5")
    assert pennon.spark.sql(spark, count).first() == (10,)
    assert pennon.spark.sql(spark, "SELECT count(*) FROM lake.items").first() == (5,)
    assert pinned.toDF("items").count() == 10
    pinned.detach()


def test_ten_thousand_tables_are_attached_without_being_opened(
    spark: SparkSession, tmp_path: Path
) -> None:
    names = {f"t{n}": str(tmp_path / f"nowhere{n}.lance") for n in range(10_000)}
    lake = pennon.spark.attach(spark, names, "many")
    assert len(lake.tables()) == 10_000
    with pytest.raises(NotFoundError):
        pennon.spark.sql(spark, "SELECT * FROM many.t1")
    lake.detach()


# --- versions -------------------------------------------------------------------------------------


def test_versions_by_number_time_tag_and_branch(ask: Any, lake: AttachedCatalog) -> None:
    table = lake.table("items")
    made = table.history().where("version = 2").first().timestamp.isoformat()
    ask("ALTER TABLE items CREATE TAG `first-one` AS OF VERSION 1")
    ask("ALTER TABLE items CREATE BRANCH side AS OF VERSION 1")
    ask("DELETE FROM items@side WHERE id > 2")
    for name, rows in [
        ("items VERSION AS OF 1", 10),
        ("items FOR VERSION AS OF 2", 11),
        ("items VERSION AS OF 'first-one'", 10),
        (f"items TIMESTAMP AS OF '{made}'", 11),
        ("items TIMESTAMP AS OF current_timestamp()", 10),
        ("items@first-one", 10),
        ("items@`first-one`", 10),
        ("items@side", 3),
        ("items@v2", 11),
        ("items.branch_side", 3),
        ("items", 10),
    ]:
        assert ask(f"SELECT count(*) FROM {name}") == [(rows,)], name
        assert ask(
            f"SELECT count(*) FROM {name} AS t JOIN items u ON t.id = u.id AND t.id < 0"
        ) == [(0,)]
    assert ask("SELECT count(*) FROM items VERSION AS OF :v", v=2) == [(11,)]
    assert ask("SELECT a.id FROM items@v1 a LEFT ANTI JOIN items b ON a.id = b.id") == [(0,)]


def test_versions_that_are_not_there_are_refused(ask: Any) -> None:
    with pytest.raises(NotFoundError, match="no tag and no branch 'nothing'"):
        ask("SELECT * FROM items@nothing")
    with pytest.raises(NotFoundError):
        ask("SELECT * FROM items VERSION AS OF 99")
    ask("ALTER TABLE items CREATE TAG one")
    with pytest.raises(ArgumentError, match="tag"):
        ask("DELETE FROM items@one")


# --- what goes to Spark, and what is refused --------------------------------------------------------------


def test_statements_of_spark_take_rows_of_lance_tables(
    spark: SparkSession, ask: Any, tmp_path: Path
) -> None:
    ask(
        f"INSERT OVERWRITE DIRECTORY '{tmp_path}/out' USING parquet SELECT id FROM items WHERE id > 7"
    )
    assert spark.read.parquet(str(tmp_path / "out")).count() == 3
    ask(
        f"CREATE TABLE of_spark USING parquet LOCATION '{tmp_path}/spark' AS SELECT id FROM lake.items"
    )
    ask("INSERT INTO of_spark SELECT id FROM items WHERE id = 1")
    assert ask("SELECT count(*) FROM of_spark") == [(11,)]
    ask("DROP TABLE of_spark")
    assert "LocalTableScan" in ask("EXPLAIN SELECT id FROM items WHERE id = 5")[0][0]
    assert ask("EXPLAIN DELETE FROM items WHERE id = 5") == [
        ("DELETE", "lake.items", "delete('id = 5')")
    ]
    assert ask("SELECT count(*) FROM items WHERE id = 5") == [(1,)]
    assert ask("SET spark.sql.shuffle.partitions")[0][0] == "spark.sql.shuffle.partitions"


@pytest.mark.parametrize("query", ["SELECT count(*) AS n FROM items", "SELECT id AS n FROM items"])
def test_statements_of_spark_take_aggregates_of_lance_tables(
    spark: SparkSession, ask: Any, tmp_path: Path, query: str
) -> None:
    """An answer that a scan gives by itself is written, too."""
    wanted = sorted(ask(query))
    ask(f"INSERT OVERWRITE DIRECTORY '{tmp_path}/out' USING parquet {query}")
    assert sorted(map(tuple, spark.read.parquet(str(tmp_path / "out")).collect())) == wanted
    ask(f"CREATE TABLE of_spark USING parquet LOCATION '{tmp_path}/spark' AS {query}")
    ask(f"INSERT INTO of_spark {query}")
    assert sorted(ask("SELECT n FROM of_spark")) == sorted([*wanted, *wanted])
    ask("DROP TABLE of_spark")
    ask(f"CREATE TABLE lake.made AS {query}")
    ask(f"INSERT INTO lake.made {query}")
    assert sorted(ask("SELECT n FROM lake.made")) == sorted([*wanted, *wanted])
    assert "Plan" in ask(f"EXPLAIN {query}")[0][0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("CREATE VIEW kept AS SELECT * FROM items", "make a TEMPORARY VIEW"),
        ("CACHE TABLE lake.items", "CACHE TABLE a AS SELECT"),
        (
            "EXECUTE IMMEDIATE 'SELECT max(id) FROM lake.items'",
            "does not know the Lance table lake.items",
        ),
        (
            "CREATE TEMPORARY FUNCTION f() RETURNS BIGINT RETURN (SELECT max(id) FROM lake.items)",
            "make a TEMPORARY VIEW",
        ),
        ("BEGIN SELECT 1; SELECT count(*) FROM lake.items; END", "run the query by itself"),
        ("ANALYZE TABLE lake.items COMPUTE STATISTICS", "of which this statement knows nothing"),
        (
            "FROM items INSERT INTO lake.items SELECT * INSERT INTO lake.items SELECT *",
            "several INSERTs",
        ),
        ("WITH c AS (SELECT 1) DELETE FROM lake.items WHERE id = 1", "stand in subqueries"),
    ],
)
def test_statement_that_mixes_is_refused_by_name_and_reason(
    ask: Any, text: str, reason: str
) -> None:
    with pytest.raises(UnsupportedError, match=reason) as found:
        ask(text)
    assert text[:20] in str(found.value)
    assert ask("SELECT count(*) FROM items") == [(10,)]


def test_cached_query_stays_as_the_table_changes(spark: SparkSession, ask: Any) -> None:
    ask("CACHE TABLE kept AS SELECT id FROM items WHERE id < 4")
    try:
        assert spark.catalog.isCached("kept")
        held = ask("SELECT count(*) FROM kept")
        ask("DELETE FROM items WHERE id < 3")
        assert ask("SELECT count(*) FROM kept") == held
        with pytest.raises(ArgumentError, match="there is a view or table kept already"):
            ask("CACHE TABLE kept AS SELECT id FROM items")
        ask("UNCACHE TABLE kept")
        assert not spark.catalog.isCached("kept")
    finally:
        spark.catalog.dropTempView("kept")


def test_variable_takes_the_answer_of_a_query(ask: Any) -> None:
    ask("DECLARE OR REPLACE VARIABLE most BIGINT DEFAULT 0")
    ask("SET VAR most = (SELECT max(id) FROM items)")
    assert ask("SELECT most") == ask("SELECT max(id) FROM items")
    ask("DROP TEMPORARY VARIABLE most")


def test_texts_without_lance_tables_are_run_by_spark(ask: Any) -> None:
    assert ask("EXECUTE IMMEDIATE 'SELECT ?' USING 'it''s'") == [("it's",)]
    assert ask("EXECUTE IMMEDIATE 'SELECT ?' USING 'lake.items'") == [("lake.items",)]
    ask("DECLARE OR REPLACE VARIABLE name STRING DEFAULT 'lake.items'")
    ask("DECLARE OR REPLACE VARIABLE statement STRING DEFAULT 'SELECT ?'")
    assert ask("EXECUTE IMMEDIATE statement USING 'lake.items'") == [("lake.items",)]
    assert ask("SELECT name") == [("lake.items",)]
    ask("DROP TEMPORARY VARIABLE statement")
    ask("DROP TEMPORARY VARIABLE name")
    assert ask("BEGIN DECLARE n INT DEFAULT 2; SELECT n + 1; END") == [(3,)]
    ask(
        "CREATE TEMPORARY FUNCTION plus_one(x INT) RETURNS INT COMMENT 'it\\'s one more' RETURN x + 1"
    )
    assert ask("SELECT plus_one(1)") == [(2,)]
    ask("DROP TEMPORARY FUNCTION plus_one")


def test_script_of_several_statements_needs_many(ask: Any) -> None:
    text = "DELETE FROM items WHERE id = :a; SELECT count(*) FROM items WHERE id > :b;"
    with pytest.raises(ArgumentError, match="2 statements"):
        ask(text, a=1, b=2)
    assert ask(text, {"a": 1, "b": 2}, many=True) == [(8,)]
    assert ask("SELECT ';' AS c FROM items WHERE id = 2") == [(";",)]
    with pytest.raises(ArgumentError, match="no statement"):
        ask(" ; -- nothing")


# --- notebooks ----------------------------------------------------------------------------------------------


def test_magic_runs_cells_with_variables_of_the_notebook(spark: SparkSession, ask: Any) -> None:
    class Shell:
        user_ns: dict[str, Any] = {"spark": spark, "least": 8}  # noqa: RUF012 - a notebook's

        def register_magic_function(self, function: Any, magic_kind: str, magic_name: str) -> None:
            self.kind, self.name, self.function = magic_kind, magic_name, function

    shell = Shell()
    load_ipython_extension(shell)
    assert (shell.kind, shell.name) == ("line_cell", "lance")
    shell.function("found", "SELECT id FROM items WHERE id > :least ORDER BY id")
    assert shell.user_ns["found"].collect() == [(9,), (9,)]
    assert shell.function("SELECT count(*) FROM items").first() == (10,)
    with pytest.raises(ArgumentError, match="no variable most"):
        run_cell(shell.user_ns, "", "SELECT :most")
    with pytest.raises(ArgumentError, match="name of a variable"):
        run_cell(shell.user_ns, "two words", "SELECT 1")
