"""A table as a source of streams: its rows once, in the order of commits; limits, restarts, rules."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.types import StructType

import pennon
from pennon.spark.source.data_source import LanceDataSource
from pennon.spark.source.stream_source import StreamOptions, UnlimitedStreamReader
from tests.spark.flows import Flow, finish, write


@pytest.fixture
def flow(spark: SparkSession, tmp_path: Path) -> Flow:
    """Return a stream from files to a table."""
    return Flow(spark, tmp_path)


class Reading:
    """A stream of a table's rows into another folder, batch by batch."""

    def __init__(self, spark: SparkSession, uri: str, folder: Path) -> None:
        self.spark, self.uri, self.folder = spark, uri, folder
        self.kind = "lance"

    def run(self, **options: str) -> list[list[Any]]:
        """Read all that there is, and return the ids of each batch of this run."""
        batches: list[list[Any]] = []
        rows = self.spark.readStream.format(self.kind).options(**options).load(self.uri)

        def keep(batch: DataFrame, number: int) -> None:
            batches.append([tuple(row) if len(row) > 1 else row[0] for row in batch.collect()])

        columns = [
            name for name in ("_change_type", "_commit_version", "id") if name in rows.columns
        ]
        writer = rows.select(*columns).writeStream.foreachBatch(keep)
        writer = writer.option("checkpointLocation", str(self.folder / "reading"))
        finish(writer.trigger(availableNow=True).start())
        return [sorted(batch) for batch in batches]

    def offsets(self) -> list[dict[str, Any]]:
        """Return the offsets in the checkpoint, in the order of batches."""
        files = sorted(
            (self.folder / "reading/offsets").glob("[0-9]*"), key=lambda at: int(at.name)
        )
        return [json.loads(each.read_text().splitlines()[-1]) for each in files]


@pytest.fixture
def reading(spark: SparkSession, tmp_path: Path) -> Reading:
    """A stream of a table with rows 0 to 9 in four fragments, row 4 deleted."""
    uri = str(tmp_path / "r.lance")
    write(uri, range(10), max_rows_per_file=3)
    pennon.dataset(uri).delete("id = 4")
    return Reading(spark, uri, tmp_path)


def test_stream_source_gives_the_rows_and_then_appended_rows(reading: Reading) -> None:
    assert reading.run() == [[0, 1, 2, 3, 5, 6, 7, 8, 9]]
    assert reading.run() == []
    write(reading.uri, [20, 21])
    ds = pennon.dataset(reading.uri)
    ds.optimize.compact_files()
    ds.create_scalar_index("id", "BTREE")
    ds.add_columns({"more": "id + 1"})
    lance.write_dataset(
        pa.table({"id": [22], "k": ["x"], "more": [23]}), reading.uri, mode="append"
    )
    assert reading.run() == [[20, 21, 22]]
    newest = pennon.dataset(reading.uri).version
    began = {"version": 2, "fragments": 0, "snapshot": True}
    expected = {"version": newest + 1, "fragments": 0, "rows": 12, "began": began}
    assert reading.offsets()[-1] == expected


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"maxFilesPerTrigger": "1"}, [[0, 1, 2], [3, 5], [6, 7, 8], [9], [20, 21]]),
        ({"maxFilesPerTrigger": "3"}, [[0, 1, 2, 3, 5, 6, 7, 8], [9, 20, 21]]),
        ({"maxRowsPerTrigger": "5"}, [[0, 1, 2, 3, 5], [6, 7, 8, 9], [20, 21]]),
        ({"maxBytesPerTrigger": "1"}, [[0, 1, 2], [3, 5], [6, 7, 8], [9], [20, 21]]),
    ],
)
def test_stream_source_keeps_to_limits_of_fragments_rows_and_bytes(
    reading: Reading, limits: dict[str, str], expected: list[list[int]]
) -> None:
    write(reading.uri, [20, 21])
    snapshot = pennon.dataset(reading.uri).version
    found = reading.run(**limits)
    assert [row for batch in found for row in batch] == [0, 1, 2, 3, 5, 6, 7, 8, 9, 20, 21]
    assert found == expected
    assert reading.offsets()[0]["version"] == snapshot
    assert reading.offsets()[0]["snapshot"]


def test_stream_source_gives_the_same_rows_in_a_first_batch_that_is_run_again(
    reading: Reading,
) -> None:
    """Spark does not keep where a query began."""
    assert reading.run(maxFilesPerTrigger="2")[0] == [0, 1, 2, 3, 5]
    for pattern in ("commits/*", "commits/.*", "offsets/[1-9]*", "offsets/.[1-9]*"):
        for each in (reading.folder / "reading").glob(pattern):
            each.unlink()
    write(reading.uri, [20])
    pennon.dataset(reading.uri).optimize.compact_files()
    assert reading.run(maxFilesPerTrigger="2") == [[0, 1, 2, 3, 5], [6, 7, 8, 9], [20]]


def test_stream_source_begins_at_a_version_a_tag_a_time_or_the_end(reading: Reading) -> None:
    write(reading.uri, [20])
    ds = pennon.dataset(reading.uri)
    ds.tags.create("third", 3)
    when = ds.versions()[-1]["timestamp"].astimezone().isoformat()
    write(reading.uri, [21])
    for options, expected in [
        ({"startingVersion": "4"}, [[21]]),
        ({"startingVersion": "third"}, [[20, 21]]),
        ({"startingTimestamp": when}, [[20, 21]]),
        ({"startingVersion": "latest"}, [[]]),
        ({"startingVersion": "1", "ignoreDeletes": "true"}, [[*range(10), 20, 21]]),
        ({"startingVersion": "earliest", "skipChangeCommits": "true"}, [[*range(10), 20, 21]]),
    ]:
        assert reading.run(**options) == expected, options
        shutil.rmtree(reading.folder / "reading")


def test_stream_source_refuses_a_version_that_changes_rows(reading: Reading) -> None:
    reading.run()
    write(reading.uri, [20])
    pennon.dataset(reading.uri).update({"k": "'new'"}, where="id = 2")
    write(reading.uri, [21])
    with pytest.raises(Exception, match=r"version 4 \(update\) deleted or updated rows"):
        reading.run()
    with pytest.raises(Exception, match=r"version 4 \(update\) deleted or updated rows"):
        reading.run(ignoreDeletes="true")
    assert reading.offsets()[-1]["version"] == 4, "what came before was read"
    assert reading.run(skipChangeCommits="true") == [[21]]


def test_stream_source_names_a_version_that_was_cleaned_up(reading: Reading) -> None:
    reading.run()
    for number in range(20, 25):
        write(reading.uri, [number])
    ds = pennon.dataset(reading.uri)
    ds.cleanup_old_versions(retain_versions=1, delete_unverified=True)
    with pytest.raises(Exception, match=r"version 3 of '.*' does not exist; was it cleaned up\?"):
        reading.run()


def test_stream_source_lease_tag_keeps_versions_from_clean_up(reading: Reading) -> None:
    reading.run(leaseTag="reader")
    for number in range(20, 25):
        write(reading.uri, [number])
    ds = pennon.dataset(reading.uri)
    ds.cleanup_old_versions(retain_versions=1, delete_unverified=True)
    assert reading.run(leaseTag="reader", maxFilesPerTrigger="4") == [[20, 21, 22, 23], [24]]
    ds.tags.create("mine", ds.version)
    shutil.rmtree(reading.folder / "reading")
    with pytest.raises(Exception, match="the tag 'mine' names version 7, and keeps no others"):
        reading.run(leaseTag="mine")


def test_stream_source_lease_tag_keeps_versions_of_a_branch(reading: Reading) -> None:
    ds = pennon.dataset(reading.uri)
    side = ds.create_branch("side", ds.version)
    assert reading.run(branch="side", leaseTag="reader") == [[0, 1, 2, 3, 5, 6, 7, 8, 9]]
    write(reading.uri, [99])
    for number in range(20, 23):
        rows = pa.table({"id": [number], "k": [f"k{number}"]})
        side = pennon.write_dataset(rows, side, mode="append")
    for each in (side, pennon.dataset(reading.uri)):
        each.cleanup_old_versions(retain_versions=1, delete_unverified=True)
    assert reading.run(branch="side", leaseTag="reader") == [[20, 21, 22]]


def test_stream_source_goes_on_while_manifests_get_names_of_the_other_scheme(
    spark: SparkSession, tmp_path: Path
) -> None:
    uri = str(tmp_path / "old.lance")
    write(uri, range(3), enable_v2_manifest_paths=False)
    reading = Reading(spark, uri, tmp_path)
    assert reading.run() == [[0, 1, 2]]
    write(uri, [20])
    pennon.dataset(uri).migrate_manifest_paths_v2()
    write(uri, [21])
    assert reading.run() == [[20, 21]]
    changes = spark.read.format("lance").option("readChangeFeed", "true")
    found = changes.option("startingVersion", "1").load(uri).select("id").collect()
    assert sorted(row.id for row in found) == [0, 1, 2, 20, 21]


def test_stream_source_refuses_a_table_that_was_made_anew(reading: Reading) -> None:
    reading.run()
    shutil.rmtree(reading.uri)
    write(reading.uri, [1])
    with pytest.raises(Exception, match="the stream is at version 3, and 1 is the newest"):
        reading.run()


def test_stream_source_goes_on_behind_a_dropped_column(reading: Reading) -> None:
    """A query that starts anew shows the columns of then."""
    reading.run()
    write(reading.uri, [20])
    pennon.dataset(reading.uri).drop_columns(["k"])
    pennon.write_dataset(pa.table({"id": [21]}), reading.uri, mode="append")
    assert reading.run() == [[20, 21]]


def test_stream_source_filters_and_narrows(reading: Reading) -> None:
    assert reading.run(filter="k > 'k5'", columns="id") == [[6, 7, 8, 9]]
    with pytest.raises(Exception, match="filter is for a stream of rows"):
        reading.run(filter="id > 1", readChangeFeed="true")


def test_stream_source_of_changes_shows_each_version(reading: Reading) -> None:
    first = reading.run(readChangeFeed="true")
    assert first == [[("insert", 2, n) for n in (0, 1, 2, 3, 5, 6, 7, 8, 9)]]
    write(reading.uri, [20])
    pennon.dataset(reading.uri).delete("id < 2")
    pennon.dataset(reading.uri).optimize.compact_files()
    assert reading.run(readChangeFeed="true") == [
        [("delete", 4, 0), ("delete", 4, 1), ("insert", 3, 20)]
    ]


class SourceWithoutLimits(LanceDataSource):
    """The source as Spark 4.1 uses it."""

    @classmethod
    def name(cls) -> str:
        return "lance_without_limits"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return UnlimitedStreamReader(StreamOptions.parse(self.options), schema)


def test_stream_source_of_spark_4_1_reads_all_there_is(reading: Reading) -> None:
    reading.spark.dataSource.register(SourceWithoutLimits)
    reading.kind = "lance_without_limits"
    assert reading.run() == [[0, 1, 2, 3, 5, 6, 7, 8, 9]]
    write(reading.uri, [20])
    write(reading.uri, [21])
    found = [batch for batch in reading.run() if batch]
    assert found == [[20, 21]]
    assert [batch for batch in reading.run() if batch] == []


def test_stream_from_table_to_table_has_each_row_once(flow: Flow, reading: Reading) -> None:
    """A source and a sink, batch by batch, with rows appended and batches run again."""
    for number in range(20, 26):
        rows = flow.spark.readStream.format("lance").option("maxFilesPerTrigger", "2")
        flow.run(rows.load(reading.uri))
        flow.forget_last_commit()
        write(reading.uri, [number])
    flow.run(flow.spark.readStream.format("lance").load(reading.uri))
    assert Counter(flow.ids()) == Counter(pennon.dataset(reading.uri).to_table()["id"].to_pylist())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"version": "1"}, "option version: a stream does not end at a version"),
        ({"endingVersion": "1"}, "option endingversion: a stream does not end"),
        ({"mergeOn": "id"}, "option mergeOn is for writeStream"),
        ({"maxFilesPerTrigger": "0"}, "option maxfilespertrigger is a positive whole number"),
    ],
)
def test_stream_source_refuses_options(
    reading: Reading, options: dict[str, str], said: str
) -> None:
    with pytest.raises(Exception, match=said):
        reading.run(**options)


def test_batch_reads_and_writes_refuse_options_of_streams(spark: SparkSession, uri: str) -> None:
    write(uri, [1])
    with pytest.raises(Exception, match="option maxFilesPerTrigger is for readStream"):
        spark.read.format("lance").option("maxFilesPerTrigger", "1").load(uri).collect()
    rows = spark.range(1).withColumn("k", sf.lit("k"))
    with pytest.raises(Exception, match="option mergeOn is for writeStream"):
        rows.write.format("lance").mode("append").option("mergeOn", "id").save(uri)
