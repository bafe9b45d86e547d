"""The schema of a table after a write: unchanged, grown (mergeSchema), or replaced (overwriteSchema)."""

from __future__ import annotations

from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import pennon
import pennon.spark
from pennon.errors import ArgumentError, SchemaMismatchError, UnsupportedError
from pennon.spark import LanceTable
from pennon.spark.source import row_write
from pennon.spark.table import functions

TYPED = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False, metadata={"unit": "metre", "comment": "its id"}),
        pa.field("v", pa.list_(pa.float32(), 2)),
        pa.field("u", pa.uint32()),
        pa.field("h", pa.float16()),
        pa.field("d", pa.dictionary(pa.int8(), pa.string())),
        pa.field("s", pa.struct([pa.field("x", pa.int16()), pa.field("y", pa.string())])),
    ]
)
ROW = {"id": 1, "v": [0.5, 1.5], "u": 7, "h": 0.5, "d": "a", "s": {"x": 1, "y": "b"}}


def make(uri: str, **options: Any) -> None:
    rows = pa.Table.from_pylist([ROW, {**ROW, "id": 2}, {**ROW, "id": 3}], TYPED)
    pennon.write_dataset(rows, uri, max_rows_per_file=2, **options)


def rows_of(uri: str) -> list[dict[str, Any]]:
    table = lance.dataset(uri)
    table.validate()
    return list(table.to_table().to_pylist())


def schema_of(uri: str) -> pa.Schema:
    assert lance.dataset(uri).schema.equals(pennon.dataset(uri).schema, check_metadata=True)
    return lance.dataset(uri).schema


@pytest.mark.parametrize("way", ["format", "sql", "function"])
def test_an_overwrite_keeps_the_types_of_the_table(spark: SparkSession, uri: str, way: str) -> None:
    make(uri)
    before = schema_of(uri)
    rows = pennon.spark.read(spark, uri).where("id < 3")
    if way == "sql":
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW kept USING lance OPTIONS (path '{uri}')")
        spark.sql("INSERT OVERWRITE kept SELECT * FROM kept WHERE id < 3")
    elif way == "format":
        rows.write.format("lance").mode("overwrite").save(uri)
    else:
        pennon.spark.write(rows, uri, "overwrite")
    assert schema_of(uri).equals(before, check_metadata=True)
    assert rows_of(uri) == [ROW, {**ROW, "id": 2}]


def test_overwrite_with_missing_columns_in_other_case_fills_null(
    spark: SparkSession, uri: str
) -> None:
    make(uri)
    rows = spark.sql("SELECT 9L AS ID, named_struct('X', 3) AS S")
    rows.write.format("lance").mode("overwrite").save(uri)
    nothing = dict.fromkeys(ROW, None)
    assert rows_of(uri) == [{**nothing, "id": 9, "s": {"x": 3, "y": None}}]


def test_overwrite_schema_option_replaces_the_schema(spark: SparkSession, uri: str) -> None:
    make(uri)
    with pytest.raises(SchemaMismatchError, match="no column 'other'; it has id, v, u, h, d, s"):
        pennon.spark.write(spark.sql("SELECT 1 AS id, 2 AS other"), uri, "overwrite")
    with pytest.raises(SchemaMismatchError, match="'u' is bigint in the table and string"):
        pennon.spark.write(spark.sql("SELECT 1 AS id, 'a' AS u"), uri, "overwrite")
    writer = spark.sql("SELECT 1L AS id, 'a' AS u").write.format("lance").mode("overwrite")
    writer.option("overwriteSchema", "true").save(uri)
    assert schema_of(uri) == pa.schema([("id", pa.int64()), ("u", pa.string())])
    assert rows_of(uri) == [{"id": 1, "u": "a"}]
    with pytest.raises(ArgumentError, match="overwriteSchema goes with an overwrite"):
        pennon.spark.write(spark.range(1), uri, "append", overwrite_schema=True)


def test_overwrite_with_merge_schema_has_both_schemas(spark: SparkSession, uri: str) -> None:
    make(uri)
    rows = spark.sql("SELECT 1L << 40 AS id, named_struct('z', 1) AS s, 0.1D AS h, 'new' AS w")
    pennon.spark.write(rows, uri, "overwrite", merge_schema=True)
    schema = schema_of(uri)
    assert schema.names == [*TYPED.names, "w"]
    assert (schema.field("id").type, schema.field("h").type) == (pa.int64(), pa.float64())
    assert schema.field("v").type == TYPED.field("v").type
    (row,) = rows_of(uri)
    assert (row["id"], row["h"], row["w"]) == (1 << 40, 0.1, "new")
    assert row["s"] == {"x": None, "y": None, "z": 1}


@pytest.mark.parametrize(("version", "stable"), [("2.0", True), ("2.1", False), ("2.2", True)])
def test_an_append_adds_columns_in_one_version(
    spark: SparkSession, uri: str, version: str, *, stable: bool
) -> None:
    make(uri, data_storage_version=version, enable_stable_row_ids=stable)
    rows = spark.sql(
        "SELECT 4 AS id, 'x' AS w, named_struct('x', 5, 'z', array(1)) AS s, map('k', 1) AS m"
    )
    assert pennon.spark.write(rows, uri, "append", merge_schema=True) == 2
    new = {"w": None, "m": None}
    found = rows_of(uri)
    assert [row["id"] for row in found] == [1, 2, 3, 4]
    inner = {"x": 1, "y": "b", "z": None}
    assert found[:3] == [{**ROW, "id": n, "s": inner, **new} for n in (1, 2, 3)]
    assert found[3]["s"] == {"x": 5, "y": None, "z": [1]}
    assert found[3]["w"] == "x"
    back = pennon.spark.read(spark, uri).where("id = 4").select("m", "v").collect()
    assert [tuple(row) for row in back] == [({"k": 1}, None)]
    line = LanceTable.forPath(spark, uri).history(1).collect()[0]
    assert (line.operation, line.operationParameters) == ("WRITE", {"mode": "Append"})
    pennon.spark.write(rows, uri, "append", merge_schema=True)  # nothing left to add
    assert lance.dataset(uri).version == 3
    assert lance.dataset(uri).count_rows() == 5


@pytest.mark.parametrize(
    ("version", "way"), [("2.0", "function"), ("2.1", "format"), ("2.2", "function")]
)
def test_an_append_widens_numbers(spark: SparkSession, uri: str, version: str, way: str) -> None:
    make(uri, data_storage_version=version)
    lance.dataset(uri).delete("id = 2")
    rows = spark.sql("SELECT 1L << 40 AS id, array(0.1D, 0.2D) AS v, named_struct('x', 70000) AS s")
    if way == "function":
        assert pennon.spark.write(rows, uri, "append", merge_schema=True) == 3
    else:
        rows.write.format("lance").mode("append").option("mergeSchema", "true").save(uri)
    schema = schema_of(uri)
    assert schema.field("id").type == pa.int64()
    assert schema.field("id").metadata == TYPED.field("id").metadata
    assert schema.field("v").type == pa.list_(pa.float64(), 2)
    assert schema.field("s").type.field("x").type == pa.int32()
    assert schema.field("u").type == pa.uint32()
    found = rows_of(uri)
    assert found[:2] == [ROW, {**ROW, "id": 3}]
    assert found[2]["v"] == [0.1, 0.2]
    assert (found[2]["id"], found[2]["s"]) == (1 << 40, {"x": 70000, "y": None})


def test_merge_schema_with_fixed_size_list_dimension(spark: SparkSession, uri: str) -> None:
    make(uri)
    rows = spark.sql("SELECT 4 AS id, array(1.0F, 2.0F, 3.0F) AS w")
    pennon.spark.write(rows, uri, "append", merge_schema=True, fixed_size_list="w:3")
    assert schema_of(uri).field("w").type == pa.list_(pa.float32(), 3)
    with pytest.raises(ArgumentError, match="fixed_size_list asks for v:3, but the table's column"):
        pennon.spark.write(rows, uri, "overwrite", merge_schema=True, fixed_size_list="v:3")


def test_append_with_merge_schema_after_concurrent_append(
    spark: SparkSession, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(uri)
    commit = row_write.commit_fragments

    def between(*given: Any) -> int:
        """Append a row once the tasks have written, and before anything is committed."""
        monkeypatch.setattr(functions, "commit_fragments", commit)
        pennon.spark.write(spark.sql("SELECT 5 AS id"), uri, "append")
        return commit(*given)

    monkeypatch.setattr(functions, "commit_fragments", between)
    rows = spark.sql("SELECT 4 AS id, 'x' AS w")
    assert pennon.spark.write(rows, uri, "append", merge_schema=True) == 3
    found = [(row["id"], row["w"]) for row in rows_of(uri)]
    assert sorted(found) == [(1, None), (2, None), (3, None), (4, "x"), (5, None)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT 4 AS id, 0.1D AS h", "'h' cannot become halffloat: 0.1 would be rounded or lost"),
        ("SELECT 4 AS id, 1e6F AS h", "'h' cannot become halffloat: 1000000.0 would be rounded"),
        (
            "SELECT 4 AS id, array(0.5D, 1e300D) AS v",
            r"'v\.item' cannot become .*1e.300 is beyond float",
        ),
        ("SELECT 1L << 40 AS id", "'id' cannot become int32"),
        ("SELECT 4 AS id, -1 AS u", "'u' cannot become uint32"),
    ],
)
def test_append_of_inexact_numbers_is_refused(
    spark: SparkSession, uri: str, query: str, message: str
) -> None:
    make(uri)
    with pytest.raises(PySparkException, match=message):
        pennon.spark.write(spark.sql(query), uri, "append")
    assert lance.dataset(uri).version == 1


def test_case_sensitive_session_distinguishes_columns_by_case(
    spark: SparkSession, uri: str
) -> None:
    make(uri)
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(SchemaMismatchError, match="the table has no column 'ID'"):
            pennon.spark.write(spark.sql("SELECT 4 AS ID, 5 AS id"), uri, "append")
        rows = spark.sql("SELECT 4 AS ID, 5 AS id, named_struct('X', 1) AS s")
        pennon.spark.write(rows, uri, "append", merge_schema=True)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    row = rows_of(uri)[-1]
    assert (row["ID"], row["id"]) == (4, 5)
    assert row["s"] == {"x": None, "y": None, "X": 1}


def test_merge_schema_of_0_1_table_is_refused(spark: SparkSession, uri: str) -> None:
    rows = spark.range(3)
    pennon.spark.write(rows, uri, data_storage_version="0.1")
    with pytest.raises(UnsupportedError, match=r"file version 0\.1 gets no columns"):
        pennon.spark.write(rows.selectExpr("id", "id AS w"), uri, "append", merge_schema=True)
