"""`LanceTable.addColumns`: one column file a fragment, one version, and each value computed once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.window import Window

import pennon
from pennon.errors import ArgumentError, InvalidSchemaError, MatchError, RetryableConflict
from pennon.spark import LanceTable
from tests.spark.failing import CountingFunction
from tests.spark.small_table import make, rows_of


def told(result: DataFrame) -> tuple[int, ...]:
    """Version, columns, fragments written, fragments reused."""
    (row,) = result.collect()
    return tuple(row)


def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    values = [2 * value for value in batch.column("value").to_pylist()]
    return pa.RecordBatch.from_pydict({"twice": values})


def files_of(uri: str) -> list[int]:
    return [len(fragment.data_files()) for fragment in lance.dataset(uri).get_fragments()]


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1", "2.2"])
@pytest.mark.parametrize("stable", [False, True])
def test_add_columns_by_expressions_after_a_delete(
    spark: SparkSession, uri: str, version: str, stable: bool
) -> None:
    if stable and version == "0.1":
        stable = False
    make(uri, data_storage_version=version, enable_stable_row_ids=stable)
    pennon.dataset(uri).delete("key = 'a'")
    table = LanceTable.forPath(spark, uri).alias("t")
    shout = sf.udf(lambda text: f"{text}!", "string")
    columns: dict[str, Any] = {
        "twice": "t.value * 2",
        "loud": shout("key"),
        "part": sf.lit(1) + sf.col("value"),
    }
    assert told(table.addColumns(columns)) == (3, 3, 2, 0)
    assert rows_of(uri) == [("b", 2, 4, "b!", 3), ("c", 3, 6, "c!", 4), ("d", 4, 8, "d!", 5)]
    assert files_of(uri) == [2, 2]
    (line,) = table.history(1).collect()
    assert (line.operation, line.operationParameters["columns"]) == (
        "ADD COLUMNS",
        "twice, loud, part",
    )


def test_add_columns_by_window_expressions_across_fragments(table: LanceTable, uri: str) -> None:
    rank = sf.row_number().over(Window.orderBy(sf.desc("value")))
    assert told(table.addColumns({"rank": rank, "total": sf.expr("sum(value) OVER ()")})) == (
        2,
        2,
        2,
        0,
    )
    assert rows_of(uri) == [("a", 1, 4, 10), ("b", 2, 3, 10), ("c", 3, 2, 10), ("d", 4, 1, 10)]


def test_add_columns_by_a_batch_function(table: LanceTable, uri: str) -> None:
    assert told(table.addColumns(doubled, readColumns=["value"]))[1:] == (1, 2, 0)

    def as_pandas(batch: pa.RecordBatch) -> Any:
        frame = batch.to_pandas()
        frame["thrice"] = frame["value"] * 3
        return frame[["thrice"]]

    table.addColumns(as_pandas, outputSchema=pa.schema([("thrice", pa.int64())]))
    assert rows_of(uri) == [("a", 1, 2, 3), ("b", 2, 4, 6), ("c", 3, 6, 9), ("d", 4, 8, 12)]


def test_a_batch_udf_brings_its_schema(table: LanceTable, uri: str) -> None:
    function = pennon.batch_udf(pa.schema([("twice", pa.int64())]))(doubled)
    table.addColumns(function, batchSize=1)
    assert [row[2] for row in rows_of(uri)] == [2, 4, 6, 8]


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_add_columns_by_a_dataframe_with_key(spark: SparkSession, uri: str, version: str) -> None:
    rows = pa.table({"id": [0, 1, 2, 3, 4, None], "v": list(range(6))})
    pennon.write_dataset(rows, uri, max_rows_per_file=2, data_storage_version=version)
    pennon.dataset(uri).delete("id = 3")
    news = spark.createDataFrame(
        [(4, "x"), (1, "y"), (9, "z"), (3, "gone"), (None, "n")], "ID int, w string"
    )
    assert told(LanceTable.forPath(spark, uri).addColumns(news, on="id")) == (3, 1, 2, 0)
    assert {row[1]: row[2] for row in rows_of(uri)} == {0: None, 1: "y", 2: None, 4: "x", 5: None}
    assert files_of(uri) == [2, 1, 2]  # NULLs alone need no file


def test_add_columns_by_a_dataframe_with_row_addresses(
    spark: SparkSession, table: LanceTable, uri: str
) -> None:
    rows = pennon.spark.read(spark, uri, ["value"], with_row_address=True)
    new = rows.where("value <> 3").select("_rowaddr", (sf.col("value") * 10).alias("ten"))
    table.addColumns(new, on="_rowaddr")
    assert [row[2] for row in rows_of(uri)] == [10, 20, None, 40]
    again = new.withColumnRenamed("ten", "more")
    pennon.dataset(uri).optimize.compact_files()
    with pytest.raises(ArgumentError, match=r"rows for fragment 0, which version .* does not have"):
        table.addColumns(again, on="_rowaddr")


def test_add_columns_with_several_values_for_one_row_is_refused(
    spark: SparkSession, table: LanceTable
) -> None:
    twice = spark.createDataFrame([("a", 1), ("a", 2)], "key string, w int")
    with pytest.raises(MatchError, match="row 0 of fragment 0 gets several values"):
        table.addColumns(twice, on="key")
    with pytest.raises(MatchError, match="several values"):
        table.addColumns({"n": sf.explode(sf.array(sf.lit(1), sf.lit(2)))})
    assert pennon.dataset(table.uri).version == 1


@pytest.mark.parametrize(
    ("columns", "on", "error", "words"),
    [
        ({"value": "1"}, (), InvalidSchemaError, "already exists"),
        ({"VALUE": "1"}, (), InvalidSchemaError, "differ by case alone"),
        ({"n": 1}, (), TypeError, "Values of dict in columns"),
        (lambda batch: 1, (), ArgumentError, "must return a RecordBatch"),
        ("frame", (), ArgumentError, "is joined on columns"),
        ("frame", "value", ArgumentError, "the DataFrame has no column 'value'"),
    ],
)
def test_add_columns_with_invalid_arguments_is_refused(
    table: LanceTable, source: DataFrame, columns: Any, on: Any, error: type[Exception], words: str
) -> None:
    columns = source if columns == "frame" else columns
    with pytest.raises(error, match=words):
        table.addColumns(columns, on)
    assert pennon.dataset(table.uri).version == 1


# --- what was finished --------------------------------------------------------------------------------


def test_backfill_resumes_after_the_finished_fragments(
    table: LanceTable, uri: str, tmp_path: Path
) -> None:
    """The function fails for the second fragment; the first is not computed again."""
    notes = str(tmp_path / "notes")
    failing = CountingFunction(str(tmp_path / "first"), fails_at=3, after=notes)
    schema = pa.schema([("twice", pa.int64())])
    with pytest.raises(PySparkException, match="fails on purpose"):
        table.addColumns(failing, checkpoint=notes, outputSchema=schema)
    assert pennon.dataset(uri).version == 1
    assert len(list(Path(notes).iterdir())) == 1
    calls = CountingFunction(str(tmp_path / "second"))
    result = table.addColumns(calls, checkpoint=notes, outputSchema=schema)
    assert told(result) == (2, 1, 1, 1)
    assert calls.seen() == [3, 4]
    assert rows_of(uri) == [("a", 1, 2), ("b", 2, 4), ("c", 3, 6), ("d", 4, 8)]
    assert not list(Path(notes).iterdir())


def test_backfill_by_expressions_resumes_from_its_checkpoint(
    table: LanceTable, uri: str, tmp_path: Path
) -> None:
    notes = str(tmp_path / "notes")
    failing = CountingFunction(str(tmp_path / "first"), fails_at=3, after=notes)
    with pytest.raises(PySparkException, match="fails on purpose"):
        table.addColumns({"w": sf.udf(failing.value, "bigint")("value")}, checkpoint=notes)
    works = CountingFunction(str(tmp_path / "works"))
    columns = {"w": sf.udf(works.value, "bigint")("value")}
    assert told(table.addColumns(columns, checkpoint=notes)) == (2, 1, 1, 1)
    assert works.seen() == [3, 4]
    assert [row[2] for row in rows_of(uri)] == [2, 4, 6, 8]


def test_backfill_checkpoint_of_changed_fragment_is_recomputed(
    spark: SparkSession, table: LanceTable, uri: str, tmp_path: Path
) -> None:
    notes = str(tmp_path / "notes")
    failing = CountingFunction(str(tmp_path / "first"), fails_at=3, after=notes)
    schema = pa.schema([("twice", pa.int64())])
    with pytest.raises(PySparkException, match="fails on purpose"):
        table.addColumns(failing, checkpoint=notes, outputSchema=schema)
    pennon.dataset(uri).update({"value": "7"}, "key = 'a'")
    pennon.write_dataset(pa.table({"key": ["e"], "value": [5]}), uri, mode="append")
    calls = CountingFunction(str(tmp_path / "second"))
    assert told(table.addColumns(calls, checkpoint=notes, outputSchema=schema))[2:] == (4, 0)
    assert [row[2] for row in rows_of(uri)] == [14, 4, 6, 8, 10]


def test_backfill_checkpoint_with_deleted_file_is_recomputed(
    spark: SparkSession, table: LanceTable, uri: str, tmp_path: Path
) -> None:
    notes = str(tmp_path / "notes")
    failing = CountingFunction(str(tmp_path / "first"), fails_at=3, after=notes)
    schema = pa.schema([("twice", pa.int64())])
    with pytest.raises(PySparkException, match="fails on purpose"):
        table.addColumns(failing, checkpoint=notes, outputSchema=schema)
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    table.vacuum(0)
    spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    calls = CountingFunction(str(tmp_path / "second"))
    assert told(table.addColumns(calls, checkpoint=notes, outputSchema=schema))[2:] == (2, 0)
    assert [row[2] for row in rows_of(uri)] == [2, 4, 6, 8]


# --- others that write --------------------------------------------------------------------------------


def test_backfill_after_concurrent_append_computes_only_new_rows(
    table: LanceTable, uri: str, tmp_path: Path
) -> None:
    calls = CountingFunction(str(tmp_path / "calls"), appends_to=uri)
    result = table.addColumns(calls, outputSchema=pa.schema([("twice", pa.int64())]))
    assert told(result) == (3, 1, 3, 0)
    assert [row[2] for row in rows_of(uri)] == [2, 4, 6, 8, 10]
    assert sorted(calls.seen()) == [1, 2, 3, 4, 5]


def test_backfill_by_row_address_after_concurrent_append_is_a_conflict(
    spark: SparkSession, table: LanceTable, uri: str, tmp_path: Path
) -> None:
    appends = sf.udf(CountingFunction(str(tmp_path / "calls"), appends_to=uri).value, "bigint")
    rows = pennon.spark.read(spark, uri, ["value"], with_row_address=True)
    rows, notes = rows.select("_rowaddr", appends("value").alias("w")), str(tmp_path / "notes")
    with pytest.raises(RetryableConflict):
        table.addColumns(rows, on="_rowaddr", checkpoint=notes)
    assert pennon.dataset(uri).version == 2
    assert told(table.addColumns(rows, on="_rowaddr", checkpoint=notes)) == (3, 1, 0, 2)
    assert [row[2] for row in rows_of(uri)] == [2, 4, 6, 8, None]
