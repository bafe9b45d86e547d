"""Types: Spark to Lance and back, and Lance types that Spark lacks."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own habit

import pennon
import pennon.spark

VALUES = """
SELECT * FROM VALUES
  (true, 1Y, 2S, 3, 4L, 1.5F, 2.5D, 12.34BD, 'text', X'00ff', date'2020-02-29',
   timestamp'1969-12-31 23:59:59.999999', timestamp_ntz'2020-01-01 00:00:00.000001',
   interval '1 02:03:04.000005' day to second, array(1, NULL, 3), array(array('a'), NULL),
   named_struct('x', 1, 'y', array(named_struct('z', 'deep'))), array(1.0F, 2.0F)),
  (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
   NULL, NULL, NULL, NULL, array(),
   named_struct('x', NULL, 'y', NULL), NULL)
AS t(bo, i8, i16, i32, i64, f32, f64, de, st, bi, da, ts, tn, iv, ar, aa, nested, vec)
"""


def test_spark_types_round_trip(spark: SparkSession, uri: str) -> None:
    rows = spark.sql(VALUES)
    writer = rows.write.format("lance").mode("append").option("fixed_size_list", "vec:2")
    writer.save(uri)
    schema = pennon.dataset(uri).schema
    assert schema.field("vec").type == pa.list_(pa.float32(), 2)
    assert schema.field("ts").type == pa.timestamp("us", "UTC")
    assert schema.field("tn").type == pa.timestamp("us")
    assert schema.field("de").type == pa.decimal128(4, 2)
    assert schema.field("iv").type == pa.duration("us")
    back = spark.read.format("lance").load(uri)
    assert back.schema.simpleString() == rows.schema.simpleString()
    key = F.col("i64").isNull()
    assert back.orderBy(key).collect() == rows.orderBy(key).collect()
    assert pennon.spark.read(spark, uri).orderBy(key).collect() == rows.orderBy(key).collect()


def lance_only() -> pa.Table:
    numbers = [0, 1, None]
    moments = pa.array([-1, 1_001, None], pa.int64())
    columns = {
        "u8": pa.array([255, 1, None], pa.uint8()),
        "u16": pa.array([65_535, 1, None], pa.uint16()),
        "u32": pa.array([2**32 - 1, 1, None], pa.uint32()),
        "u64": pa.array([2**64 - 1, 1, None], pa.uint64()),
        "half": pa.array(numbers, pa.float32()).cast(pa.float16()),
        "large": pa.array(["a", "b", None], pa.large_string()),
        "blob": pa.array([b"a", b"b", None], pa.large_binary()),
        "fixed": pa.array([b"abc", b"def", None], pa.binary(3)),
        "word": pa.array(["x", "y", None]).dictionary_encode(),
        "biglist": pa.array([[1], [], None], pa.large_list(pa.int32())),
        "vector": pa.array([[1, 2], [3, None], None], pa.list_(pa.int16(), 2)),
        "ns": moments.cast(pa.timestamp("ns")),
        "sec": pa.array([-1, 5, None], pa.int64()).cast(pa.timestamp("s", "Europe/Paris")),
        "day64": pa.array([86_400_000, 0, None], pa.int64()).cast(pa.date64()),
        "wide": pa.array([Decimal("1.5"), Decimal("-2.5"), None], pa.decimal256(30, 2)),
    }
    return pa.table(columns)


def test_lance_types_without_spark_equivalent_are_converted(spark: SparkSession, uri: str) -> None:
    pennon.write_dataset(lance_only(), uri)
    frame = spark.read.format("lance").load(uri)
    kinds = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    assert kinds == {
        "u8": "smallint",
        "u16": "int",
        "u32": "bigint",
        "u64": "decimal(20,0)",
        "half": "float",
        "large": "string",
        "blob": "binary",
        "fixed": "binary",
        "word": "string",
        "biglist": "array<int>",
        "vector": "array<smallint>",
        "ns": "timestamp_ntz",
        "sec": "timestamp",
        "day64": "date",
        "wide": "decimal(30,2)",
    }
    first, second, third = frame.collect()
    assert tuple(third) == (None,) * 15
    assert (first.u8, first.u32, first.u64) == (255, 2**32 - 1, Decimal(2**64 - 1))
    assert (second.half, second.word, second.large) == (1.0, "y", "b")
    assert (first.biglist, second.biglist, second.vector) == ([1], [], [3, None])
    before = dt.datetime.fromisoformat("1969-12-31T23:59:59.999999")
    assert (first.ns, second.ns) == (
        before,
        dt.datetime.fromisoformat("1970-01-01T00:00:00.000001"),
    )
    assert (first.fixed, first.day64) == (b"abc", dt.date(1970, 1, 2))
    assert second.wide == Decimal("-2.50")
    seconds = frame.selectExpr("unix_seconds(sec) AS s").collect()
    assert [row.s for row in seconds] == [-1, 5, None]


def test_appends_take_the_types_of_the_table(spark: SparkSession, uri: str) -> None:
    pennon.write_dataset(lance_only(), uri)
    rows = spark.read.format("lance").load(uri)
    rows.write.format("lance").mode("append").save(uri)
    table = pennon.dataset(uri)
    assert table.schema.equals(lance_only().schema)
    assert table.count_rows() == 6
    both = table.to_table().drop_columns(["ns"])  # Spark dropped its nanoseconds
    assert both.slice(3).combine_chunks().to_pylist() == both.slice(0, 3).to_pylist()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT 256S AS u8", "column 'u8' cannot become uint8"),
        ("SELECT -1L AS u32", "column 'u32' cannot become uint32"),
        ("SELECT array(1S) AS vector", "a row holds a list of 1 values, not 2"),
    ],
)
def test_write_of_values_out_of_range_is_refused(
    spark: SparkSession, uri: str, query: str, message: str
) -> None:
    pennon.write_dataset(lance_only(), uri)
    with pytest.raises(PySparkException, match=message):
        spark.sql(query).write.format("lance").mode("append").save(uri)
    assert pennon.dataset(uri).count_rows() == 3


@pytest.mark.parametrize(
    ("query", "options", "message"),
    [
        ("SELECT 1 AS a", {"data_storage_version": "2.3"}, r"2\.3.*2\.2"),
        ("SELECT 1 AS a", {"fixed_size_list": "v:2"}, "fixed_size_list names \\['v'\\]"),
        ("SELECT 1 AS a", {"fixed_size_list": "a"}, "fixed_size_list wants 'column:dimension"),
        ("SELECT interval '1' year AS y", {}, "'y'"),
    ],
)
def test_write_of_unsupported_type_names_the_column(
    spark: SparkSession, uri: str, query: str, options: dict[str, str], message: str
) -> None:
    writer = spark.sql(query).write.format("lance").mode("append").options(**options)
    with pytest.raises(PySparkException, match=message):
        writer.save(uri)
