"""Further write modes and options, column metadata, and refused types and names."""

from __future__ import annotations

import threading
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import types as st

import pennon
import pennon.spark
from pennon.errors import AlreadyExistsError, InvalidSchemaError, UnsupportedError


@pytest.mark.parametrize("mode", ["error", "errorifexists", "ErrorIfExists"])
def test_write_modes_error_and_errorifexists_create_only(
    spark: SparkSession, uri: str, mode: str
) -> None:
    assert pennon.spark.write(spark.range(3), uri, mode) == 1
    with pytest.raises(AlreadyExistsError):
        pennon.spark.write(spark.range(3), uri, mode)
    assert lance.dataset(uri).count_rows() == 3


def test_write_mode_ignore_keeps_an_existing_table(spark: SparkSession, uri: str) -> None:
    assert pennon.spark.write(spark.range(3), uri, "ignore") == 1
    assert pennon.spark.write(spark.range(5), uri, "append") == 2
    assert pennon.spark.write(spark.sql("SELECT 'of another schema' AS x"), uri, "ignore") == 2
    assert lance.dataset(uri).version == 2


def test_column_comments_round_trip(spark: SparkSession, uri: str) -> None:
    inner = st.StructType([st.StructField("x", st.IntegerType(), metadata={"comment": "east"})])
    schema = st.StructType(
        [
            st.StructField("id", st.LongType(), metadata={"comment": "läuft", "other": "not kept"}),
            st.StructField("p", inner),
            st.StructField(
                "m", st.MapType(st.StringType(), st.LongType()), metadata={"comment": "m"}
            ),
        ]
    )
    rows = spark.createDataFrame([(1, (2,), {"a": 1})], schema)
    rows.write.format("lance").mode("append").save(uri)
    arrow = lance.dataset(uri).schema
    assert arrow.field("id").metadata == {b"comment": "läuft".encode()}
    assert arrow.field("p").type.field("x").metadata == {b"comment": b"east"}
    for back in (spark.read.format("lance").load(uri), pennon.spark.read(spark, uri)):
        assert back.schema["id"].metadata == {"comment": "läuft"}
        parts = back.schema["p"].dataType
        assert isinstance(parts, st.StructType)
        assert parts["x"].metadata == {"comment": "east"}
        assert back.schema["m"].metadata == {"comment": "m"}
        assert [tuple(row) for row in back.collect()] == [(1, (2,), {"a": 1})]
    pennon.spark.write(spark.sql("SELECT 5L AS id"), uri, "overwrite")
    assert lance.dataset(uri).schema.field("id").metadata == {b"comment": "läuft".encode()}
    late = st.StructType([st.StructField("w", st.LongType(), metadata={"comment": "new"})])
    pennon.spark.write(spark.createDataFrame([(6,)], late), uri, "append", merge_schema=True)
    assert lance.dataset(uri).schema.field("w").metadata == {b"comment": b"new"}


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_variant_round_trip(spark: SparkSession, uri: str, version: str) -> None:
    query = """SELECT * FROM VALUES (1, parse_json('{"a": 7}')), (2, parse_json('[1, "x"]')) AS t(id, v)"""
    if version == "2.0":
        spark.sql(query).write.format("lance").option("data_storage_version", version).mode(
            "append"
        ).save(uri)
    else:
        rows = spark.sql(f"{query} UNION ALL SELECT 3, CAST(NULL AS VARIANT)")
        pennon.spark.write(rows, uri, data_storage_version=version)
    lance.dataset(uri).validate()
    field = lance.dataset(uri).schema.field("v")
    assert field.metadata == {b"pennon:logical-type": b"variant"}
    assert field.type == pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
    spark.sql(query).write.format("lance").mode("append").save(uri)
    for back in (spark.read.format("lance").load(uri), pennon.spark.read(spark, uri)):
        assert isinstance(back.schema["v"].dataType, st.VariantType)
        found = back.selectExpr("id", "to_json(v) AS text").where("text IS NOT NULL").collect()
        assert sorted(tuple(row) for row in found) == sorted([(1, '{"a":7}'), (2, '[1,"x"]')] * 2)


def test_write_of_collated_string_is_refused(spark: SparkSession, uri: str) -> None:
    rows = spark.sql("SELECT 'a' COLLATE UTF8_LCASE AS x")
    message = "'x' is string collate UTF8_LCASE.*keeps no collation"
    with pytest.raises(UnsupportedError, match=message):
        pennon.spark.write(rows, uri)
    with pytest.raises(PySparkException, match=message):
        rows.write.format("lance").mode("append").save(uri)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT 1 AS a, 2 AS ``", "a field without a name"),
        ("SELECT 1 AS a, 2 AS A", "the fields 'a' and 'A', which Spark does not tell apart"),
        (
            "SELECT array(named_struct('x', 1, 'X', 2)) AS s",
            "column 's' has the fields 'x' and 'X'",
        ),
    ],
)
def test_write_of_empty_or_ambiguous_field_names_is_refused(
    spark: SparkSession, uri: str, query: str, message: str
) -> None:
    with pytest.raises(InvalidSchemaError, match=message):
        pennon.spark.write(spark.sql(query), uri)
    with pytest.raises(PySparkException, match=message):
        spark.sql(query).write.format("lance").mode("append").save(uri)


def test_a_frame_without_columns_is_refused(spark: SparkSession, uri: str) -> None:
    nothing = spark.range(5).select()
    with pytest.raises(InvalidSchemaError, match="the DataFrame has no columns"):
        pennon.spark.write(nothing, uri)
    with pytest.raises(PySparkException, match="the DataFrame has no columns"):
        nothing.write.format("lance").mode("append").save(uri)
    assert not Path(uri).exists()


@pytest.mark.parametrize("way", ["function", "format"])
def test_a_new_table_may_have_stable_row_ids(spark: SparkSession, uri: str, way: str) -> None:
    rows = spark.range(4).coalesce(1)
    option = "enable_stable_row_ids"
    for _ in range(2):
        if way == "function":
            pennon.spark.write(rows, uri, "append", enable_stable_row_ids=True)
        else:
            rows.write.format("lance").mode("append").option(option, "true").save(uri)
    assert lance.dataset(uri).has_stable_row_ids
    pennon.dataset(uri).update({"id": "id + 10"}, where="id = 1")
    found = lance.dataset(uri).to_table(with_row_id=True).to_pydict()
    assert set(zip(found["id"], found["_rowid"], strict=True)) >= {(11, 1), (11, 5), (3, 7)}


def test_stable_row_ids_option_for_existing_table_is_refused(spark: SparkSession, uri: str) -> None:
    pennon.spark.write(spark.range(4), uri)
    for mode in ("append", "overwrite"):
        with pytest.raises(UnsupportedError, match="chosen for a new table only"):
            pennon.spark.write(spark.range(4), uri, mode, enable_stable_row_ids=True)


def test_threads_write_by_the_data_source_once_their_session_is_active(
    spark: SparkSession, uri: str
) -> None:
    failed: list[Exception] = []

    def write(first: int) -> None:
        try:
            pennon.spark.activate(spark)
            spark.range(first, first + 10).write.format("lance").mode("append").save(uri)
        except Exception as error:  # noqa: BLE001 - shown below
            failed.append(error)

    threads = [threading.Thread(target=write, args=(first,)) for first in (0, 10, 20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert sorted(lance.dataset(uri).to_table().column("id").to_pylist()) == list(range(30))
