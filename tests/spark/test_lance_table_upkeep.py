"""`LanceTable` beside pylance, its versions, upkeep, and tables that it makes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

import pennon
import pennon.spark
from pennon.errors import (
    AlreadyExistsError,
    ArgumentError,
    NotFoundError,
    UnsupportedError,
)
from pennon.spark import LanceTable
from tests.spark.small_table import ROWS, clauses, rows_of


@pytest.mark.parametrize("version", ["2.0", "2.1"])
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_merge_result_equals_that_of_pylance(
    spark: SparkSession, tmp_path: Path, version: Any, stable: bool
) -> None:
    old = pa.table({
        "id": pa.array(range(1000), pa.int64()),
        "text": [f"t{n}" for n in range(1000)],
        "list": [[n, n] for n in range(1000)],
        "word": pa.array([f"w{n % 7}" for n in range(1000)]).dictionary_encode(),
    })  # fmt: skip
    new = pa.table({"id": pa.array(range(900, 1100, 2), pa.int64()), "text": ["new"] * 100})
    uris = [str(tmp_path / name) for name in ("ours", "theirs")]
    for uri in uris:
        lance.write_dataset(
            old,
            uri,
            max_rows_per_file=300,
            data_storage_version=version,
            enable_stable_row_ids=stable,
        )
    source = spark.createDataFrame(new.to_pandas()).repartition(3)
    merge = LanceTable.forPath(spark, uris[0]).alias("t").merge(source.alias("s"), "t.id = s.id")
    merge = merge.whenMatchedUpdate(set={"text": "s.text"})
    merge.whenNotMatchedInsert(values={"id": "s.id", "text": "s.text"}).execute()
    theirs = lance.dataset(uris[1]).merge_insert("id").when_matched_update_all()
    theirs.execute(new)
    missing = new.filter(pa.compute.greater_equal(new["id"], 1000))
    rest = {name: pa.nulls(50, old.schema.field(name).type) for name in ("list", "word")}
    lance.write_dataset(
        pa.table({**{n: missing[n] for n in ("id", "text")}, **rest}), uris[1], mode="append"
    )
    seen = []
    for uri in uris:
        table = lance.dataset(uri)
        table.validate()
        columns = ["id", "text", "list", "word", *(["_rowid"] if stable else [])]
        rows = table.to_table(columns=columns).to_pylist()
        seen.append(sorted(rows, key=lambda row: row["id"]))
    old_rows = slice(0, 1000)
    assert seen[0][old_rows] == seen[1][old_rows]
    assert [{**row, "_rowid": 0} for row in seen[0]] == [{**row, "_rowid": 0} for row in seen[1]]


# --- versions and upkeep ----------------------------------------------------------------------------


def test_history_lists_operations_and_metrics(table: LanceTable, source: DataFrame) -> None:
    table.update("key = 'a'", {"value": "7"})
    table.delete("key = 'b'")
    clauses(table.merge(source, "key = k")).execute()
    lines = table.history().collect()
    assert [(line.version, line.operation) for line in lines] == [
        (4, "MERGE"), (3, "DELETE"), (2, "UPDATE"), (1, "WRITE"),
    ]  # fmt: skip
    merged, deleted, updated, written = (line.operationMetrics for line in lines)
    assert merged["numTargetRowsUpdated"] == "2"
    assert merged["numTargetRowsMatchedUpdated"] == "1"
    assert merged["numTargetRowsInserted"] == "1"
    assert merged["numTargetRowsNotMatchedBySourceDeleted"] == "1"
    assert deleted["numDeletedRows"] == "1"
    assert updated["numUpdatedRows"] == "1"
    assert (written["numFiles"], written["numOutputRows"]) == ("2", "4")
    assert lines[1].operationParameters == {"predicate": "key = 'b'"}
    assert [line.version for line in table.history(1).collect()] == [4]


def test_restore_to_a_version_and_to_a_time(table: LanceTable, uri: str) -> None:
    table.delete("key = 'a'")
    (first, *_) = reversed(table.history().collect())
    table.delete()
    (counts,) = table.restoreToVersion(2).collect()
    assert (counts.num_restored_files, counts.num_removed_files) == (2, 0)
    assert rows_of(uri) == ROWS[1:]
    table.restoreToTimestamp(first.timestamp.isoformat(sep=" "))
    assert rows_of(uri) == ROWS
    assert [line.operation for line in table.history(2).collect()] == ["RESTORE", "RESTORE"]
    with pytest.raises(ArgumentError, match="cannot be converted to a valid timestamp"):
        table.restoreToTimestamp("05/04/1999")
    with pytest.raises(TypeError, match="version needs to be an int but got '<class 'str'>'"):
        table.restoreToVersion("1")  # type: ignore[arg-type]


def test_compaction_of_all_and_of_some(spark: SparkSession, uri: str) -> None:
    for first in (0, 10, 20, 30):
        pennon.write_dataset(pa.table({"n": list(range(first, first + 10))}), uri, mode="append")
    table = LanceTable.forPath(spark, uri)
    (line,) = table.optimize().where("n % 40 >= 20").executeCompaction().collect()
    assert (line.metrics.numFilesRemoved, line.metrics.numFilesAdded) == (2, 1)
    assert (line.metrics.totalConsideredFiles, line.metrics.totalFilesSkipped) == (2, 0)
    assert [f.count_rows() for f in pennon.dataset(uri).get_fragments()] == [10, 10, 20]
    (line,) = table.optimize().executeCompaction().collect()
    assert line.metrics.numFilesAdded == 1
    assert lance.dataset(uri).to_table()["n"].to_pylist() == list(range(40))
    assert table.history(1).collect()[0].operation == "OPTIMIZE"


def test_vacuum_deletes_old_versions_after_retention_check(
    spark: SparkSession, table: LanceTable, uri: str
) -> None:
    table.update(set={"value": "0"})
    table.vacuum()
    assert len(pennon.dataset(uri).versions()) == 2
    with pytest.raises(ArgumentError, match="less than a week"):
        table.vacuum(0)
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        table.vacuum(0)
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert [each["version"] for each in pennon.dataset(uri).versions()] == [2]
    assert {value for _, value in rows_of(uri)} == {0}


@pytest.mark.parametrize("shallow", [True, False], ids=["shallow", "deep"])
def test_a_clone_has_the_rows_of_its_version(
    table: LanceTable, uri: str, tmp_path: Path, shallow: bool
) -> None:
    table.update("key = 'a'", {"value": "9"})
    moment = table.history(1).collect()[0].timestamp.isoformat(sep=" ")
    table.delete("key = 'b'")
    now, first, then = (str(tmp_path / name) for name in ("now", "first", "then"))
    clone = table.clone(now, shallow, properties={"owner": "me"})
    assert clone.detail().collect()[0].properties == {"owner": "me"}
    table.cloneAtVersion(1, first, shallow)
    table.cloneAtTimestamp(moment, then, shallow)
    seen = [
        sorted(map(tuple, LanceTable.forPath(table.spark, u).toDF().collect()))
        for u in (now, first, then)
    ]
    assert seen[0] == [("a", 9), ("c", 3), ("d", 4)]
    assert seen[1] == ROWS
    assert seen[2] == [("a", 9), *ROWS[1:]]
    assert any(Path(now, "data").glob("*")) == (not shallow)
    clone.delete("key = 'c'")
    assert len(rows_of(uri)) == 3
    with pytest.raises(AlreadyExistsError):
        table.clone(now, shallow)


@pytest.mark.parametrize("stable", [True, False], ids=["stable ids", "no ids"])
@pytest.mark.parametrize("shallow", [True, False], ids=["shallow", "deep"])
def test_clone_replaces_an_existing_table(
    table: LanceTable, tmp_path: Path, shallow: bool, stable: bool
) -> None:
    """Deletion files come along, the older versions stay, and the table goes on as one of its own."""
    table.delete("key = 'b'")
    other = str(tmp_path / "other.lance")
    rows = pa.table({"n": pa.array([1, 2], pa.int32())})
    lance.write_dataset(rows, other, enable_stable_row_ids=stable)
    clone = table.clone(other, shallow, replace=True, properties={"owner": "me"})
    assert sorted(rows_of(other)) == [("a", 1), ("c", 3), ("d", 4)]
    assert clone.detail().first().properties == {"owner": "me"}
    assert clone.history(1).first().operation == "CLONE"
    assert lance.dataset(other, version=1).to_table() == rows
    assert any(f.num_deletions for f in lance.dataset(other).get_fragments())
    clone.delete("key = 'c'")
    table.cloneAtVersion(1, other, shallow, replace=True)
    assert sorted(rows_of(other)) == ROWS
    clone.update("key = 'a'", {"value": "7"})
    assert sorted(rows_of(other)) == [("a", 7), *ROWS[1:]]
    assert len(rows_of(table.uri)) == 3
    ids = lance.dataset(other).to_table(columns=[], with_row_id=True)["_rowid"].to_pylist()
    assert len(set(ids)) == 4
    lance.dataset(other).validate()


def test_clone_of_a_clone_replaces_the_first_clone(table: LanceTable, tmp_path: Path) -> None:
    """Of files that lie in the table's own place none becomes another's."""
    side = str(tmp_path / "side.lance")
    clone = table.clone(side, isShallow=True)
    clone.delete("key = 'a'")
    pennon.spark.write(clone.toDF().limit(1), side, "append")
    before = sorted(rows_of(side))
    clone.clone(table.uri, isShallow=True, replace=True)
    assert sorted(rows_of(table.uri)) == before
    with pytest.raises(ArgumentError, match="no clone of itself"):
        table.clone(table.uri, isShallow=True, replace=True)
    with pytest.raises(TypeError, match="properties needs to be a dict"):
        table.clone(side, properties=10)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="All property values including 10"):
        table.clone(side, properties={"key": 10})  # type: ignore[dict-item]


# --- making -----------------------------------------------------------------------------------------


def test_table_builder_creates_columns_and_properties(spark: SparkSession, uri: str) -> None:
    builder = (
        LanceTable.create(spark)
        .location(uri)
        .addColumn("id", "bigint", nullable=False, comment="the key")
        .addColumns(st.StructType([st.StructField("tags", st.ArrayType(st.StringType()))]))
        .comment("for a test")
        .clusterBy("id")
        .property("enable_stable_row_ids", "true")
        .property("owner", "me")
    )
    table = builder.execute()
    schema = lance.dataset(uri).schema
    assert (schema.field("id").type, schema.field("id").nullable) == (pa.int64(), False)
    assert schema.field("id").metadata == {b"comment": b"the key"}
    (detail,) = table.detail().collect()
    assert (detail.format, detail.numFiles, detail.numRows) == ("lance", 0, 0)
    assert (detail.description, detail.clusteringColumns) == ("for a test", ["id"])
    assert detail.properties == {"owner": "me"}
    assert pennon.dataset(uri).has_stable_row_ids
    with pytest.raises(AlreadyExistsError):
        builder.execute()


def test_table_builder_without_method_chaining(spark: SparkSession, uri: str) -> None:
    builder = LanceTable.create(spark)
    builder.location(uri)
    for name in ("a", "b"):
        builder.addColumn(name, "int")
    assert builder.execute().toDF().columns == ["a", "b"]


def test_table_builder_modes_create_and_replace(
    spark: SparkSession, table: LanceTable, uri: str, tmp_path: Path
) -> None:
    other = str(tmp_path / "other.lance")
    with pytest.raises(NotFoundError):
        LanceTable.replace(spark).location(other).addColumn("n", "int").execute()
    LanceTable.createIfNotExists(spark).location(uri).addColumn("n", "int").execute()
    assert rows_of(uri) == ROWS
    LanceTable.createOrReplace(spark).location(other).addColumn("n", "int").execute()
    LanceTable.createOrReplace(spark).location(uri).addColumn("n", "int").execute()
    assert table.toDF().columns == ["n"]
    assert table.toDF().count() == 0
    assert LanceTable.isDeltaTable(spark, uri)
    assert not LanceTable.isLanceTable(spark, str(tmp_path / "nothing"))


@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        (lambda s: LanceTable.create(s).tableName("t").addColumn("n", "int").execute(), ArgumentError, "no location"),
        (lambda s: LanceTable.create(s).location("x").execute(), ArgumentError, "at least one column"),
        (lambda s: LanceTable.create(s).partitionedBy("n"), UnsupportedError, "no partitions"),
        (lambda s: LanceTable.create(s).addColumn("n", "int", generatedAlwaysAs="1"), UnsupportedError, "generated"),
        (lambda s: LanceTable.create(s).addColumn(s, "int"), TypeError, "colName must be str"),
        (lambda s: LanceTable.create(s).addColumn("n", "int", comment=s), TypeError, "comment must be str"),
        (lambda s: LanceTable.create(s).addColumn("n", "int", nullable=s), TypeError, "nullable must be bool"),
        (lambda s: LanceTable.create(s).addColumns([st.StructField("n", st.LongType()), s]), TypeError, "StructFields"),
        (lambda s: LanceTable.create(s).clusterBy(["n", s]), TypeError, "clusterBy column must be str"),
        (lambda s: LanceTable.forName(s, "t"), UnsupportedError, "use forPath"),
        (lambda s: LanceTable.convertToLance(s, "parquet.`x`"), ArgumentError, "say location="),
    ],
)  # fmt: skip
def test_table_builder_with_wrong_arguments_is_refused(
    spark: SparkSession, act: Callable[[Any], Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        act(spark)


def test_parquet_becomes_a_table(spark: SparkSession, uri: str, tmp_path: Path) -> None:
    parquet = str(tmp_path / "files.parquet")
    spark.createDataFrame(ROWS, "key string, value bigint").write.partitionBy("value").parquet(
        parquet
    )
    table = LanceTable.convertToLance(spark, f"parquet.`{parquet}`", "value bigint", location=uri)
    assert rows_of(uri) == ROWS
    assert table.toDF().schema["value"].dataType == st.LongType()
