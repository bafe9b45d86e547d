"""`pennon.spark.sql` and `attach`: names, versions, each statement, parameters, refusals, what is pushed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import pennon
import pennon.spark
from pennon.catalog import NamedTables
from pennon.errors import (
    AlreadyExistsError,
    ArgumentError,
    MatchError,
    NotFoundError,
    RefExistsError,
    SchemaMismatchError,
    UnsupportedError,
)
from pennon.spark import AttachedCatalog, LanceTable
from pennon.spark.statements.magic import load_ipython_extension, run_cell

ROWS = pa.table(
    {
        "id": pa.array(range(10), pa.int64()),
        "name": ["a", "b"] * 5,
        "size": pa.array([None, *range(1, 10)], pa.int32()),
        "part": [{"x": n, "y": str(n)} for n in range(10)],
    }
)


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[AttachedCatalog]:
    """A catalog with the table ``items``, of two fragments and three versions (10, 11 and 10 rows)."""
    uri = tmp_path / "items.lance"
    pennon.write_dataset(ROWS, uri, max_rows_per_file=5)
    pennon.write_dataset(ROWS.slice(9), uri, mode="append")
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


def plan(ask: Any, text: str, **values: Any) -> dict[str, str]:
    """Return what ``explain=True`` says of each part."""
    return {part: detail for part, _, detail in ask(text, explain=True, **values)}


# --- names ----------------------------------------------------------------------------------------


def test_names_with_catalog_alone_in_other_case_and_as_paths(ask: Any, tmp_path: Path) -> None:
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
    start = time.perf_counter()
    lake = pennon.spark.attach(spark, names, "many")
    assert len(lake.tables()) == 10_000
    assert time.perf_counter() - start < 2
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


# --- what is pushed ---------------------------------------------------------------------------------


def test_columns_filters_and_limits_go_to_the_scan(ask: Any) -> None:
    found = plan(ask, "SELECT id, part.x FROM items WHERE size > 3 AND upper(name) = 'A'")
    assert found["table lake.items"] == "version 3; columns id, name, size, part.x; filter size > 3"
    found = plan(ask, "SELECT id + 1 FROM items WHERE 4 < Size LIMIT 2 OFFSET 1")
    assert found["table lake.items"] == "version 3; columns id, size; filter 4 < Size; limit 3"
    found = plan(ask, "SELECT id FROM items WHERE name = :n", n="it's")
    assert found["table lake.items"].endswith("filter name = CAST(X'69742773' AS STRING)")
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


def test_aggregates_of_one_table_are_made_where_it_is_read(ask: Any) -> None:
    text = (
        "SELECT name AS n, count(*), max(size) AS m, sum(id) FROM items WHERE id > 2 GROUP BY name"
    )
    assert plan(ask, text)["aggregates"] == "the tasks that read the table aggregate"
    assert sorted(ask(text)) == [("a", 3, 8, 18), ("b", 5, 9, 33)]
    assert ask("SELECT count(*) FROM items") == [(10,)]
    for other in (
        "SELECT count(DISTINCT name) FROM items",
        "SELECT count(*) FROM items HAVING count(*) > 1",
    ):
        assert "statement" in plan(ask, other)


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


# --- rows -------------------------------------------------------------------------------------------


def test_insert_by_position_by_columns_and_by_name(ask: Any) -> None:
    part = "named_struct('x', 1L, 'y', 'q')"
    assert ask(f"INSERT INTO items VALUES (100, 'v', 1, {part}), (101, NULL, NULL, NULL)") == [
        (2, 2)
    ]
    assert ask("INSERT INTO items (name, id) VALUES ('w', 102)") == [(1, 1)]
    assert ask("INSERT INTO items BY NAME SELECT 'x' AS name, 103L AS id") == [(1, 1)]
    assert ask("WITH c AS (SELECT 104L AS id) INSERT INTO lake.items (id) SELECT id FROM c") == [
        (1, 1)
    ]
    assert ask("SELECT id, name, size FROM items WHERE id >= 100 ORDER BY id") == [
        (100, "v", 1), (101, None, None), (102, "w", None), (103, "x", None), (104, None, None),
    ]  # fmt: skip
    with pytest.raises(
        SchemaMismatchError, match=r"2 values are given for 4 columns \(id, name, size, part\)"
    ):
        ask("INSERT INTO items SELECT 1L, 'x'")
    with pytest.raises(SchemaMismatchError, match="no column 'nothing'"):
        ask("INSERT INTO items (nothing) VALUES (1)")


def test_insert_overwrite_and_replace_parts(ask: Any) -> None:
    ask("CREATE TABLE lake.days AS SELECT * FROM VALUES ('a', 1), ('b', 2), ('c', 3) AS t(day, n)")
    assert ask("INSERT INTO lake.days REPLACE WHERE day = 'a' VALUES ('a', 10)") == [(1, 1)]
    assert ask("REPLACE lake.days WHERE day = 'b' AS SELECT 'b', 20") == [(1, 1)]
    assert ask("INSERT INTO lake.days REPLACE USING (day) SELECT 'c', 30") == [(1, 1)]
    assert ask("SELECT * FROM lake.days ORDER BY day") == [("a", 10), ("b", 20), ("c", 30)]
    with pytest.raises(ArgumentError):
        ask("INSERT INTO lake.days REPLACE WHERE day = 'a' VALUES ('z', 10)")
    assert ask("INSERT OVERWRITE lake.days SELECT day, n + 1 FROM lake.days WHERE n > 10") == [
        (2, 2)
    ]
    assert ask("SELECT * FROM lake.days ORDER BY day") == [("b", 21), ("c", 31)]
    assert ask(
        "INSERT WITH SCHEMA EVOLUTION INTO lake.days BY NAME SELECT 'd' AS day, 1 AS n, true AS late"
    ) == [(1, 1)]
    assert ask("SELECT late FROM lake.days WHERE day = 'd'") == [(True,)]
    with pytest.raises(UnsupportedError, match="no partitions"):
        ask("INSERT OVERWRITE lake.days PARTITION (day = 'a') SELECT 1")


def test_insert_of_texts_as_dates_and_decimals_as_vectors(ask: Any) -> None:
    ask(
        "CREATE TABLE lake.t (at TIMESTAMP, v ARRAY<FLOAT>) TBLPROPERTIES ('v.arrow.fixed-size-list.size' = '2')"
    )
    ask("INSERT INTO lake.t VALUES ('2026-01-31 12:00:00', array(0.5, 1))")
    assert ask("SELECT year(at), v FROM lake.t") == [(2026, [0.5, 1.0])]
    with pytest.raises(PySparkException):
        ask("INSERT INTO lake.t VALUES ('no time', array(0.5, 1))")


def test_delete_update_and_truncate(ask: Any) -> None:
    assert ask("DELETE FROM items WHERE lake.items.id = 9") == [(2,)]
    assert ask(
        "DELETE FROM lake.items AS i WHERE i.id IN (SELECT id FROM lake.items WHERE size > 6)"
    ) == [(2,)]
    assert ask("UPDATE items SET name = upper(name), part.x = -1 WHERE id = :id", id=1) == [(1,)]
    assert ask(
        "UPDATE lake.items i SET i.size = CASE WHEN i.id = 1 THEN 100 ELSE 0 END WHERE id < 3"
    ) == [(2,)]
    assert ask("SELECT id, name, size, part.x, part.y FROM items WHERE id < 3 ORDER BY id") == [
        (1, "B", 100, -1, "1"), (2, "a", 0, 2, "2"),
    ]  # fmt: skip
    assert ask("TRUNCATE TABLE items") == [(6,)]
    assert ask("SELECT count(*) FROM items") == [(0,)]
    with pytest.raises(ArgumentError, match="gets two values"):
        ask("UPDATE items SET name = 'a', name = 'b'")


def test_merge_with_all_clauses(ask: Any) -> None:
    ask(
        "CREATE TABLE lake.t AS SELECT * FROM VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, 'd', 4) AS t(k, v, n)"
    )
    ask(
        "CREATE TABLE lake.s AS SELECT * FROM VALUES (1, 'A', 9), (2, 'B', 9), (7, 'G', 9), (8, 'H', 9) AS t(k, v, n)"
    )
    text = """
        MERGE INTO lake.t USING (SELECT * FROM lake.s WHERE k < 100) AS s ON lake.t.k = s.k
        WHEN MATCHED AND s.v = 'A' THEN UPDATE SET t.v = CASE WHEN s.n = 9 THEN 'new' ELSE 'x' END, n = t.n + s.n
        WHEN MATCHED THEN DELETE
        WHEN NOT MATCHED AND s.k = 7 THEN INSERT (k, v) VALUES (s.k, concat(s.v, '!'))
        WHEN NOT MATCHED BY TARGET THEN INSERT *
        WHEN NOT MATCHED BY SOURCE AND t.k = 3 THEN UPDATE SET v = 'old'
        WHEN NOT MATCHED BY SOURCE THEN DELETE"""
    assert ask(text) == [(6, 2, 2, 2)]
    assert ask("SELECT * FROM lake.t ORDER BY k") == [
        (1, "new", 10),
        (3, "old", 3),
        (7, "G!", None),
        (8, "H", 9),
    ]
    evolving = "MERGE WITH SCHEMA EVOLUTION INTO lake.t USING (SELECT 1 AS k, 5 AS more) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET *"
    assert ask(evolving) == [(1, 1, 0, 0)]
    assert ask("SELECT more FROM lake.t WHERE k = 1") == [(5,)]
    with pytest.raises(MatchError):
        ask(
            "MERGE INTO lake.t USING (SELECT 1 AS k UNION ALL SELECT 1) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = 'x'"
        )
    with pytest.raises(ArgumentError, match="there is no row to delete"):
        ask("MERGE INTO lake.t USING lake.s ON t.k = s.k WHEN NOT MATCHED THEN DELETE")


def test_copy_into_takes_each_file_once(spark: SparkSession, ask: Any, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.csv").write_text("id,name\n200,x\n201,y\n")
    (tmp_path / "files" / "b.json").write_text('{"id": 300}')
    copy = f"COPY INTO items FROM '{tmp_path}/files' FILEFORMAT = CSV FILES = ('a.csv') FORMAT_OPTIONS ('header' = 'true')"
    assert ask(copy) == [(2, 2)]
    assert ask(copy) == [(0, 0)]
    assert ask(copy + " COPY_OPTIONS ('force' = 'true')") == [(2, 2)]
    query = f"COPY INTO items FROM (SELECT id * 2 AS id FROM '{tmp_path}/files') FILEFORMAT = JSON PATTERN = '*.json'"
    assert ask(query) == [(1, 1)]
    assert ask("SELECT id FROM items WHERE id >= 200 ORDER BY id") == [
        (200,),
        (200,),
        (201,),
        (201,),
        (600,),
    ]


# --- tables -----------------------------------------------------------------------------------------


def test_create_table_with_types_properties_and_keys(ask: Any, lake: AttachedCatalog) -> None:
    ask(
        "CREATE TABLE lake.t (id BIGINT PRIMARY KEY, v ARRAY<FLOAT> COMMENT 'it''s', m MAP<STRING, ARRAY<STRUCT<a: INT>>>, "
        "d DECIMAL(10, 2) NOT NULL, b BINARY, `odd name` STRING) USING lance COMMENT 'about' CLUSTER BY (id) "
        "TBLPROPERTIES ('v.arrow.fixed-size-list.size' = '3', 'v.arrow.float16' = 'true', 'b.lance.encoding' = 'blob', 'k' = 'v')"
    )
    stored = pennon.dataset(lake.table("t").uri)
    kinds = {field.name: (field.type, field.nullable) for field in stored.schema}
    assert kinds["v"] == (pa.list_(pa.float16(), 3), True)
    assert kinds["d"] == (pa.decimal128(10, 2), False)
    assert kinds["id"] == (pa.int64(), False)
    assert stored.schema.field("id").metadata[b"lance-schema:unenforced-primary-key"] == b"true"
    assert stored.schema.field("b").metadata[b"lance-encoding:blob"] == b"true"
    described = ask("DESCRIBE EXTENDED lake.t")
    assert ("v", "array<float>", "it's") in described
    assert ("Comment", "about", "") in described
    assert ask("SHOW TBLPROPERTIES lake.t ('k')") == [("k", "v")]
    ((text,),) = ask("SHOW CREATE TABLE lake.t")
    ask("DROP TABLE lake.t PURGE")
    ask(text)
    assert [row[0] for row in ask("SHOW COLUMNS IN lake.t")] == [
        "id",
        "v",
        "m",
        "d",
        "b",
        "odd name",
    ]
    with pytest.raises(UnsupportedError, match="no default values"):
        ask("CREATE TABLE lake.u (a INT DEFAULT 1)")
    with pytest.raises(UnsupportedError, match="no partitions"):
        ask("CREATE TABLE lake.u (a INT) PARTITIONED BY (a)")
    with pytest.raises(UnsupportedError, match="USING parquet"):
        ask("CREATE TABLE lake.u (a INT) USING parquet")


def test_create_replace_and_if_not_exists(ask: Any) -> None:
    ask("CREATE TABLE lake.t AS SELECT id, name FROM items")
    with pytest.raises(AlreadyExistsError, match=r"lake\.t"):
        ask("CREATE TABLE lake.t (a INT)")
    ask("CREATE TABLE IF NOT EXISTS lake.t (a INT)")
    assert ask("SELECT count(id) FROM lake.t") == [(10,)]
    assert ask("CREATE OR REPLACE TABLE lake.t AS SELECT id, name FROM lake.t WHERE id > 7") == [
        (3, 3)
    ]
    assert ask("SELECT max(name) FROM lake.t VERSION AS OF 2") == [("b",)]
    assert ask("SELECT count(*) FROM lake.t VERSION AS OF 1") == [(10,)]
    ask("REPLACE TABLE lake.t (other STRING)")
    assert ask("SELECT * FROM lake.t") == []
    with pytest.raises(NotFoundError, match="to replace"):
        ask("REPLACE TABLE lake.nothing (a INT)")
    ask("CREATE TABLE lake.like_items LIKE items")
    assert len(ask("DESCRIBE lake.like_items")) == 4


def test_failing_query_of_a_new_table_leaves_no_name(ask: Any) -> None:
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        ask("CREATE TABLE lake.t AS SELECT id / 0 AS x FROM items")
    assert ask("SHOW TABLES IN lake LIKE 't'") == []
    ask("CREATE TABLE lake.t AS SELECT 1 AS x")


def test_clone_of_a_version(ask: Any) -> None:
    ask("CREATE TABLE lake.shallow SHALLOW CLONE items VERSION AS OF 1")
    ask("CREATE TABLE lake.deep DEEP CLONE items")
    assert ask("SELECT count(*) FROM lake.shallow") == [(10,)]
    assert ask("SELECT min(id) FROM lake.deep") == [(1,)]


def test_drop_table_keeps_files_unless_purged(ask: Any, tmp_path: Path) -> None:
    ask("CREATE TABLE lake.kept AS SELECT 1 AS a")
    ask("CREATE TABLE lake.gone AS SELECT 1 AS a")
    ask("DROP TABLE lake.kept")
    ask("DROP TABLE lake.gone PURGE")
    ask("DROP TABLE IF EXISTS lake.gone")
    assert ask("SHOW TABLES IN lake") == [("", "items", False)]
    assert (tmp_path / "kept.lance" / "_versions").exists()
    assert not (tmp_path / "gone.lance" / "_versions").exists()


def test_alter_table_changes_columns_properties_and_name(ask: Any) -> None:
    for text in (
        "ALTER TABLE items ADD COLUMNS (a INT COMMENT 'new', b STRING)",
        "ALTER TABLE items ADD COLUMN c DOUBLE",
        "ALTER TABLE items DROP COLUMN B",
        "ALTER TABLE items DROP COLUMN IF EXISTS b",
        "ALTER TABLE items RENAME COLUMN c TO cc",
        "ALTER TABLE items ALTER COLUMN a TYPE BIGINT",
        "ALTER TABLE items ALTER COLUMN name COMMENT 'called'",
        "ALTER TABLE items ALTER COLUMN id SET NOT NULL",
        "ALTER TABLE items ALTER COLUMN id DROP NOT NULL",
        "ALTER TABLE items SET TBLPROPERTIES ('team' = 'data', 'x' = 'y')",
        "ALTER TABLE items UNSET TBLPROPERTIES IF EXISTS ('x', 'z')",
        "ALTER TABLE items RENAME TO things",
    ):
        assert ask(text) == []
    assert ask("DESCRIBE things")[1:] == [
        ("name", "string", "called"), ("size", "int", None), ("part", "struct<x:bigint,y:string>", None),
        ("a", "bigint", "new"), ("cc", "double", None),
    ]  # fmt: skip
    assert ask("SHOW TBLPROPERTIES things") == [("team", "data")]
    assert ask("SELECT a FROM lake.things WHERE id = 1") == [(None,)]
    for text, reason in [
        ("ALTER TABLE things ADD COLUMN z INT FIRST", "new columns are the last ones"),
        ("ALTER TABLE things ADD COLUMN z INT DEFAULT 1", "no default values"),
        ("ALTER TABLE things ADD COLUMN z INT NOT NULL", "cannot be NOT NULL"),
        ("ALTER TABLE things SET LOCATION '/x'", "no change that a Lance table knows"),
    ]:
        with pytest.raises(UnsupportedError, match=reason):
            ask(text)


def test_columns_come_from_a_view_by_row_address(ask: Any) -> None:
    ask("CREATE TEMPORARY VIEW new AS SELECT _rowaddr, _fragid, id * 2 AS twice FROM items")
    ask("ALTER TABLE items ADD COLUMNS twice FROM new")
    assert ask("SELECT twice FROM items WHERE id = 4") == [(8,)]
    ask(
        "CREATE OR REPLACE TEMP VIEW new AS SELECT _rowaddr, 'N' AS name, 0L AS twice FROM items WHERE id = 4"
    )
    ask("ALTER TABLE items UPDATE COLUMNS name, twice FROM new")
    assert ask("SELECT name, twice FROM items WHERE id IN (3, 4) ORDER BY id") == [
        ("b", 6),
        ("N", 0),
    ]


def test_namespaces_are_made_described_and_dropped(ask: Any) -> None:
    ask("CREATE NAMESPACE lake.train COMMENT 'to learn' WITH PROPERTIES ('owner' = 'me')")
    ask("CREATE SCHEMA IF NOT EXISTS lake.train")
    ask("CREATE DATABASE lake.train.images")
    assert ask("SHOW NAMESPACES IN lake") == [("train",)]
    assert ask("SHOW SCHEMAS IN lake.train LIKE 'im*|x'") == [("train.images",)]
    assert ("Properties", "((owner,me))") in ask("DESCRIBE NAMESPACE EXTENDED lake.train")
    with pytest.raises(ArgumentError, match="not empty"):
        ask("DROP NAMESPACE lake.train")
    ask("DROP NAMESPACE lake.train CASCADE")
    ask("DROP NAMESPACE IF EXISTS lake.train")
    assert ask("SHOW NAMESPACES IN lake") == []


# --- indices, tags, branches, upkeep --------------------------------------------------------------------


def test_indices_are_made_shown_updated_and_dropped(ask: Any) -> None:
    assert ask("ALTER TABLE items CREATE INDEX by_id USING btree (id) WITH (num_segments = 2)") == [
        (3, "by_id")
    ]
    assert ask("CREATE INDEX IF NOT EXISTS by_id ON items (id)") == [(3, "by_id")]
    ask("INSERT INTO items SELECT id + 100, name, size, part FROM items")
    assert ask("SHOW INDEXES FROM lake.items")[0][:5] == ("by_id", ["id"], "btree", 3, 10)
    assert ask("ALTER TABLE items REFRESH INDEX by_id")[0][2] == "by_id"
    assert ask("SHOW INDEX IN items")[0][5:] == (0, 0)
    assert ask("ALTER TABLE items OPTIMIZE INDEX by_id")[0][0] == "by_id"
    assert ask("DROP INDEX by_id ON items") == [("by_id", "dropped")]
    assert ask("DROP INDEX IF EXISTS by_id ON TABLE items") == [("by_id", "dropped")]
    with pytest.raises(ArgumentError, match="no index 'by_id'"):
        ask("ALTER TABLE items REFRESH INDEX by_id")
    with pytest.raises(UnsupportedError, match="of one column"):
        ask("CREATE INDEX two ON items (id, name)")


def test_tags_and_branches_are_made_shown_and_dropped(ask: Any) -> None:
    assert ask("ALTER TABLE items CREATE TAG one AS OF VERSION 1") == [("one",)]
    assert ask("ALTER TABLE items CREATE TAG IF NOT EXISTS one") == [("one",)]
    assert ask("ALTER TABLE items CREATE OR REPLACE TAG one AS OF VERSION 2") == [("one",)]
    assert ask("CREATE TAG two ON items AS OF TAG one") == [("two",)]
    assert ask("CREATE BRANCH side ON TABLE items AS OF TAG one") == [("side",)]
    assert [row[:3] for row in ask("SHOW TAGS FROM items")] == [
        ("one", "main", 2),
        ("two", "main", 2),
    ]
    assert [row[:3] for row in ask("SHOW BRANCHES IN items")] == [("side", "main", 2)]
    with pytest.raises(RefExistsError):
        ask("ALTER TABLE items CREATE BRANCH side")
    with pytest.raises(UnsupportedError, match="stay until they are dropped"):
        ask("ALTER TABLE items CREATE TAG three RETAIN 5 DAYS")
    for text in (
        "ALTER TABLE items DROP BRANCH side",
        "DROP TAG one ON items",
        "ALTER TABLE items DROP TAG IF EXISTS nothing",
    ):
        ask(text)
    assert [row[0] for row in ask("SHOW TAG IN items")] == ["two"]


def test_optimize_vacuum_and_restore(ask: Any) -> None:
    assert ask("OPTIMIZE items WHERE id > 100")[0][1].numFilesRemoved == 0
    assert (
        ask("OPTIMIZE items WITH (target_rows_per_fragment = 1000, num_threads = 4)")[0][
            1
        ].numFilesAdded
        == 1
    )
    assert ask("OPTIMIZE items ZORDER BY (name, id)")[0][1].zOrderStats is not None
    assert ask("VACUUM items RETAIN 200 HOURS DRY RUN") == []
    assert len(ask("VACUUM items")) == 1
    ((bytes_removed, versions),) = ask("VACUUM items WITH (before_version = 2)")
    assert (bytes_removed > 0, versions) == (True, 1)
    with pytest.raises(ArgumentError, match="less than a week"):
        ask("VACUUM items RETAIN 1 HOURS")
    with pytest.raises(ArgumentError, match="no option nothing"):
        ask("VACUUM items WITH (nothing = 1)")
    assert ask("RESTORE TABLE items TO VERSION AS OF 2")[0][1] == 3
    assert ask("SELECT count(*) FROM items") == [(11,)]
    assert [row[4] for row in ask("DESCRIBE HISTORY items LIMIT 2")] == ["RESTORE", "OPTIMIZE"]
    assert ask("DESCRIBE DETAIL items")[0][2] == "lake.items"


def test_table_functions_search_and_list_tables_by_name(ask: Any) -> None:
    ask(
        "CREATE TABLE lake.texts TBLPROPERTIES ('v.arrow.fixed-size-list.size' = '2') AS SELECT id, "
        "array(float(id), 1.0F) AS v, IF(id % 2 = 0, 'red fox', 'blue whale') AS text FROM range(10)"
    )
    ask("ALTER TABLE lake.texts CREATE INDEX words USING fts (text)")
    near = "SELECT id, _distance FROM lance_vector_search('lake.texts', :q, 2) ORDER BY _distance"
    assert ask(near, q=[3.1, 1.0]) == [
        (3, pytest.approx(0.01, abs=1e-4)),
        (4, pytest.approx(0.81, abs=1e-4)),
    ]
    few = "SELECT id FROM vector_search(table => 'texts', query_vector => array(3.1, 1.0), k => 2, filter => 'id > 5') v"
    assert sorted(ask(few)) == [(6,), (7,)]
    assert len(ask("SELECT * FROM lance_text_search('lake.texts', 'fox', 3)")) == 3
    both = "SELECT id FROM lance_hybrid_search('lake.texts', array(3.0, 1.0), 'fox', 2) JOIN items USING (id)"
    assert len(ask(both)) == 2
    assert ask(
        "SELECT id FROM lake.texts WHERE lance_match(text, 'whale') AND id > 5 ORDER BY id"
    ) == [(7,), (9,)]
    ask("DELETE FROM lake.texts WHERE id = 1")
    assert ask("SELECT id, _change_type FROM lance_changes('lake.texts', 2)") == [(1, "delete")]
    assert ask("SELECT count(*) FROM lance_at('lake.texts', 1)") == [(10,)]
    assert ask("SELECT max(version) FROM lance_versions('lake.texts')") == [(3,)]
    with pytest.raises(UnsupportedError, match="lance_match is a search"):
        ask("SELECT * FROM lake.texts WHERE lance_match(text, 'whale') OR id = 1")
    with pytest.raises(ArgumentError, match="no argument 'nothing'"):
        ask("SELECT * FROM lance_vector_search('lake.texts', array(1.0, 1.0), nothing => 1)")


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


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("CREATE VIEW kept AS SELECT * FROM items", "make a TEMPORARY VIEW"),
        ("CACHE TABLE lake.items", "of which this statement knows nothing"),
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


def test_several_statements_are_run_only_when_asked_for(ask: Any) -> None:
    text = "DELETE FROM items WHERE id = :a; SELECT count(*) FROM items WHERE id > :b;"
    with pytest.raises(ArgumentError, match="2 statements"):
        ask(text, a=1, b=2)
    assert ask(text, {"a": 1, "b": 2}, many=True) == [(8,)]
    assert ask("SELECT ';' AS c FROM items WHERE id = 2") == [(";",)]
    with pytest.raises(ArgumentError, match="no statement"):
        ask(" ; -- nothing")


# --- injection ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        "x' OR '1' = '1",
        "x\\' OR 1 = 1 --",
        "'; DELETE FROM items; --",
        "x' UNION SELECT name FROM items /*",
        "*/ OR TRUE --",
        "`) OR TRUE",
        "{v0}",
        ":other",
        "\x00' OR TRUE",
        "x\n-- \\\n OR TRUE",
        'x" OR TRUE OR "',
    ],
)
@pytest.mark.parametrize("escaped", ["true", "false"])
def test_values_of_parameters_are_never_more_than_values(
    spark: SparkSession, ask: Any, value: str, escaped: str
) -> None:
    spark.conf.set("spark.sql.parser.escapedStringLiterals", escaped)
    try:
        assert ask("SELECT id FROM items WHERE name = :v", v=value) == []
        assert ask(
            "SELECT ? AS v, count(*) AS n FROM items i JOIN items j ON i.id = j.id AND i.id = 1",
            [value],
        ) == [(value, 1)]
        assert ask("DELETE FROM items WHERE name = ?", [value]) == [(0,)]
        assert ask("UPDATE items SET name = :v WHERE id = 1", v=value) == [(1,)]
        assert ask("INSERT INTO items (id, name) VALUES (500, :v)", v=value) == [(1, 1)]
        assert ask("SELECT id FROM items WHERE name = :v ORDER BY id", v=value) == [(1,), (500,)]
        assert ask("SELECT count(*) FROM items") == [(11,)]
    finally:
        spark.conf.unset("spark.sql.parser.escapedStringLiterals")


def test_parameters_stand_for_no_names_and_no_clauses(ask: Any) -> None:
    for text in (
        "SELECT * FROM :t",
        "DELETE FROM :t",
        "SELECT id FROM items ORDER BY id :t",
        "DROP TABLE :t",
    ):
        with pytest.raises((ArgumentError, PySparkException)):
            ask(text, t="items")
    assert ask("SELECT count(*) FROM items") == [(10,)]


def test_identifiers_with_signs_are_only_names(
    spark: SparkSession, ask: Any, lake: AttachedCatalog
) -> None:
    odd = "a`; DROP TABLE items; --{x}"
    ask(f"CREATE TABLE lake.odd (`{odd.replace('`', '``')}` INT, `b c` STRING)")
    ask("INSERT INTO lake.odd VALUES (1, 'x')")
    quoted = f"`{odd.replace('`', '``')}`"
    assert ask(f"SELECT {quoted}, `b c` FROM lake.odd WHERE {quoted} = 1") == [(1, "x")]
    assert ask(f"UPDATE lake.odd SET {quoted} = 2 WHERE `b c` = 'x'") == [(1,)]
    assert ask(f"SELECT max({quoted}) FROM lake.odd") == [(2,)]
    for name in ("`../outside`", "`a/../../b`", "`/etc/passwd`", "`..`"):
        with pytest.raises((ArgumentError, NotFoundError, PySparkException)):
            ask(f"SELECT * FROM lake.{name}")
        with pytest.raises((ArgumentError, NotFoundError, UnsupportedError)):
            ask(f"CREATE TABLE lake.{name} (a INT)")
    assert ask("SELECT count(*) FROM items") == [(10,)]


def test_comments_hide_nothing_and_end_nothing(ask: Any) -> None:
    assert ask("SELECT count(*) /* FROM nothing */ FROM items -- WHERE id = 1") == [(10,)]
    assert ask("DELETE FROM items /* all? */ WHERE id = 1 -- OR TRUE") == [(1,)]
    with pytest.raises(ArgumentError, match="backslash"):
        ask("SELECT count(*) FROM items -- a \\\n; DELETE FROM items", many=True)
    with pytest.raises(ArgumentError, match="cannot be cut into words"):
        ask("SELECT count(*) FROM items /* open")
    assert ask("SELECT count(*) FROM items") == [(9,)]


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
