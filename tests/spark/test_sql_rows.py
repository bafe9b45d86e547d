"""INSERT, DELETE, UPDATE, MERGE, TRUNCATE and COPY INTO of Lance tables by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pennon.errors import (
    ArgumentError,
    MatchError,
    SchemaMismatchError,
    UnsupportedError,
)

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
