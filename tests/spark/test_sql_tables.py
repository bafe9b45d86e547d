"""CREATE, DROP, ALTER, namespaces, indices, tags, branches and upkeep of Lance tables by SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import pennon
import pennon.spark
from pennon.errors import (
    AlreadyExistsError,
    ArgumentError,
    NotFoundError,
    RefExistsError,
    UnsupportedError,
)
from pennon.spark import AttachedCatalog

# --- tables -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["lake.t", "lake.n.t"])
def test_table_is_created_again_after_drop(ask: Any, lake: AttachedCatalog, name: str) -> None:
    """Without PURGE the files stay: a table of the root lies in the folder of its name, and gets a new version."""
    ask("CREATE NAMESPACE IF NOT EXISTS lake.n")
    for number in range(3):
        ask(f"DROP TABLE IF EXISTS {name}")
        with pytest.raises((NotFoundError, PySparkException)):
            ask(f"SELECT * FROM {name}")
        if number == 1:
            ask(f"CREATE TABLE {name} (c STRING)")
            assert ask(f"SELECT * FROM {name}") == []
        else:
            ask(f"CREATE TABLE IF NOT EXISTS {name} AS SELECT {number} AS a{number}")
            assert ask(f"SELECT a{number} FROM {name}") == [(number,)]
    with pytest.raises(AlreadyExistsError):
        ask(f"CREATE TABLE {name} (c STRING)")


def test_create_table_that_fails_leaves_a_dropped_table_dropped(
    ask: Any, lake: AttachedCatalog
) -> None:
    ask("CREATE TABLE lake.t AS SELECT 1 AS a")
    uri = lake.table("t").uri
    ask("DROP TABLE lake.t")
    with pytest.raises(Exception, match="nope"):
        ask("CREATE TABLE lake.t AS SELECT raise_error('nope') AS a")
    assert "t" not in lake.tables()
    assert pennon.dataset(uri).to_table().to_pylist() == [{"a": 1}]


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
    both = "SELECT id FROM lance_hybrid_search('lake.texts', array(3.0, 1.0), 'fox', 2, filter => 'id > 1') JOIN items USING (id)"
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
