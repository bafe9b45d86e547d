"""Indices that executors make: the same answers, and the same segments, as those made here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import pennon
import pennon.spark
from pennon.errors import IndexNotFoundError
from pennon.spark import LanceTable

ROWS = 400
CONDITIONS = {
    "BTREE": ("i", "i >= 40 AND i < 300"),
    "BITMAP": ("s", "s = 'word 3'"),
    "LABEL_LIST": ("l", "array_has(l, 'l2')"),
    "NGRAM": ("s", "contains(s, 'ord 5')"),
    "ZONEMAP": ("i", "i < 7"),
    "BLOOMFILTER": ("s", "s = 'word 1'"),
}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Return a table of eight fragments, of which some rows are deleted."""
    uri = str(tmp_path / "t.lance")
    table = pa.table(
        {
            "i": pa.array([(7919 * n) % ROWS for n in range(ROWS)], pa.int64()),
            "s": pa.array([f"word {n % 7}" for n in range(ROWS)]),
            "l": pa.array([[f"l{n % 3}"] for n in range(ROWS)]),
        }
    )
    pennon.write_dataset(table, uri, max_rows_per_file=50, data_storage_version="2.2")
    pennon.dataset(uri).delete("i % 9 = 4")
    return uri


@pytest.mark.parametrize("kind", CONDITIONS)
def test_index_built_by_executors_answers_as_without_index(
    spark: SparkSession, uri: str, kind: str
) -> None:
    column, condition = CONDITIONS[kind]
    plain = pennon.dataset(uri).to_table(filter=condition)
    table = LanceTable.forPath(spark, uri)
    table.createIndex(column, kind)
    (line,) = table.indices().collect()
    assert (line.name, line.column) == (f"{column}_idx", column)
    assert (line.indexed_rows, line.unindexed_rows) == (pennon.dataset(uri).count_rows(), 0)
    ours = pennon.dataset(uri)
    assert f"@{column}_idx" in ours.scanner(filter=condition).explain_plan()
    assert ours.to_table(filter=condition) == plain
    theirs = lance.dataset(uri).to_table(filter=condition)
    assert sorted(theirs.to_pylist(), key=str) == sorted(plain.to_pylist(), key=str)
    found = (
        spark.read.format("lance").load(uri).where(condition.replace("array_has", "array_contains"))
    )
    assert found.count() == plain.num_rows


def test_full_text_index_built_by_executors_answers_as_local(spark: SparkSession, uri: str) -> None:
    table = LanceTable.forPath(spark, uri)
    query: dict[str, Any] = {"full_text_query": '"word 3"', "columns": ["i", "_score"]}
    pennon.dataset(uri).create_scalar_index("s", "INVERTED", with_position=True)
    here = pennon.dataset(uri).to_table(**query)
    table.createIndex("s", "INVERTED", with_position=True)
    (line,) = table.indices().collect()
    assert (line.name, line.kind, line.unindexed_rows) == ("s_idx", "Inverted", 0)
    readers: tuple[Any, ...] = (pennon, lance)
    for reader in readers:
        there = reader.dataset(uri).to_table(**query)
        assert sorted(there["i"].to_pylist()) == sorted(here["i"].to_pylist())
        assert there["_score"].to_pylist() == pytest.approx(here["_score"].to_pylist())
    assert here.num_rows == pennon.dataset(uri).count_rows("s = 'word 3'") == 50
    spark.createDataFrame(
        [(900, "word 3", ["l0"])], "i bigint, s string, l array<string>"
    ).write.format("lance").mode("append").save(uri)
    table.optimizeIndices()
    assert [line.unindexed_rows for line in table.indices().collect()] == [0]
    assert 900 in readers[1].dataset(uri).to_table(**query)["i"].to_pylist()


def test_btree_built_by_executors_equals_local_build(spark: SparkSession, uri: str) -> None:
    pennon.dataset(uri).create_scalar_index("i", "BTREE", "here")
    LanceTable.forPath(spark, uri).createIndex("i", "BTREE", "there", zone_size=4096)
    dataset = pennon.dataset(uri)
    here, there = (dataset.index_statistics(name)["indices"] for name in ("here", "there"))
    assert here == there


def test_new_rows_are_indexed(spark: SparkSession, uri: str) -> None:
    table = LanceTable.forPath(spark, uri)
    table.createIndex("i", "BTREE")
    rows = spark.range(1000, 1010).selectExpr("id AS i", "'new' AS s", "array('l1') AS l")
    rows.write.format("lance").mode("append").save(uri)
    assert [line.unindexed_rows for line in table.indices().collect()] == [10]
    table.optimizeIndices(numIndicesToMerge=0)
    old = pennon.dataset(uri).count_rows("i < 1000")
    assert sorted(line.indexed_rows for line in table.indices().collect()) == [10, old]
    table.optimizeIndices("i_idx", numIndicesToMerge=2)
    (line,) = table.indices().collect()
    assert line.unindexed_rows == 0
    assert pennon.dataset(uri).count_rows("i >= 1000") == 10
    table.optimizeIndices(retrain=True)
    assert pennon.dataset(uri).count_rows("i >= 1000") == 10
    table.dropIndex("i_idx")
    assert table.indices().count() == 0
    with pytest.raises(IndexNotFoundError, match="name=i_idx"):
        table.dropIndex("i_idx")


@pytest.mark.parametrize(
    ("column", "kind", "error"),
    [("nope", "BTREE", KeyError), ("l", "BTREE", TypeError), ("i", "TREE", NotImplementedError)],
)
def test_create_index_with_wrong_column_or_kind_is_refused(
    spark: SparkSession, uri: str, column: str, kind: str, error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"nope not found|must be int|no index of kind"):
        LanceTable.forPath(spark, uri).createIndex(column, kind)
    assert pennon.dataset(uri).version == 2


def test_index_of_field_with_dot_in_its_name(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    rows = pa.table({"id": range(60), "st": [{"a.x": n % 7, "b": n} for n in range(60)]})
    pennon.write_dataset(rows, uri, max_rows_per_file=20)
    table = LanceTable.forPath(spark, uri)
    table.createIndex("st.`a.x`", "BTREE")
    table.createIndex("ST.B", "BITMAP")
    lines = {line.name: line.column for line in table.indices().collect()}
    assert lines == {"st.`a.x`_idx": "st.`a.x`", "st.b_idx": "st.b"}
    pennon.spark.register(spark)
    listed = spark.sql(f"SELECT name, fields FROM lance_indices('{uri}')").collect()
    assert {line.name: line.fields for line in listed} == {k: [v] for k, v in lines.items()}
    files = spark.sql(f"SELECT DISTINCT fields FROM lance_files('{uri}')").collect()
    assert "st.`a.x`" in files[0].fields
    table.delete("id = 3")
    table.optimize().executeCompaction()
    pennon.write_dataset(rows.slice(0, 7), uri, mode="append")
    table.optimizeIndices()
    assert [line.unindexed_rows for line in table.indices().collect()] == [0, 0]
    for reader in (pennon, lance):
        assert reader.dataset(uri).count_rows(filter="st.`a.x` = 3") == 9 - 1 + 1
