"""`readChangeFeed` as a batch: the rows that versions changed, as `LanceDataset.changes` tells them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import pennon
import pennon.spark
from pennon.spark import LanceTable

COLUMNS = ["id", "x", "l"]


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Return a table with stable row ids and a history."""
    path = str(tmp_path / "t.lance")
    rows = pa.table(
        {"id": range(100), "x": [f"x{n}" for n in range(100)], "l": [[n] for n in range(100)]}
    )
    ds = pennon.write_dataset(rows, path, max_rows_per_file=30, enable_stable_row_ids=True)
    ds.delete("id % 10 = 3")
    ds.update({"x": "'new'"}, where="id < 5")
    ds.optimize.compact_files()
    ds.insert(pa.table({"id": [200], "x": ["y"], "l": [[1, 2]]}))
    return path


def feed(spark: SparkSession, uri: str, **options: Any) -> DataFrame:
    """Return a change feed."""
    reader = spark.read.format("lance").option("readChangeFeed", "true")
    return reader.options(**{name: str(value) for name, value in options.items()}).load(uri)


def rows_of(changes: pa.Table) -> list[dict[str, Any]]:
    """Return changes in an order of their own."""
    return sorted(changes.to_pylist(), key=repr)


@pytest.mark.parametrize("versions", [(1, None), (2, 3), (3, 3), (4, 4), (5, None)])
def test_change_feed_of_versions_equals_changes_of_the_dataset(
    spark: SparkSession, uri: str, versions: tuple[int, int | None]
) -> None:
    first, last = versions
    options = {"startingVersion": first} | ({} if last is None else {"endingVersion": last})
    found = feed(spark, uri, **options).toArrow()
    expected = pennon.dataset(uri).changes(first - 1, last).read_all()
    assert found.schema.names == expected.schema.names
    assert rows_of(found) == rows_of(expected)
    table = LanceTable.forPath(spark, uri)
    assert rows_of(table.changes(first - 1, last).toArrow()) == rows_of(expected)
    narrow = table.changes(first - 1, last, columns=["x"]).toArrow()
    assert rows_of(narrow) == rows_of(expected.select(narrow.schema.names))


def test_change_feed_by_time_has_the_versions_in_between(spark: SparkSession, uri: str) -> None:
    ds = pennon.dataset(uri)
    times = {n: pennon.dataset(uri, version=n).snapshot.manifest.timestamp for n in range(1, 6)}
    start, end = times[2].isoformat(), (times[3] + timedelta(microseconds=1)).isoformat()
    found = feed(spark, uri, startingTimestamp=start, endingTimestamp=end).toArrow()
    assert rows_of(found) == rows_of(ds.changes(1, 3).read_all())


def test_change_feed_of_chosen_columns(spark: SparkSession, uri: str) -> None:
    found = feed(spark, uri, startingVersion=2, endingVersion=2, columns="id")
    assert found.columns == ["id", "_change_type", "_commit_version", "_commit_timestamp"]
    assert sorted(row.id for row in found.collect()) == list(range(3, 100, 10))
    assert found.filter("_change_type = 'delete' AND id > 50").count() == 5


def test_change_feed_of_added_columns_shows_null_in_rows_before(
    spark: SparkSession, uri: str
) -> None:
    pennon.dataset(uri).add_columns({"twice": "id * 2"})
    found = feed(spark, uri, startingVersion=2, endingVersion=2, columns="id,twice").collect()
    assert {row.twice for row in found} == {None}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs startingVersion or startingTimestamp"),
        ({"startingVersion": 3, "endingVersion": 2}, "the end lies before the beginning"),
        ({"startingVersion": 1, "endingVersion": 9}, "beyond the newest version, 6"),
        ({"startingVersion": 1, "version": 3}, "ends at endingVersion"),
        ({"startingVersion": 1, "columns": "nope"}, "no column 'nope'"),
        ({"startingTimestamp": "2030-01-01T00:00:00Z"}, "no version was committed"),
    ],
)
def test_change_feed_refuses_options(
    spark: SparkSession, uri: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(Exception, match=message):
        feed(spark, uri, **options).collect()


def test_starting_version_without_change_feed_is_refused(spark: SparkSession, uri: str) -> None:
    with pytest.raises(Exception, match="for readChangeFeed=true"):
        spark.read.format("lance").option("startingVersion", "1").load(uri).collect()


def test_change_feed_as_a_table_function_of_sql(spark: SparkSession, uri: str) -> None:
    pennon.spark.register(spark)
    expected = pennon.dataset(uri).changes(1, 3).read_all()
    found = spark.sql(f"SELECT * FROM lance_changes('{uri}', 1, 3)").toArrow()
    assert rows_of(found) == rows_of(expected)
    newest = spark.sql(f"SELECT count(*) FROM lance_changes('{uri}', 1)").collect()[0][0]
    assert newest == pennon.dataset(uri).changes(1).read_all().num_rows
    with pytest.raises(Exception, match="begin is a literal"):
        spark.sql(f"SELECT * FROM lance_changes('{uri}', NULL)").collect()


@pytest.mark.parametrize("net", [False, True])
def test_change_feed_of_net_changes(spark: SparkSession, uri: str, net: bool) -> None:
    expected = pennon.dataset(uri).changes(1, net=net).read_all()
    found = feed(spark, uri, startingVersion=2, netChanges=str(net).lower()).toArrow()
    assert rows_of(found) == rows_of(expected)
    table = LanceTable.forPath(spark, uri)
    assert rows_of(table.changes(1, net=net).toArrow()) == rows_of(expected)


def test_change_feed_of_blobs_has_their_bytes(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "blobs.lance")
    values = [b"a" * 10, None, b"c" * 200_000, b""]
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    rows = pa.table([range(4), values], schema=pa.schema([pa.field("id", pa.int64()), blob]))
    kept: dict[str, Any] = {"data_storage_version": "2.1", "enable_stable_row_ids": True}
    ds = pennon.write_dataset(rows, path, max_rows_per_file=3, **kept)
    ds.update({"id": "id + 10"}, where="id = 2")
    ds.delete("id = 0")
    found = feed(spark, path, startingVersion=1).collect()
    assert sorted((row._commit_version, row._change_type, row.id, row.b) for row in found) == [
        (1, "insert", 0, values[0]),
        (1, "insert", 1, values[1]),
        (1, "insert", 2, values[2]),
        (1, "insert", 3, values[3]),
        (2, "update_postimage", 12, values[2]),
        (2, "update_preimage", 2, values[2]),
        (3, "delete", 0, values[0]),
    ]


def test_change_feed_of_blobs_in_files_of_their_own_is_refused_by_name(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "blobs.lance")
    schema = pa.schema([pa.field("id", pa.int64()), pennon.blob_field("b")])
    rows = pa.table([pa.array(range(2)), pennon.blob_array([b"a", None])], schema=schema)
    pennon.write_dataset(rows, path, data_storage_version="2.2")
    with pytest.raises(Exception, match="column 'b' holds blobs of version 2"):
        feed(spark, path, startingVersion=1).collect()
    assert feed(spark, path, startingVersion=1, columns="id").count() == 2


def test_change_feed_of_a_table_with_files_in_several_base_paths(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "table.lance")
    bases = [
        pennon.DatasetBasePath(str(tmp_path / "one"), name="one", id=4),
        pennon.DatasetBasePath(str(tmp_path / "two"), name="two", is_dataset_root=True, id=7),
    ]
    rows = pa.table({"id": range(6), "x": range(6)})
    cut: dict[str, Any] = {"max_rows_per_file": 2, "enable_stable_row_ids": True}
    pennon.write_dataset(rows, path, initial_bases=bases, target_bases=["one", "two"], **cut)
    ds = pennon.dataset(path)
    ds.update({"x": "x * 10"}, where="id % 2 = 0")
    ds.delete("id = 5")
    places = {file.base_id for each in ds.get_fragments() for file in each.data_files()}
    assert {4, 7} <= places
    expected = pennon.dataset(path).changes(0).read_all()
    assert rows_of(feed(spark, path, startingVersion=1).toArrow()) == rows_of(expected)
    assert expected.num_rows == 6 + 2 * 3 + 1
