"""Maps and NULL structs: stored, read by everybody, and back in Spark."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

import pennon
import pennon.spark
from tests.spark.test_read import PUSH_DOWN

SCHEMA = """
    id int, m map<string, bigint>, inner struct<m: map<int, struct<t: string, d: decimal(9, 2)>>>,
    many array<map<string, array<int>>>, deep map<string, map<bigint, string>>,
    s struct<x: int, y: struct<z: string>>, ss array<struct<x: int>>
"""
ROWS: list[tuple[Any, ...]] = [
    (
        1,
        {"a": 1, "b": None},
        ({1: ("t", Decimal(1)), 2: (None, None), 3: None},),
        [{"x": [1, None]}, None, {}, {"y": None, "z": []}],
        {"o": {1: "i", 2: None}, "p": {}, "q": None},
        (1, ("z",)),
        [(1,), None, (None,)],
    ),
    (2, {}, ({},), [], {}, (None, None), []),
    (3, None, None, None, None, None, None),
    (4, {"": 0}, (None,), [None], {"": None}, (None, (None,)), [None]),
    (5, {str(n): n for n in range(3000)}, None, [{}], {}, (5, None), [(5,)]),
]


def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, SCHEMA).coalesce(1)


@pytest.fixture(scope="module")
def stored(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("maps") / "t.lance")
    frame(spark).write.format("lance").mode("append").save(uri)
    return uri


@pytest.fixture(scope="module")
def truth(spark: SparkSession) -> list[Row]:
    return frame(spark).orderBy("id").collect()


@pytest.fixture(params=["false", "true"])
def push_down(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    spark.conf.set(PUSH_DOWN, request.param)
    yield request.param
    spark.conf.unset(PUSH_DOWN)


def test_maps_and_null_structs_round_trip(
    spark: SparkSession, stored: str, truth: list[Row], push_down: str
) -> None:
    back = spark.read.format("lance").load(stored)
    assert back.schema == frame(spark).schema
    assert back.orderBy("id").collect() == truth
    assert [row.id for row in back.where("m IS NULL").collect()] == [3]
    assert [row.id for row in back.where("size(m) = 0").collect()] == [2]
    assert [row.id for row in back.where("s IS NULL").collect()] == [3]
    assert [row.id for row in back.where("s IS NOT NULL AND s.y IS NULL").collect()] == [2, 5]
    assert back.where("m['a'] = 1").count() == 1


def test_maps_in_projections_and_pruned_schemas(
    spark: SparkSession, stored: str, truth: list[Row]
) -> None:
    read = pennon.spark.read(spark, stored, ["deep", "inner.m", "id"], with_row_id=True)
    expected = [(row.deep, row.inner, row.id, number) for number, row in enumerate(truth)]
    assert [tuple(row) for row in read.orderBy("id").collect()] == expected
    reader = spark.read.format("lance")
    named = reader.option("columns", "many,m").option("batch_size", "2").load(stored)
    assert [tuple(row) for row in named.collect()] == [(row.many, row.m) for row in truth]
    pruned = reader.schema("m map<string, bigint>, inner struct<m: map<int, struct<d: double>>>")
    first = pruned.load(stored).collect()[0]
    assert (first.m, first.inner.m[1].d) == ({"a": 1, "b": None}, 1.0)
    assert first.inner.m[3] is None


def test_maps_are_read_as_lists_of_entries_by_pylance(stored: str, truth: list[Row]) -> None:
    entry = pa.struct([pa.field("key", pa.string(), nullable=False), ("value", pa.int64())])
    entries = [None if row.m is None else list(row.m.items()) for row in truth]
    for module in (pennon, lance):
        table = module.dataset(stored)
        assert table.schema.field("m").type == pa.list_(pa.field("entries", entry, nullable=False))
        assert table.schema.field("m").metadata == {b"pennon:logical-type": b"map"}
        rows = table.to_table(columns=["m", "s"]).to_pylist()
        found = [
            None if row["m"] is None else [tuple(e.values()) for e in row["m"]] for row in rows
        ]
        assert found == entries
        assert [row["s"] is None for row in rows] == [False, False, True, False, False]
    assert pennon.dataset(stored).data_storage_version == "2.1"
    ours, theirs = (module.dataset(stored).to_table() for module in (pennon, lance))
    assert ours.equals(theirs)


def test_views_insert_maps(spark: SparkSession, uri: str) -> None:
    schema = "id int, m map<string, struct<x: bigint>>"
    spark.createDataFrame([(1, {"a": (1,)})], schema).write.format("lance").mode("append").save(uri)
    view = f"CREATE OR REPLACE TEMPORARY VIEW maps USING lance OPTIONS (path '{uri}')"
    spark.sql(view)
    spark.sql("INSERT INTO maps VALUES (2, map('b', named_struct('x', 2), 'c', NULL)), (3, NULL)")
    spark.sql("INSERT INTO maps (id) SELECT 4")
    spark.sql(view)
    found = {row.id: row.m for row in spark.sql("SELECT * FROM maps").collect()}
    assert found == {1: {"a": Row(x=1)}, 2: {"b": Row(x=2), "c": None}, 3: None, 4: None}
    with pytest.raises(PySparkException, match=r"'m\.value' is struct<x:bigint> in the table"):
        spark.sql("SELECT map('a', 1) AS m").write.format("lance").mode("append").save(uri)


def test_maps_round_trip_at_2_0(spark: SparkSession, uri: str) -> None:
    rows = spark.createDataFrame(
        [(1, {"a": 1, "b": None}), (2, {}), (3, None)], "id int, m map<string, int>"
    )
    assert pennon.spark.write(rows, uri, data_storage_version="2.0") == 1
    assert pennon.dataset(uri).data_storage_version == "2.0"
    assert pennon.spark.read(spark, uri).orderBy("id").collect() == rows.orderBy("id").collect()


def test_maps_of_2_2_tables_are_maps(spark: SparkSession, uri: str) -> None:
    kind = pa.map_(pa.large_string(), pa.list_(pa.map_(pa.int32(), pa.uint8())))
    rows = [[("a", [[(1, 2), (3, None)], None, []]), ("b", None)], None, []]
    numbers = pa.array([1, 2, 3], pa.int64())
    lance.write_dataset(
        pa.table({"m": pa.array(rows, kind), "n": numbers}), uri, data_storage_version="2.2"
    )
    frame = spark.read.format("lance").load(uri)
    assert frame.schema["m"].dataType.simpleString() == "map<string,array<map<int,smallint>>>"
    expected = [({"a": [{1: 2, 3: None}, None, {}], "b": None}, 1), (None, 2), ({}, 3)]
    assert [tuple(row) for row in frame.orderBy("n").collect()] == expected
    pruned = spark.read.format("lance").option("columns", "m").load(uri)
    assert pruned.where("m IS NOT NULL").count() == 2
    frame.write.format("lance").mode("append").save(f"{uri}.copy")
    assert spark.read.format("lance").load(f"{uri}.copy").collect() == frame.collect()


def test_convert_of_maps_to_marked_lists_and_back(
    spark: SparkSession, uri: str, truth: list[Row]
) -> None:
    """Of what two tasks wrote at 2.2; each form takes what Spark appends, and reads the same."""
    write = frame(spark).write.format("lance").option("data_storage_version", "2.2")
    write.mode("append").save(uri)

    def check(version: str, rows: list[Row]) -> None:
        assert pennon.dataset(uri).data_storage_version == version
        for module in (pennon, lance):
            schema = module.dataset(uri).schema
            assert ("map<" in str(schema)) == (version == "2.2")
            assert (schema.field("m").metadata is None) == (version == "2.2")
            assert module.dataset(uri).count_rows() == len(rows)
        back = spark.read.format("lance").load(uri)
        assert back.schema == frame(spark).schema
        assert sorted(back.collect(), key=lambda row: row.id) == rows
        assert lance.dataset(uri).to_table().equals(pennon.dataset(uri).to_table())

    check("2.2", truth)
    pennon.spark.write(frame(spark), uri, "append")
    twice = sorted([*truth, *truth], key=lambda row: row.id)
    check("2.2", twice)
    pennon.spark.convert(spark, uri, "2.1")
    check("2.1", twice)
    frame(spark).where("id < 4").write.format("lance").mode("append").save(uri)
    more = sorted([*twice, *truth[:3]], key=lambda row: row.id)
    check("2.1", more)
    pennon.spark.convert(spark, uri, "2.2")
    check("2.2", more)
    pennon.spark.write(frame(spark), uri, "overwrite")
    check("2.2", truth)


def test_a_schema_shows_lists_of_entries_as_maps(spark: SparkSession, uri: str) -> None:
    entry = pa.struct([("k", pa.string()), ("v", pa.int32())])
    rows = [[{"k": "a", "v": 1}, {"k": "b", "v": None}], None, []]
    lance.write_dataset(pa.table({"m": pa.array(rows, pa.list_(entry))}), uri)
    reader = spark.read.schema("m map<string, bigint>").format("lance")
    assert [row.m for row in reader.load(uri).collect()] == [{"a": 1, "b": None}, None, {}]
    wrong = pa.table({"m": pa.array([[{"k": None, "v": 1}]], pa.list_(entry))})
    lance.write_dataset(wrong, uri, mode="append")
    with pytest.raises(PySparkException, match=r"column 'm' cannot become map.*a key is NULL"):
        reader.load(uri).collect()
