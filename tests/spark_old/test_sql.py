"""SQL in Spark 4.0 and 3.5: TPC-H, and each kind of statement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import pennon.spark
from pennon.errors import NotFoundError
from tests.spark.tpch import faults, tables


def test_tpch_queries_equal_those_of_spark_views(spark: SparkSession, tmp_path: Path) -> None:
    with tables(spark, tmp_path):
        assert faults(spark) == {}


def test_statements_change_and_show_tables(spark: SparkSession, tmp_path: Path) -> None:
    catalog = pennon.spark.attach(spark, str(tmp_path))

    def ask(text: str, *args: Any) -> list[list[Any]]:
        return [[*row] for row in pennon.spark.sql(spark, text, list(args) or None).collect()]

    try:
        ask("CREATE TABLE lake.t (id BIGINT, n BIGINT, name STRING)")
        ask("INSERT INTO lake.t SELECT id, 2 * id, concat('n', id) FROM range(20)")
        ask("INSERT INTO lake.t BY NAME SELECT 'late' AS name, 20L AS id")
        assert ask("DELETE FROM lake.t WHERE id = 4") == [[1]]
        assert ask("UPDATE lake.t SET n = ? WHERE id = 7", 70) == [[1]]
        merge = """MERGE INTO lake.t USING (SELECT 8L AS id, 80L AS n, 'm' AS name) AS s ON t.id = s.id
            WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""
        assert ask(merge)[0][:2] == [1, 1]
        rows = ask("SELECT id, n, name FROM lake.t WHERE id IN (7, 8, 20) ORDER BY id")
        assert rows == [[7, 70, "n7"], [8, 80, "m"], [20, None, "late"]]
        assert ask("SELECT count(*), max(n) FROM lake.t") == [[20, 80]]
        assert ask("SELECT count(*) FROM lake.t VERSION AS OF 2") == [[20]]
        ask("ALTER TABLE lake.t ADD COLUMNS (late BOOLEAN)")
        ask("OPTIMIZE lake.t")
        ask("CREATE TABLE lake.u AS SELECT id FROM lake.t WHERE late IS NULL")
        assert sorted(row[1] for row in ask("SHOW TABLES IN lake")) == ["t", "u"]
        assert len(ask("DESCRIBE HISTORY lake.t")) >= 7
        assert ask("SELECT count(*) FROM lance_changes('lake.t', 1, 2)") == [[20]]
        ask("DROP TABLE lake.u")
        with pytest.raises(NotFoundError):
            ask("SELECT * FROM lake.u")
    finally:
        catalog.detach()
