"""Partial overwrites: by a condition, by the values of columns; refusals; conflicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import pennon
import pennon.spark
from pennon.errors import ArgumentError, SchemaMismatchError
from pennon.spark import LanceTable
from pennon.spark.changes import partial_overwrite
from tests.spark.small_table import rows_of

DAYS = [("mon", 1), ("mon", 2), ("tue", 3), (None, 4), ("wed", 5)]
Rows = Sequence[tuple[Any, ...]]


def frame(spark: SparkSession, rows: Rows) -> DataFrame:
    return spark.createDataFrame(rows, "day string, n bigint")


def make(uri: str, **options: Any) -> None:
    """Days in fragments of two rows."""
    days = pa.table({"day": [d for d, _ in DAYS], "n": pa.array([n for _, n in DAYS], pa.int64())})
    pennon.write_dataset(days, uri, max_rows_per_file=2, **options)


def without(*numbers: int) -> Rows:
    return [row for row in DAYS if row[1] not in numbers]


def same(uri: str, rows: Rows) -> None:
    assert rows_of(uri) == sorted(rows, key=repr)


@pytest.mark.parametrize(("version", "stable"), [("2.0", True), ("2.1", False), ("2.2", True)])
def test_rows_of_a_condition_are_replaced(
    spark: SparkSession, uri: str, version: str, *, stable: bool
) -> None:
    make(uri, data_storage_version=version, enable_stable_row_ids=stable)
    new = [("mon", 10), ("mon", 11), ("mon", 12)]
    rows = frame(spark, new).coalesce(1)
    assert pennon.spark.write(rows, uri, "overwrite", where="day = 'mon'") == 2
    same(uri, [*without(1, 2), *new])
    line = LanceTable.forPath(spark, uri).history(1).collect()[0]
    assert (line.operation, line.operationParameters["mode"]) == ("WRITE", "Overwrite")
    assert line.operationMetrics["numDeletedRows"] == "2"
    assert line.operationMetrics["numOutputRows"] == "3"
    if stable:
        ids = lance.dataset(uri).to_table(columns=["n"], with_row_id=True).to_pydict()
        expected = {3: 2, 4: 3, 5: 4, 10: 5, 11: 6, 12: 7}
        assert dict(zip(ids["n"], ids["_rowid"], strict=True)) == expected


@pytest.mark.parametrize("where", ["upper(DAY) = 'MON'", "column"])
def test_partial_overwrite_by_spark_conditions(spark: SparkSession, uri: str, where: Any) -> None:
    make(uri)
    said = sf.col("day").startswith("m") if where == "column" else where
    assert pennon.spark.write(frame(spark, [("mon", 10)]), uri, "overwrite", where=said) == 2
    same(uri, [*without(1, 2), ("mon", 10)])


def test_data_source_replace_where_overwrites_matching_rows(spark: SparkSession, uri: str) -> None:
    make(uri)
    writer = frame(spark, [("tue", 30)]).write.format("lance").mode("overwrite")
    writer.option("replaceWhere", "n BETWEEN 3 AND 30 AND day IS NOT NULL AND day <> 'wed'").save(
        uri
    )
    same(uri, [*without(3), ("tue", 30)])
    assert lance.dataset(uri).version == 2
    only = frame(spark, []).write.format("lance").mode("overwrite")
    only.option("replaceWhere", "day IN ('mon', 'wed')").save(uri)
    same(uri, [*without(1, 2, 3, 5), ("tue", 30)])


@pytest.mark.parametrize("way", ["function", "format"])
def test_rows_outside_of_the_condition_are_refused(spark: SparkSession, uri: str, way: str) -> None:
    make(uri)
    rows = frame(spark, [("mon", 1), ("tue", 7), (None, 8), ("mon", 9)]).repartition(2)
    message = (
        r"2 rows of the DataFrame do not satisfy day = 'mon', for example \{'day': .*nothing was"
    )
    error: type[Exception] = ArgumentError if way == "function" else PySparkException
    writer = rows.write.format("lance").mode("overwrite").option("replaceWhere", "day = 'mon'")
    write: Callable[[], Any] = partial(
        pennon.spark.write, rows, uri, "overwrite", where="day = 'mon'"
    )
    if way == "format":
        write = partial(writer.save, uri)
    with pytest.raises(error, match=message):
        write()
    same(uri, DAYS)
    assert lance.dataset(uri).version == 1


def test_partial_overwrite_fills_missing_columns_with_null(spark: SparkSession, uri: str) -> None:
    make(uri)
    rows = spark.range(7, 8).toDF("N")
    with pytest.raises(ArgumentError, match="1 rows of the DataFrame do not satisfy day = 'mon'"):
        pennon.spark.write(rows, uri, "overwrite", where="day = 'mon'")
    pennon.spark.write(rows, uri, "overwrite", where="day IS NULL")
    same(uri, [*without(4), (None, 7)])


@pytest.mark.parametrize("way", ["function", "format"])
def test_overwrite_by_replaces_rows_with_equal_keys(
    spark: SparkSession, uri: str, way: str
) -> None:
    make(uri, enable_stable_row_ids=True)
    new = [("mon", 10), ("sun", 11), (None, 12), ("mon", 13)]
    rows = frame(spark, new).repartition(2)
    if way == "function":
        assert pennon.spark.write(rows, uri, "overwrite", overwrite_by=["DAY"]) == 2
    else:
        writer = rows.write.format("lance").mode("overwrite")
        writer.option("overwrite_by", "day").save(uri)
    same(uri, [*without(1, 2, 4), *new])
    assert lance.dataset(uri).version == 2


@pytest.mark.parametrize("way", ["function", "format"])
def test_overwrite_by_several_columns_compares_keys_as_spark(
    spark: SparkSession, uri: str, way: str
) -> None:
    nan = float("nan")
    old = pa.table(
        {
            "a": pa.array([1, 1, 2, None, 2], pa.int16()),
            "x": pa.array([0.0, nan, 0.5, 0.5, None], pa.float32()),
            "row": pa.array([0, 1, 2, 3, 4], pa.int32()),
        }
    )
    pennon.write_dataset(old, uri, max_rows_per_file=2)
    new = [(1, -0.0, 10), (1, nan, 11), (None, 0.5, 12), (2, 1.5, 13)]
    rows = spark.createDataFrame(new, "a int, x double, row int")
    if way == "function":
        pennon.spark.write(rows, uri, "overwrite", overwrite_by=["a", "x"])
    else:
        rows.write.format("lance").mode("overwrite").option("overwrite_by", "a, x").save(uri)
    table = lance.dataset(uri)
    table.validate()
    assert sorted(table.to_table().column("row").to_pylist()) == [2, 4, 10, 11, 12, 13]


def test_partial_overwrite_of_missing_table_creates_it(spark: SparkSession, tmp_path: Path) -> None:
    new = [("mon", 10)]
    first, second = str(tmp_path / "a.lance"), str(tmp_path / "b.lance")
    assert pennon.spark.write(frame(spark, new), first, "overwrite", where="day = 'mon'") == 1
    assert pennon.spark.write(frame(spark, new), second, "overwrite", overwrite_by=["day"]) == 1
    same(first, new)
    same(second, new)


def test_partial_overwrite_of_zero_rows_by_zero_rows_commits_no_version(
    spark: SparkSession, uri: str
) -> None:
    make(uri)
    nothing = frame(spark, [])
    assert pennon.spark.write(nothing, uri, "overwrite", where="day = 'sun'") == 1
    assert pennon.spark.write(nothing, uri, "overwrite", overwrite_by=["day"]) == 1
    assert pennon.spark.write(nothing, uri, "overwrite", where="day = 'mon'") == 2
    same(uri, without(1, 2))


def test_overwrite_by_evaluates_the_source_once(spark: SparkSession, uri: str) -> None:
    """Each row has a random day; what goes are the days that were written."""
    days = [str(n) for n in range(50)]
    pennon.write_dataset(pa.table({"day": days, "n": pa.array(range(50), pa.int64())}), uri)
    rows = spark.range(20).select(
        sf.floor(sf.rand() * 50).cast("string").alias("day"), sf.lit(100).cast("bigint").alias("n")
    )
    pennon.spark.write(rows, uri, "overwrite", overwrite_by=["day"])
    found = rows_of(uri)
    new = {day for day, n in found if n == 100}
    old = {day for day, n in found if n != 100}
    assert (len(new | old), new & old) == (50, set())
    assert sum(n == 100 for _, n in found) == 20


def test_partial_overwrite_replaces_concurrently_appended_rows(
    spark: SparkSession, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(uri)
    find = partial_overwrite._delete_where

    def between(*arguments: Any) -> Any:
        monkeypatch.setattr(partial_overwrite, "_delete_where", find)
        found = find(*arguments)
        pennon.spark.write(frame(spark, [("mon", 77), ("tue", 78)]), uri, "append")
        return found

    monkeypatch.setattr(partial_overwrite, "_delete_where", between)
    assert (
        pennon.spark.write(frame(spark, [("mon", 9)]), uri, "overwrite", where="day = 'mon'") == 3
    )
    same(uri, [*without(1, 2), ("tue", 78), ("mon", 9)])


def test_partial_overwrite_after_concurrent_schema_change_is_refused(
    spark: SparkSession, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(uri)
    find = partial_overwrite._delete_where

    def between(*arguments: Any) -> Any:
        monkeypatch.setattr(partial_overwrite, "_delete_where", find)
        found = find(*arguments)
        pennon.dataset(uri).add_columns({"m": "n + 1"})
        return found

    monkeypatch.setattr(partial_overwrite, "_delete_where", between)
    with pytest.raises(SchemaMismatchError, match="changed the table's columns meanwhile"):
        pennon.spark.write(frame(spark, [("mon", 9)]), uri, "overwrite", where="day = 'mon'")
    pennon.dataset(uri).drop_columns(["m"])
    same(uri, DAYS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "append", "where": "n = 1"}, "where and overwrite_by go with mode='overwrite'"),
        ({"where": "n = 1", "merge_schema": True}, "overwritten with its columns as they are"),
        ({"where": "n = 1", "overwrite_by": ["day"]}, "not by both"),
        ({"overwrite_by": ["week"]}, "overwrite_by names 'week'; the DataFrame has day, n"),
    ],
)
def test_partial_overwrite_with_wrong_arguments_is_refused(
    spark: SparkSession, uri: str, arguments: dict[str, Any], message: str
) -> None:
    make(uri)
    with pytest.raises(ArgumentError, match=message):
        pennon.spark.write(frame(spark, DAYS), uri, **{"mode": "overwrite", **arguments})
    assert lance.dataset(uri).version == 1


@pytest.mark.parametrize(
    ("mode", "options", "message"),
    [
        ("append", {"replaceWhere": "n = 1"}, r"go with mode\('overwrite'\)"),
        ("overwrite", {"replaceWhere": "upper(day) = 'X'"}, "needs Spark.*pennon.spark.write"),
        ("overwrite", {"partitionOverwriteMode": "dynamic"}, "no partitions.*overwrite_by"),
    ],
)
def test_partial_overwrite_by_data_source_options_is_refused(
    spark: SparkSession, uri: str, mode: str, options: dict[str, str], message: str
) -> None:
    make(uri)
    with pytest.raises(PySparkException, match=message):
        frame(spark, DAYS).write.format("lance").mode(mode).options(**options).save(uri)
    assert lance.dataset(uri).version == 1
