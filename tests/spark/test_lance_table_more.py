"""`LanceTable` beyond Delta's table: names of versions, listings, rows by id, columns, files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as st

import pennon
from pennon.errors import (
    ArgumentError,
    InvalidSchemaError,
    NotFoundError,
    RefExistsError,
)
from pennon.spark import LanceTable
from tests.spark.small_table import ROWS, make, rows_of


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    """The rows of a frame."""
    return [tuple(row) for row in frame.collect()]


# --- versions by name -------------------------------------------------------------------------------


def test_a_version_is_read_by_number_tag_branch_or_time(table: LanceTable, uri: str) -> None:
    table.tags.create("first")
    moment = pennon.dataset(uri).versions()[0]["timestamp"].astimezone()
    side = table.branches.create("side", "first")
    side.delete("key = 'a'")
    table.delete("key = 'b'")
    seen = [
        [row.key for row in frame.collect()]
        for frame in (
            table.read(["key"]),
            table.read(["key"], version=1),
            table.read(["key"], tag="first"),
            table.read(["key"], asof=moment),
            table.read(["key"], branch="side"),
            side.read(["key"], branch="main", version=1),
            table.branches.checkout("side").read(["key"], filter="value > 3"),
        )
    ]
    assert ["".join(each) for each in seen] == ["acd", "abcd", "abcd", "abcd", "bcd", "abcd", "d"]
    assert lance.dataset(uri).checkout_version(("side", None)).count_rows() == 3
    assert table.read(version=1, with_row_id=True).columns == ["key", "value", "_rowid"]


def test_tags_and_branches_are_listed_moved_and_dropped(table: LanceTable, uri: str) -> None:
    table.tags.create("good")
    table.delete("key = 'a'")
    table.branches.create("side", 1)
    (tag,) = table.tags.toDF().collect()
    assert (tag.tag, tag.branch, tag.version) == ("good", "main", 1)
    (branch,) = table.branches.toDF().collect()
    assert (branch.branch, branch.parent_branch, branch.parent_version) == ("side", "main", 1)
    with pytest.raises(RefExistsError):
        table.tags.create("good")
    table.tags.update("good")
    table.tags.replaceMetadata("good", {"by": "me"})
    assert lance.dataset(uri).tags.list()["good"]["version"] == 2
    assert table.tags.toDF().collect()[0].metadata == {"by": "me"}
    table.tags.delete("good")
    table.branches.delete("side")
    assert (table.tags.toDF().count(), table.branches.toDF().count()) == (0, 0)
    with pytest.raises(NotFoundError):
        table.branches.checkout("side")


# --- listings ---------------------------------------------------------------------------------------


def test_versions_fragments_and_files_are_frames(table: LanceTable, uri: str) -> None:
    table.delete("key = 'a'")
    versions = table.versions().collect()
    assert [(v.version, v.physical_rows, v.deleted_rows) for v in versions] == [
        (1, 4, 0),
        (2, 4, 1),
    ]
    fragments = table.fragments().collect()
    assert [(f.fragment_id, f.rows, f.physical_rows) for f in fragments] == [(0, 1, 2), (1, 2, 2)]
    assert [f.deletion_file is None for f in fragments] == [False, True]
    files = table.files().collect()
    assert [(f.fragment_id, f.file_version, f.fields) for f in files] == [
        (0, "2.1", ["key", "value"]), (1, "2.1", ["key", "value"]),
    ]  # fmt: skip
    found = [file for f in lance.dataset(uri).get_fragments() for file in f.data_files()]
    assert [f.path for f in files] == [f"data/{file.path}" for file in found]
    sizes = [file.file_size_bytes for file in found]
    assert [f.size_bytes for f in files] == [f.size_bytes for f in fragments] == sizes


# --- rows by id -------------------------------------------------------------------------------------


def test_take_rows_keeps_the_requested_order(spark: SparkSession, uri: str) -> None:
    make(uri, enable_stable_row_ids=True)
    table = LanceTable.forPath(spark, uri)
    table.update("key = 'a'", {"value": "10"})
    table.delete("key = 'c'")
    assert rows(table.takeRows([3, 0, 2, 3])) == [("d", 4), ("a", 10), ("d", 4)]
    found = table.read(with_row_id=True, filter="value = 2").toPandas()
    assert rows(table.takeRows(found["_rowid"], ["value"])) == [(2,)]
    assert rows(table.takeRows([(1 << 32) + 1, 1], ["key"], by="_rowaddr")) == [("d",), ("b",)]
    assert rows(table.takeRows([])) == []
    wrongs: list[Any] = [[-1], ["a"], [True]]
    for wrong in wrongs:
        with pytest.raises(ArgumentError, match="whole numbers"):
            table.takeRows(wrong)
    with pytest.raises(ArgumentError, match="taken by"):
        table.takeRows([1], by="key")


# --- columns ----------------------------------------------------------------------------------------


def test_columns_are_renamed_cast_and_dropped(spark: SparkSession, uri: str) -> None:
    data: dict[str, list[Any]] = {
        "n": [1, 2, 3],
        "s": ["a", "b", None],
        "p": [{"x": 1, "y": 2}] * 3,
    }
    pennon.write_dataset(pa.table(data), uri, max_rows_per_file=2)
    table = LanceTable.forPath(spark, uri)
    table.renameColumn("p.x", "z")
    table.alterColumn("n", dataType="int", nullable=False)
    table.alterColumn("s", dataType=st.StringType(), nullable=True)
    table.dropColumns("p.y")
    found = lance.dataset(uri)
    found.validate()
    assert found.schema.field("n") == pa.field("n", pa.int32(), nullable=False)
    assert found.to_table().to_pylist() == [
        {"n": n, "s": s, "p": {"z": 1}} for n, s in zip(data["n"], data["s"], strict=True)
    ]
    assert table.toDF().dtypes[0] == ("n", "int")


@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        (lambda t: t.dropColumns("no"), NotFoundError, "no"),
        (lambda t: t.dropColumns(), ArgumentError, "at least one"),
        (lambda t: t.dropColumns(["key", "value"]), InvalidSchemaError, "all columns"),
        (lambda t: t.renameColumn("key", "value"), InvalidSchemaError, "value"),
        (lambda t: t.renameColumn("key", 1), TypeError, "newName must be str"),
        (lambda t: t.alterColumn("key"), ArgumentError, "dataType="),
        (lambda t: t.alterColumn("key", dataType="int"), InvalidSchemaError, "Cannot cast"),
        (lambda t: t.alterColumn("key", nullable=1), TypeError, "nullable must be bool"),
    ],
)
def test_column_changes_with_wrong_arguments_are_refused(
    table: LanceTable, act: Callable[[Any], Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        act(table)


# --- files ------------------------------------------------------------------------------------------


def test_compaction_takes_the_options_of_compact_files(table: LanceTable, uri: str) -> None:
    (line,) = table.compact(target_rows_per_fragment=4, data_storage_version="2.0").collect()
    assert (line.metrics.numFilesAdded, line.metrics.numFilesRemoved) == (1, 2)
    assert table.files().collect()[0].file_version == "2.0"
    assert rows_of(uri) == ROWS
    with pytest.raises(ArgumentError, match="Invalid compaction option"):
        table.compact(size=3)  # type: ignore[call-arg]


@pytest.mark.parametrize(("adapts", "tasks_of_core"), [("false", 2), ("true", 1)])
def test_a_merge_into_many_fragments_writes_few_files(
    spark: SparkSession, uri: str, adapts: str, tasks_of_core: int
) -> None:
    data = pa.table({"n": pa.array(range(40), pa.int64()), "m": pa.array(range(40), pa.int64())})
    pennon.write_dataset(data, uri, max_rows_per_file=2, enable_stable_row_ids=True)
    table = LanceTable.forPath(spark, uri)
    source = spark.range(80).withColumn("m", sf.col("id") + 100)
    wanted = {"spark.sql.shuffle.partitions": "24", "spark.sql.adaptive.enabled": adapts}
    before = {key: str(spark.conf.get(key)) for key in wanted}
    for key, value in wanted.items():
        spark.conf.set(key, value)
    try:
        merge = table.alias("t").merge(source.alias("s"), "t.n = s.id")
        merge = merge.whenMatchedUpdate(set={"m": "s.m"})
        merge.whenNotMatchedInsert(values={"n": "s.id", "m": "s.m"}).execute()
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)
    assert rows_of(uri) == [
        (n, n + 100) for n in sorted(range(80), key=lambda n: repr((n, n + 100)))
    ]
    tasks = tasks_of_core * spark.sparkContext.defaultParallelism
    assert len(lance.dataset(uri).get_fragments()) <= tasks
    ids = lance.dataset(uri).to_table(columns=["n", "_rowid"]).to_pylist()
    assert {row["n"]: row["_rowid"] for row in ids if row["n"] < 40} == {n: n for n in range(40)}


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_conditions_name_row_ids_and_addresses(spark: SparkSession, uri: str, stable: bool) -> None:
    make(uri, enable_stable_row_ids=stable)
    table = LanceTable.forPath(spark, uri)
    ids = pennon.dataset(uri).to_table(with_row_id=True)["_rowid"].to_pylist()
    assert table.count(f"_rowid >= {ids[1]} AND _rowid < {ids[3]}") == 2
    assert table.count("_rowaddr < 4294967296 AND value > 1") == 1
    table.update(f"_rowid IN ({ids[0]}, {ids[2]})", {"value": "10"})
    table.delete(f"_rowid = {ids[3]}")
    assert rows_of(uri) == [("a", 10), ("b", 2), ("c", 10)]
    assert table.count(f"_rowid = {ids[0]}") == (1 if stable else 0)
