"""Names in merges and updates: their case, their side, and row ids and addresses."""

from __future__ import annotations

from typing import Any

import lance
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import pennon
import pennon.spark
from pennon.errors import RetryableConflict
from pennon.ops.commit import commit_on
from pennon.spark import LanceTable
from tests.spark.small_table import ROWS, make, rows_of

COMMIT = "pennon.spark.changes.change_operations.commit_on"


def test_merge_and_update_of_columns_that_differ_by_case(spark: SparkSession, uri: str) -> None:
    """C4: all columns, named ones, fields of structs, and a column that comes, under caseSensitive."""
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        rows = spark.sql("SELECT 1 AS id, 10 AS v, 20 AS V, named_struct('x', 1, 'X', 2) AS s")
        pennon.spark.write(rows, uri)
        table = LanceTable.forPath(spark, uri)
        news = spark.sql(
            "SELECT id, 30 AS V, 40 AS v, named_struct('X', 4, 'x', 3) AS s, 5 AS n, 6 AS N "
            "FROM VALUES (1), (2) AS t(id)"
        ).alias("s")
        merge = table.alias("t").merge(news.drop("n", "N"), "t.id = s.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        inner = {"x": 3, "X": 4}
        wanted = {"v": 40, "V": 30, "s": inner}
        found = {row["id"]: row for row in lance.dataset(uri).to_table().to_pylist()}
        assert found == {n: {"id": n, **wanted} for n in (1, 2)}
        table.update("id + 0 = 1", {"V": "v + 1", "s.X": "s.x + 5"})
        merge = table.alias("t").merge(news, "t.id = s.id").withSchemaEvolution()
        merge.whenMatchedUpdate("s.id = 1", {"N": "s.N", "n": "s.n"}).execute()
        found = {row["id"]: row for row in lance.dataset(uri).to_table().to_pylist()}
        changed = {"v": 40, "V": 41, "s": {"x": 3, "X": 8}, "N": 6, "n": 5}
        assert found == {1: {"id": 1, **changed}, 2: {"id": 2, **wanted, "N": None, "n": None}}
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_merge_resolves_shared_column_names_by_clause(spark: SparkSession, uri: str) -> None:
    """Delta's rule: inserts see the source, and rows that the source does not match the table alone."""
    make(uri)
    table = LanceTable.forPath(spark, uri)
    news = spark.sql("SELECT * FROM VALUES ('a', 10L), ('e', 50L), ('f', 60L) AS s(key, value)")
    for alias in ("t", None):
        merge = (table if alias is None else table.alias(alias)).merge(
            news.alias("s"), "t.key = s.key" if alias else "'x' || s.key = 'never'"
        )
        if alias is None:
            merge.whenNotMatchedInsert(
                "value = 60", {"key": "upper(key)", "value": "-value"}
            ).execute()
            continue
        merge = merge.whenMatchedUpdate(set={"value": "t.value + s.value"})
        merge = merge.whenNotMatchedInsert("value < 60", {"key": "key", "value": "value + 1"})
        merge = merge.whenNotMatchedBySourceUpdate("key = 'b'", {"value": "value * 100"})
        merge.whenNotMatchedBySourceDelete("value > 3 AND key > 'c'").execute()
    assert rows_of(uri) == [("F", -60), ("a", 11), ("b", 200), ("c", 3), ("e", 51)]
    ambiguous = table.alias("t").merge(news.alias("s"), "t.key = s.key")
    with pytest.raises(AnalysisException, match="AMBIGUOUS_REFERENCE"):
        ambiguous.whenMatchedUpdate(set={"value": "value + 1"}).execute()


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_rows_are_merged_and_updated_by_their_ids_and_addresses(
    spark: SparkSession, uri: str, *, stable: bool
) -> None:
    """C9: in the condition of a merge, in values, in new columns, and as what a frame is joined on."""
    make(uri, enable_stable_row_ids=stable)
    table = LanceTable.forPath(spark, uri)
    table.delete("key = 'a'")
    asked: list[tuple[str, Any]] = [
        ("_rowid", {"with_row_id": True}),
        ("_rowaddr", {"with_row_address": True}),
    ]
    for column, options in asked:
        news = table.read(["key", "value"], **options).where("key <> 'b'")
        news = news.selectExpr(column, "value * 10 AS value").alias("s")
        merge = table.alias("t").merge(news, f"t.{column} = s.{column}")
        merge.withSchemaEvolution().whenMatchedUpdate(set={"value": "s.value"}).execute()
        assert lance.dataset(uri).schema.names == ["key", "value"]
    assert rows_of(uri) == [("b", 2), ("c", 300), ("d", 400)]
    labels = table.read(["key"], with_row_id=True).selectExpr("_rowid", "upper(key) AS label")
    table.addColumns(labels, on="_rowid")
    table.addColumns({"address": "_rowaddr", "number": "_rowid + 0"})
    table.update("key = 'b'", {"label": "concat(CAST(_rowaddr AS STRING), '/', _rowid)"})
    found = lance.dataset(uri).to_table(with_row_address=True, with_row_id=True).to_pylist()
    before = pennon.dataset(uri, version=pennon.dataset(uri).version - 1).to_table(
        with_row_address=True, with_row_id=True
    )
    ids = {row["key"]: (row["_rowid"], row["_rowaddr"]) for row in before.to_pylist()}
    assert {row["key"]: (row["number"], row["address"]) for row in found} == ids
    b = "{1}/{0}".format(*ids["b"])
    assert {row["key"]: row["label"] for row in found} == {"b": b, "c": "C", "d": "D"}


@pytest.mark.parametrize("way", ["function", "Spark", "format"])
def test_a_part_is_overwritten_by_addresses(spark: SparkSession, uri: str, way: str) -> None:
    """C9: new rows have no address yet, so they are not held against the condition."""
    make(uri)
    news = spark.sql("SELECT 'z' AS key, 26L AS value")
    if way == "format":
        writer = news.write.format("lance").mode("overwrite")
        writer.option("replaceWhere", "_rowaddr = 1").save(uri)
    else:
        where = "_rowaddr = 1" if way == "function" else "_rowaddr + 0 = 1"
        pennon.spark.write(news, uri, "overwrite", where=where)
    assert rows_of(uri) == [*(row for row in ROWS if row[0] != "b"), ("z", 26)]


def test_change_by_row_addresses_is_not_retried_on_a_newer_version(
    spark: SparkSession, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The addresses are other rows' once somebody has compacted the table."""
    make(uri)
    table = LanceTable.forPath(spark, uri)
    table.delete("key = 'a'")

    def late(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(COMMIT, commit_on)
        pennon.dataset(uri).optimize.compact_files()
        return commit_on(*arguments, **named)

    monkeypatch.setattr(COMMIT, late)
    with pytest.raises(RetryableConflict):
        table.delete("_rowaddr = 1")
    assert rows_of(uri) == ROWS[1:]
    monkeypatch.setattr(COMMIT, late)
    table.delete("key = 'b'")
    assert rows_of(uri) == ROWS[2:]
