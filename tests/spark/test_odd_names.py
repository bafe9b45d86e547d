"""Columns with odd names: quoted in conditions, aliases and clauses, and with a backtick inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import pennon
import pennon.spark
from pennon.errors import ArgumentError
from pennon.spark import LanceTable

ODD = "a`b"
QUOTED = "`a``b`"


def frame(spark: SparkSession, rows: list[tuple[Any, ...]], *names: str) -> DataFrame:
    """Rows of long columns with any names."""
    plain = [f"c{at}" for at in range(len(names))]
    return spark.createDataFrame(rows, ", ".join(f"{name} long" for name in plain)).toDF(*names)


def rows_of(uri: str) -> list[tuple[Any, ...]]:
    """The rows of a table, in order."""
    return sorted(tuple(row.values()) for row in pennon.dataset(uri).to_table().to_pylist())


@pytest.fixture
def odd(spark: SparkSession, uri: str) -> LanceTable:
    """A table with a backtick in the name of a column."""
    pennon.write_dataset(pa.table({"id": [1, 2, 3], ODD: [10, 20, 30]}), uri, max_rows_per_file=2)
    return LanceTable.forPath(spark, uri)


# --- a backtick in a name ---------------------------------------------------------------------------


def test_a_dataframe_with_a_backtick_in_a_name_is_written(spark: SparkSession, uri: str) -> None:
    new = frame(spark, [(1, 10)], "id", ODD)
    pennon.spark.write(new, uri)
    pennon.spark.write(new, uri, "append")
    assert pennon.dataset(uri).schema.names == ["id", ODD]
    assert rows_of(uri) == [(1, 10), (1, 10)]


@pytest.mark.parametrize("name", ["*", "a*b", "a b", "a;b", "1", "ü", "`", "``", "`a`"])
def test_write_and_update_of_columns_with_odd_names(
    spark: SparkSession, uri: str, name: str
) -> None:
    quoted = "`" + name.replace("`", "``") + "`"
    pennon.spark.write(frame(spark, [(1, 10), (2, 20)], "id", name), uri)
    table = LanceTable.forPath(spark, uri)
    table.update(f"{quoted} + 0 = 20", {quoted: f"{quoted} + 1"})
    assert rows_of(uri) == [(1, 10), (2, 21)]


def test_a_column_with_a_backtick_is_updated_and_deleted_by(odd: LanceTable) -> None:
    odd.update(f"{QUOTED} = 20", {QUOTED: f"{QUOTED} + 1"})
    odd.update(sf.col(QUOTED) == 30, {ODD: sf.col(QUOTED) + 1})
    odd.delete(f"{QUOTED} + 0 = 10")
    assert rows_of(odd.uri) == [(2, 21), (3, 31)]


def test_a_column_with_a_backtick_is_updated_in_all_rows(odd: LanceTable) -> None:
    odd.update(set={QUOTED: "id + 0"})
    assert rows_of(odd.uri) == [(1, 1), (2, 2), (3, 3)]


def test_a_column_with_a_backtick_is_merged(spark: SparkSession, odd: LanceTable) -> None:
    source = frame(spark, [(2, 0), (4, 40)], "id", ODD)
    merge = odd.alias("t").merge(source.alias("s"), f"t.id = s.id AND t.{QUOTED} = 20")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert rows_of(odd.uri) == [(1, 10), (2, 0), (3, 30), (4, 40)]


def test_a_merge_on_a_key_with_a_backtick_finds_its_rows(
    spark: SparkSession, odd: LanceTable
) -> None:
    pennon.dataset(odd.uri).create_scalar_index(QUOTED, "BTREE")
    source = frame(spark, [(7, 20), (8, 40)], "id", ODD)
    merge = odd.alias("t").merge(source.alias("s"), f"t.{QUOTED} = s.{QUOTED}")
    merge.whenMatchedUpdate(set={"id": "s.id"}).whenNotMatchedInsertAll().execute()
    assert rows_of(odd.uri) == [(1, 10), (3, 30), (7, 20), (8, 40)]


def test_an_overwrite_by_a_column_with_a_backtick(spark: SparkSession, odd: LanceTable) -> None:
    new = frame(spark, [(5, 20), (6, 50)], "id", ODD)
    pennon.spark.write(new, odd.uri, "overwrite", overwrite_by=[ODD])
    assert rows_of(odd.uri) == [(1, 10), (3, 30), (5, 20), (6, 50)]


@pytest.mark.parametrize("condition", [f"{QUOTED} = 20", f"{QUOTED} + 0 = 20"])
def test_overwrite_where_with_backtick_in_column_name(
    spark: SparkSession, odd: LanceTable, condition: str
) -> None:
    new = frame(spark, [(5, 20)], "id", ODD)
    pennon.spark.write(new, odd.uri, "overwrite", where=condition)
    assert rows_of(odd.uri) == [(1, 10), (3, 30), (5, 20)]


def test_columns_with_a_backtick_are_aggregated(spark: SparkSession, odd: LanceTable) -> None:
    found = odd.read(aggregate={ODD: ["sum", "max"]}).collect()
    assert [tuple(row) for row in found] == [(60, 30)]
    by = odd.read(aggregate={"*": "count"}, group_by=[ODD]).collect()
    assert sorted(tuple(row) for row in by) == [(10, 1), (20, 1), (30, 1)]


def test_aggregate_of_column_with_backtick_in_name(spark: SparkSession, uri: str) -> None:
    pennon.write_dataset(pa.table({ODD: [["x"], ["y"]], "id": [1, 2]}), uri)
    table = LanceTable.forPath(spark, uri)
    rows = table.read(aggregate={ODD: "max"}, group_by=["id"]).collect()
    assert sorted(tuple(row) for row in rows) == [(1, ["x"]), (2, ["y"])]


def test_queries_with_a_backtick_find_their_neighbours(spark: SparkSession, uri: str) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.0, 0, 1, 1], pa.float32()), 2)
    pennon.write_dataset(pa.table({"id": [1, 2], "vec": vectors}), uri, max_rows_per_file=1)
    queries = spark.createDataFrame([(7, [1.0, 1.0])], "q long, vec array<float>").toDF(ODD, "vec")
    found = LanceTable.forPath(spark, uri).nearest(queries, 1, columns=["id"]).collect()
    assert [(row[ODD], row["id"]) for row in found] == [(7, 2)]


def test_columns_of_a_dataframe_with_a_backtick_are_added(
    spark: SparkSession, odd: LanceTable
) -> None:
    new = frame(spark, [(10, 5), (30, 6)], ODD, "x`y")
    odd.addColumns(new, on=ODD)
    assert rows_of(odd.uri) == [(1, 10, 5), (2, 20, None), (3, 30, 6)]


# --- names that clauses quote -----------------------------------------------------------------------


@pytest.fixture
def plain(spark: SparkSession, tmp_path: Path) -> LanceTable:
    """A table of ids and values."""
    uri = str(tmp_path / "plain.lance")
    pennon.write_dataset(pa.table({"id": [1, 2], "v": [10, 20]}), uri)
    return LanceTable.forPath(spark, uri)


@pytest.mark.parametrize("alias", ["t", "my table", "t`1"])
@pytest.mark.parametrize("said", ["v", "`v`", "{t}.v", "{t}.`v`", "{T}.V"])
def test_a_clause_may_quote_the_alias_and_the_column(
    spark: SparkSession, plain: LanceTable, alias: str, said: str
) -> None:
    quoted = "`" + alias.replace("`", "``") + "`"
    name = said.format(t=quoted, T=quoted.upper())
    source = frame(spark, [(2, 7)], "id", "v")
    merge = plain.alias(alias).merge(source.alias("s"), f"{quoted}.id = s.id")
    merge.whenMatchedUpdate(set={name: "s.v"}).execute()
    plain.alias(alias).update("id = 1", {name: "id + 1"})
    assert rows_of(plain.uri) == [(1, 2), (2, 7)]


@pytest.mark.parametrize("said", ["`new col`", "t.`new col`", "`t`.`new col`", "`NEW col`"])
def test_schema_evolution_accepts_quoted_new_columns(
    spark: SparkSession, plain: LanceTable, said: str
) -> None:
    source = frame(spark, [(2, 7)], "id", "new col")
    merge = plain.alias("t").merge(source.alias("s"), "t.id = s.id").withSchemaEvolution()
    merge.whenMatchedUpdate(set={said: "s.`new col`"}).execute()
    assert pennon.dataset(plain.uri).schema.names == ["id", "v", "new col"]
    assert sorted(rows_of(plain.uri), key=str) == [(1, 10, None), (2, 20, 7)]


def test_evolution_takes_a_new_column_with_a_backtick(
    spark: SparkSession, plain: LanceTable
) -> None:
    source = frame(spark, [(2, 7)], "id", ODD)
    merge = plain.alias("t").merge(source.alias("s"), "t.id = s.id").withSchemaEvolution()
    merge.whenMatchedUpdate(set={f"`t`.{QUOTED}": f"s.{QUOTED}"}).execute()
    assert sorted(rows_of(plain.uri), key=str) == [(1, 10, None), (2, 20, 7)]


def test_update_of_struct_field_by_quoted_names(spark: SparkSession, uri: str) -> None:
    pennon.write_dataset(
        pa.table({"id": [1], "my st": [{"a b": 1, "c": 2}]}), uri, data_storage_version="2.1"
    )
    table = LanceTable.forPath(spark, uri).alias("t")
    table.update("id = 1", {"`t`.`my st`.`a b`": "CAST(5 AS BIGINT)"})
    table.update("id = 1", {"`my st`.c": "CAST(6 AS BIGINT)"})
    assert pennon.dataset(uri).to_table()["my st"].to_pylist() == [{"a b": 5, "c": 6}]


def test_another_table_than_the_alias_has_no_column_to_set(
    spark: SparkSession, plain: LanceTable
) -> None:
    with pytest.raises(ArgumentError, match="no column"):
        plain.alias("t").update("id = 1", {"`u`.`v`": "1"})
