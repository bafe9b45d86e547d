"""A table as a sink of streams, and numbered batches: each is written once."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any
from uuid import UUID

import lance
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

import pennon
from pennon.spark import LanceDataSource, LanceTable, upsert_batches
from tests.spark.flows import SCHEMA, Flow, drop, finish, write


@pytest.fixture
def flow(spark: SparkSession, tmp_path: Path) -> Flow:
    """A stream of two files of rows."""
    made = Flow(spark, tmp_path)
    drop(made.inputs, [1, 2, 3])
    drop(made.inputs, [4, 5])
    return made


# --- the sink --------------------------------------------------------------------------------------


def test_stream_sink_makes_a_table_and_one_version_for_each_batch(flow: Flow) -> None:
    flow.run(flow.source())
    assert flow.ids() == [1, 2, 3, 4, 5]
    assert pennon.dataset(flow.uri).version == 2
    drop(flow.inputs, [6])
    flow.run(flow.source())
    assert flow.ids() == [1, 2, 3, 4, 5, 6]
    assert pennon.dataset(flow.uri).version == 3
    assert lance.dataset(flow.uri).count_rows() == 6


def test_stream_sink_batch_that_is_run_again_is_not_written_twice(flow: Flow) -> None:
    """What came in between makes no difference: appends by pylance, compaction, clean-up."""
    flow.run(flow.source())
    for number in range(120):
        lance.write_dataset(pa.table({"id": [1000 + number], "k": ["x"]}), flow.uri, mode="append")
    ds = pennon.dataset(flow.uri)
    ds.optimize.compact_files()
    ds.cleanup_old_versions(retain_versions=1, delete_unverified=True)
    lance.dataset(flow.uri).update({"k": "'y'"}, where="id = 1000")
    expected = flow.ids()
    flow.forget_last_commit()
    flow.run(flow.source())
    assert flow.ids() == expected
    drop(flow.inputs, [7])
    flow.run(flow.source())
    assert flow.ids() == sorted([*expected, 7])


def test_stream_sink_two_queries_write_to_one_table(flow: Flow, tmp_path: Path) -> None:
    other = Flow(flow.spark, tmp_path / "other")
    other.inputs.parent.mkdir()
    other.uri = flow.uri
    drop(other.inputs, [11, 12])
    flow.run(flow.source())
    other.run(other.source())
    assert flow.ids() == [1, 2, 3, 4, 5, 11, 12]


def test_stream_sink_txn_app_id_holds_over_a_new_checkpoint(flow: Flow) -> None:
    flow.run(flow.source(), txnAppId="loader")
    shutil.rmtree(flow.checkpoint)
    flow.run(flow.source(), txnAppId="loader")
    assert flow.ids() == [1, 2, 3, 4, 5]


def test_stream_sink_names_other_queries_at_a_first_batch(
    tmp_path: Path,
) -> None:
    """Called as Spark calls it, whose own process prints the warning."""
    uri = str(tmp_path / "t.lance")
    schema = StructType().add("id", "long").add("k", "string")
    rows = pa.record_batch({"id": pa.array([1]), "k": pa.array(["x"])})

    def commit(query: str, number: int, **options: str) -> list[str]:
        checkpoint = tmp_path / query
        checkpoint.mkdir(exist_ok=True)
        (checkpoint / "metadata").write_text(json.dumps({"id": query}))
        given = {"path": uri, "checkpointLocation": str(checkpoint), **options}
        writer: Any = LanceDataSource(given).streamWriter(schema, overwrite=False)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            writer.commit([writer.write(iter([rows]))], number)
        return [str(each.message) for each in told]

    first, second = str(UUID(int=1)), str(UUID(int=2))
    assert commit(first, 0) == []
    assert commit(first, 1) == []
    (said,) = commit(second, 0)
    assert f"has batches of {first} (last batch: 1)" in said
    assert commit(second, 1) == []
    assert commit(str(UUID(int=3)), 0, txnAppId="loader") == []
    assert pennon.dataset(uri).count_rows() == 5


def test_stream_sink_complete_mode_writes_the_table_anew(flow: Flow) -> None:
    counts = flow.source().groupBy((sf.col("id") % 2).alias("odd")).count()
    flow.run(counts, "complete")
    found = pennon.dataset(flow.uri).to_table().to_pylist()
    assert sorted((row["odd"], row["count"]) for row in found) == [(0, 2), (1, 3)]
    drop(flow.inputs, [7])
    flow.run(counts, "complete")
    found = pennon.dataset(flow.uri).to_table().to_pylist()
    assert sorted((row["odd"], row["count"]) for row in found) == [(0, 2), (1, 4)]


def test_stream_sink_merge_on_keys_replaces_the_rows_that_have_them(flow: Flow) -> None:
    flow.run(flow.source(), mergeOn="id")
    drop(flow.inputs, [2, 3, 6])
    changed = flow.source().withColumn("k", sf.lit("new"))
    flow.run(changed, mergeOn="id")
    found = {row["id"]: row["k"] for row in pennon.dataset(flow.uri).to_table().to_pylist()}
    assert found == {1: "k1", 2: "new", 3: "new", 4: "k4", 5: "k5", 6: "new"}
    flow.forget_last_commit()
    version = pennon.dataset(flow.uri).version
    flow.run(changed, mergeOn="id")
    assert pennon.dataset(flow.uri).version == version


def test_stream_in_update_mode_upserts_each_batch_once(flow: Flow) -> None:
    """Spark gives this mode to no sink in Python: `upsert_batches` is for ``foreachBatch``."""
    counts = flow.source().groupBy((sf.col("id") % 2).alias("odd")).count()

    def run() -> int:
        writer = counts.writeStream.outputMode("update").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(flow.checkpoint))
        finish(writer.foreachBatch(upsert_batches(flow.uri, on=["odd"])).start())
        found = pennon.dataset(flow.uri)
        rows = found.to_table().to_pylist()
        assert len({row["odd"] for row in rows}) == len(rows)
        return sum(row["count"] for row in rows)

    assert run() == 5
    drop(flow.inputs, [7])
    assert run() == 6
    version = pennon.dataset(flow.uri).version
    flow.forget_last_commit()
    assert run() == 6
    assert pennon.dataset(flow.uri).version == version


def test_stream_sink_merge_on_refuses_a_batch_with_two_rows_of_one_key(flow: Flow) -> None:
    rows = flow.source().withColumn("k", sf.lit("same"))
    with pytest.raises(Exception, match=r"\d rows of 1 different values of mergeOn \(k\)"):
        flow.run(rows, mergeOn="k")


def test_stream_sink_compacts_small_fragments_as_the_table_grows(flow: Flow) -> None:
    for number in range(3, 17):
        drop(flow.inputs, [10 * number, 10 * number + 1])
    flow.run(flow.source().coalesce(1), autoCompact="true")
    assert len(flow.ids()) == 33
    assert len(pennon.dataset(flow.uri).get_fragments()) == 1
    drop(flow.inputs, [999])
    flow.run(flow.source().coalesce(1), autoCompact="true")
    assert len(pennon.dataset(flow.uri).get_fragments()) == 2
    flow.forget_last_commit()
    flow.run(flow.source().coalesce(1), autoCompact="true")
    assert len(flow.ids()) == 34


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"replaceWhere": "id = 1"}, "option replaceWhere is for writes of one batch"),
        ({"txnVersion": "1"}, "option txnversion is for writes of one batch"),
        ({"ignoreDeletes": "true"}, "option ignoreDeletes is for readStream"),
        ({"mergeOn": "zz"}, "zz"),
    ],
)
def test_stream_sink_refuses_options(flow: Flow, options: dict[str, str], said: str) -> None:
    with pytest.raises(Exception, match=f"(?i){said}"):
        flow.run(flow.source(), **options)


# --- batches that are numbered by their application ------------------------------------------------


def test_batches_of_an_application_are_written_once(spark: SparkSession, uri: str) -> None:
    rows = spark.range(3).withColumn("k", sf.lit("a"))

    def numbered(version: int) -> Any:
        return {"txn_app_id": "nightly", "txn_version": version}

    assert pennon.spark.write(rows, uri, **numbered(0)) == 1
    assert pennon.spark.write(rows, uri, "append", **numbered(1)) == 2
    assert pennon.spark.write(rows, uri, "append", **numbered(1)) == 2
    assert pennon.spark.write(rows, uri, "append", **numbered(0)) == 2
    assert pennon.spark.write(rows, uri, "append", txn_app_id="other", txn_version=0) == 3
    writer = rows.write.format("lance").mode("append").option("txnAppId", "nightly")
    writer.option("txnVersion", "2").save(uri)
    writer.option("txnVersion", "2").save(uri)
    assert pennon.dataset(uri).count_rows() == 12
    assert pennon.spark.write(rows, uri, "overwrite", **numbered(2)) == 4
    assert pennon.spark.write(rows, uri, "overwrite", where="id < 9", **numbered(2)) == 4
    assert pennon.spark.write(rows, uri, "overwrite", overwrite_by=["id"], **numbered(2)) == 4
    assert pennon.spark.write(rows, uri, "overwrite", overwrite_by=["id"], **numbered(3)) == 5
    assert pennon.dataset(uri).count_rows() == 3


def test_changes_of_an_application_are_made_once(spark: SparkSession, uri: str) -> None:
    write(uri, range(10))
    table = LanceTable.forPath(spark, uri)

    def affected(frame: DataFrame) -> int:
        return int(frame.first()[0])  # type: ignore[index]

    new = spark.createDataFrame([(3, "x"), (99, "y")], SCHEMA)
    merge = table.alias("t").merge(new.alias("s"), "t.id = s.id")
    merge = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll()
    for expected in (2, 0):
        assert affected(merge.execute(txnAppId="a", txnVersion=7)) == expected
    for expected in (1, 0):
        found = table.update("id = 99", {"k": "'z'"}, txnAppId="a", txnVersion=8)
        assert affected(found) == expected
    for expected in (11, 0):
        assert affected(table.update(None, {"k": "'z'"}, txnAppId="a", txnVersion=9)) == expected
    for expected in (5, 0):
        assert affected(table.delete("id < 5", txnAppId="a", txnVersion=10)) == expected
    for expected in (6, 0):
        assert affected(table.delete(txnAppId="a", txnVersion=11)) == expected
    assert pennon.dataset(uri).version == 6
    with pytest.raises(ValueError, match="go together: give both, or none"):
        table.delete(txnAppId="a")
