"""Writing: versions, retries, failures, options, and refusals."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import pennon
import pennon.spark
from pennon.errors import AlreadyExistsError, ArgumentError
from tests.spark.failing import DyingSource, UncommittableSource


def numbers(spark: SparkSession, count: int = 40_000, parts: int = 4) -> DataFrame:
    return spark.range(0, count, 1, parts).selectExpr("id", "cast(id AS string) AS name")


def ids(uri: str, version: int | None = None) -> list[int]:
    table = pennon.dataset(uri, version=version).to_table(columns=["id"])
    return sorted(table.column("id").to_pylist())


def data_files(uri: str) -> list[Path]:
    return sorted(Path(uri, "data").glob("*.lance"))


def test_four_tasks_make_four_fragments_and_one_version(spark: SparkSession, uri: str) -> None:
    numbers(spark).write.format("lance").mode("append").save(uri)
    table = pennon.dataset(uri)
    assert table.version == 1
    assert [fragment.count_rows() for fragment in table.get_fragments()] == [10_000] * 4
    assert table.to_table().column("id").to_pylist() == list(range(40_000))


@pytest.mark.parametrize("level", ["commit", "none"])
def test_write_and_delete_with_storage_option_durability(
    spark: SparkSession, uri: str, level: str
) -> None:
    writer = numbers(spark, 100).write.format("lance").mode("append")
    writer.option("storage.durability", level).save(uri)
    table = pennon.spark.LanceTable.forPath(spark, uri, {"durability": level})
    table.delete("id >= 10")
    assert ids(uri) == list(range(10))


def test_write_with_unknown_durability_names_the_levels(spark: SparkSession, uri: str) -> None:
    writer = numbers(spark, 100).write.format("lance").mode("append")
    with pytest.raises(PySparkException, match=r"'some'.*'full', 'commit', 'none'"):
        writer.option("storage.durability", "some").save(uri)


def test_append_adds_and_overwrite_replaces_rows(spark: SparkSession, uri: str) -> None:
    numbers(spark, 10).write.format("lance").mode("append").save(uri)
    numbers(spark, 10).write.format("lance").mode("append").save(uri)
    assert ids(uri) == sorted([*range(10), *range(10)])
    spark.range(3).write.format("lance").mode("overwrite").save(uri)
    assert pennon.dataset(uri).schema.names == ["id", "name"]
    assert (ids(uri), ids(uri, version=1)) == ([0, 1, 2], list(range(10)))


def test_a_task_killed_in_the_middle_is_retried_and_the_rows_are_exact(
    spark: SparkSession, uri: str, tmp_path: Path
) -> None:
    spark.dataSource.register(DyingSource)
    marker = tmp_path / "died"
    rows = numbers(spark, 100_000, 2)
    rows.write.format("lance_dying").mode("append").save(f"{uri}#{marker}")
    assert marker.exists()
    assert ids(uri) == list(range(100_000))
    assert pennon.dataset(uri).version == 1
    assert len(pennon.dataset(uri).get_fragments()) == 2
    assert len(data_files(uri)) in (2, 3)  # the dead task's file may be there: an orphan


def test_failed_commit_keeps_version_and_data_files(
    spark: SparkSession, uri: str, tmp_path: Path
) -> None:
    spark.dataSource.register(UncommittableSource)
    numbers(spark, 100, 2).write.format("lance").mode("append").save(uri)
    before = data_files(uri)
    marker = tmp_path / "aborted"
    rows = numbers(spark, 100, 4)
    with pytest.raises(PySparkException, match="the commit fails on purpose"):
        rows.write.format("lance_uncommittable").mode("append").save(f"{uri}#{marker}")
    assert marker.read_text() == "4"
    assert pennon.dataset(uri).version == 1
    assert ids(uri) == list(range(100))
    assert len(data_files(uri)) == len(before) + 4


def test_concurrent_append_jobs_keep_all_rows(spark: SparkSession, uri: str) -> None:
    def run(first: int) -> None:
        pennon.spark.write(spark.range(first, first + 1000, 1, 2), uri, "append")

    threads = [threading.Thread(target=run, args=(first,)) for first in (0, 1000, 2000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ids(uri) == list(range(3000))
    assert pennon.dataset(uri).version == 3


def test_files_are_bounded_in_rows_and_in_bytes(spark: SparkSession, uri: str) -> None:
    rows = numbers(spark, 20_000, 1)
    rows.write.format("lance").mode("append").option("max_rows_per_file", 3000).save(uri)
    sizes = [f.count_rows() for f in pennon.dataset(uri).get_fragments()]
    assert (max(sizes), sum(sizes)) == (3000, 20_000)
    pennon.spark.write(rows, uri, "overwrite", max_bytes_per_file=100_000)
    assert max(file.stat().st_size for file in data_files(uri)) < 200_000
    assert len(pennon.dataset(uri).get_fragments()) > 3


def test_an_append_of_no_rows_makes_no_version_but_creates_a_table(
    spark: SparkSession, uri: str
) -> None:
    nothing = numbers(spark, 10).where("id < 0")
    nothing.write.format("lance").mode("append").save(uri)
    nothing.write.format("lance").mode("append").save(uri)
    table = pennon.dataset(uri)
    assert (table.version, table.count_rows()) == (1, 0)
    assert table.schema.names == ["id", "name"]
    assert spark.read.format("lance").load(uri).collect() == []
    assert pennon.spark.read(spark, uri).collect() == []


def test_append_matches_columns_by_name_and_fills_missing_with_null(
    spark: SparkSession, uri: str
) -> None:
    numbers(spark, 2, 1).write.format("lance").mode("append").save(uri)
    spark.sql("SELECT 'x' AS name, 7L AS id").write.format("lance").mode("append").save(uri)
    spark.sql("SELECT 8L AS id").write.format("lance").mode("append").save(uri)
    rows = spark.read.format("lance").load(uri).orderBy("id").collect()
    assert [tuple(row) for row in rows] == [(0, "0"), (1, "1"), (7, "x"), (8, None)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT 1L AS other", "the table has no column 'other'; it has id, name"),
        ("SELECT 'a' AS id", "column 'id' is bigint in the table and string in the DataFrame"),
    ],
)
def test_append_of_other_schema_error_names_table_columns(
    spark: SparkSession, uri: str, query: str, message: str
) -> None:
    numbers(spark, 2, 1).write.format("lance").mode("append").save(uri)
    with pytest.raises(PySparkException, match=message):
        spark.sql(query).write.format("lance").mode("append").save(uri)
    assert pennon.dataset(uri).version == 1


def test_null_structs_in_2_0_are_refused_by_name_type_and_version(
    spark: SparkSession, uri: str
) -> None:
    rows = spark.sql("SELECT if(id = 1, NULL, named_struct('x', id)) AS st FROM range(3)")
    old = rows.write.format("lance").option("data_storage_version", "2.0").mode("append")
    with pytest.raises(PySparkException, match=r"'st'.*NULL struct.*2\.0.*2\.1"):
        old.save(uri)


def test_write_function_modes_create_append_and_overwrite(spark: SparkSession, uri: str) -> None:
    assert pennon.spark.write(numbers(spark, 10), uri) == 1
    with pytest.raises(AlreadyExistsError):
        pennon.spark.write(numbers(spark, 10), uri)
    assert pennon.spark.write(numbers(spark, 10), uri, "append") == 2
    assert pennon.spark.write(numbers(spark, 5), uri, "overwrite") == 3
    with pytest.raises(ArgumentError, match="overwrite"):
        pennon.spark.write(numbers(spark, 5), uri, "replace")
    assert ids(uri) == list(range(5))


def test_ingest_guesses_the_format(spark: SparkSession, uri: str, tmp_path: Path) -> None:
    source = tmp_path / "people.csv"
    source.write_text("name,age,born\nAda,36,1815-12-10\nAlan,,1912-06-23\n")
    assert pennon.spark.ingest(spark, str(source), uri) == 1
    table = pennon.dataset(uri).to_table()
    assert table.schema.field("age").type == pa.int32()
    assert table.schema.field("born").type == pa.date32()
    assert pc.sum(table.column("age")).as_py() == 36
    with pytest.raises(ArgumentError, match="cannot tell the format"):
        pennon.spark.ingest(spark, str(tmp_path / "people.xyz"), uri)
