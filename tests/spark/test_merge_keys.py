"""A merge prunes fragments and pages of its table by the keys of the source.

They are put away meanwhile, so that whatever asks for one fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import pennon
import pennon.spark
from pennon.errors import SchemaMismatchError
from pennon.spark import LanceTable
from tests.spark.changes import rows_of, whims

ROWS = 4_000
PARTS = 4
DAY = date(2026, 1, 1)


def make(uri: str, *index_kinds: Any, **options: Any) -> None:
    """Rows (n, date, text, 0) in four fragments, in the order of n."""
    ids = range(ROWS)
    table = pa.table(
        {
            "id": pa.array(ids, pa.int32()),
            "day": [DAY + timedelta(n) for n in ids],
            "name": [f"n{n:06d}" for n in ids],
            "v": pa.array([0] * ROWS, pa.int64()),
        }
    )
    made = pennon.write_dataset(table, uri, max_rows_per_file=ROWS // PARTS, **options)
    for column in ("id", "day", "name"):
        for kind in index_kinds:
            made.create_scalar_index(column, kind, name=f"{column}_{kind}")


@contextmanager
def only_fragments(uri: str, *kept: int) -> Iterator[None]:
    """Put the data files of all other fragments away."""
    files = [
        Path(uri, "data", file.path)
        for fragment in pennon.dataset(uri).get_fragments()
        for file in fragment.data_files()
        if fragment.fragment_id not in kept
    ]
    for file in files:
        file.rename(file.with_suffix(".away"))
    try:
        yield
    finally:
        for file in files:
            file.with_suffix(".away").rename(file)


@contextmanager
def only_first_pages(uri: str, *kept: int) -> Iterator[None]:
    """Fill the pages of all other fragments with 0xFF; their statistics stay."""
    files = {
        Path(uri, "data", file.path): Path(uri, "data", file.path).read_bytes()
        for fragment in pennon.dataset(uri).get_fragments()
        for file in fragment.data_files()
        if fragment.fragment_id not in kept
    }
    for file, old in files.items():
        file.write_bytes(b"\xff" * 4096 + old[4096:])
    try:
        yield
    finally:
        for file, old in files.items():
            file.write_bytes(old)


def upsert(uri: str, rows: DataFrame, condition: str) -> Any:
    """Merge rows (k, w); return the counts."""
    merge = LanceTable.forPath(rows.sparkSession, uri).alias("t").merge(rows.alias("s"), condition)
    merge = merge.whenMatchedUpdate(set={"v": "s.w"})
    return merge.whenNotMatchedInsert(values={"id": "s.n", "v": "s.w"}).execute().first()


CONDITIONS = {
    "id": ("t.id = s.k", "n"),
    "day": ("s.k = t.day AND s.w > 0", "date_add(DATE '2026-01-01', int(n))"),
    "name": ("(t.name = s.k)", "printf('n%06d', n)"),
}


@pytest.mark.parametrize("kind", ["BTREE", "ZONEMAP", "BLOOMFILTER"])
@pytest.mark.parametrize("column", CONDITIONS)
def test_merge_prunes_fragments_by_index(
    spark: SparkSession, uri: str, column: str, kind: str
) -> None:
    """Keys of the third fragment, one that no row has, and NULL."""
    make(uri, kind)
    condition, key = CONDITIONS[column]
    new = [*range(2100, 2200), ROWS + 5]
    rows = spark.createDataFrame([(n,) for n in new], "n int")
    rows = rows.selectExpr("n", f"{key} AS k", "n + 1L AS w")
    rows = rows.union(spark.sql(f"SELECT -1 AS n, {key} AS k, 1L AS w FROM (SELECT int(NULL) n)"))
    with only_fragments(uri, 2):
        told = upsert(uri, rows, condition)
    assert (told.num_updated_rows, told.num_inserted_rows) == (100, 2)
    found = rows_of(uri)
    assert {n for n, row in found.items() if row[-1]} == {*new, -1}
    assert len(found) == ROWS + 2


def test_without_an_index_all_fragments_are_read(spark: SparkSession, uri: str) -> None:
    make(uri)
    rows = spark.createDataFrame([(2100, 2100, 1)], "n int, k int, w long")
    with only_fragments(uri, 2), pytest.raises(Exception, match="NotFoundError"):
        upsert(uri, rows, "t.id = s.k")
    assert lance.dataset(uri).version == 1


@pytest.mark.parametrize("count", [50, 1500])
def test_merge_prunes_pages_by_statistics(spark: SparkSession, uri: str, count: int) -> None:
    """Few keys, and so many that their range is asked for; some fit no row.  pylance reads no such statistics."""
    make(uri, data_storage_version="2.0", rows_per_zone=500)
    last = ROWS - count // 2
    rows = spark.range(last, last + count).selectExpr("int(id) AS n", "id AS k", "1L AS w")
    with only_first_pages(uri, 2, 3):
        told = upsert(uri, rows, "t.id = s.k")
    assert (told.num_updated_rows, told.num_inserted_rows) == (count // 2, count - count // 2)
    found = pennon.dataset(uri).to_table().to_pydict()
    assert sorted(found["id"]) == list(range(last + count))
    assert sum(found["v"]) == count


@pytest.mark.parametrize("kind", ["BTREE", "ZONEMAP"])
def test_a_wide_range_of_keys_leaves_out_no_row(spark: SparkSession, uri: str, kind: str) -> None:
    make(uri, kind)
    rows = spark.range(-(1 << 40), 1 << 40, (1 << 40) // 1024)
    rows = rows.union(spark.range(0, ROWS, 2)).selectExpr("0 AS n", "id AS k", "3L AS w").distinct()
    table = LanceTable.forPath(spark, uri)
    merge = table.alias("t").merge(rows.alias("s"), "t.id = s.k")
    told = merge.whenMatchedUpdate(set={"v": "s.w"}).execute().first()
    assert told is not None
    assert told.num_updated_rows == ROWS // 2
    assert {n for n, row in rows_of(uri).items() if row[-1] == 3} == set(range(0, ROWS, 2))


def test_merge_by_dates_beyond_year_9999(spark: SparkSession, uri: str) -> None:
    make(uri, "BTREE")
    rows = spark.sql("SELECT -1 AS n, date_add(DATE '9999-12-31', 1) AS k, 5L AS w")
    rows = rows.union(spark.sql("SELECT 0, DATE '2026-01-02', 6L"))
    told = upsert(uri, rows, "t.day = s.k")
    assert (told.num_updated_rows, told.num_inserted_rows) == (1, 1)
    assert {n: row[-1] for n, row in rows_of(uri).items() if row[-1]} == {1: 6, -1: 5}


@pytest.mark.parametrize("count", [2, 1500])
def test_dates_before_the_year_1000_are_keys(spark: SparkSession, uri: str, count: int) -> None:
    """One by one, and as the ends of a range."""
    make(uri, "ZONEMAP")
    rows = spark.range(count).selectExpr(
        "-1 AS n", "date_add(DATE '0001-01-01', int(id)) AS k", "5L AS w"
    )
    rows = rows.union(spark.sql("SELECT 0, DATE '2026-01-02', 6L"))
    told = upsert(uri, rows, "t.day = s.k")
    assert (told.num_updated_rows, told.num_inserted_rows) == (1, count)
    found = pennon.dataset(uri).to_table(filter="v = 6").to_pylist()
    assert [row["id"] for row in found] == [1]


def test_merge_when_not_matched_by_source_with_index(spark: SparkSession, uri: str) -> None:
    make(uri, "BTREE")
    rows = spark.createDataFrame([(1,)], "k int")
    merge = LanceTable.forPath(spark, uri).merge(rows, "id = k")
    merge.whenNotMatchedBySourceDelete("id >= 10").execute()
    assert set(rows_of(uri)) == set(range(10))


@pytest.mark.parametrize("is_lost", [False, True], ids=["stored", "lost"])
def test_merge_with_nondeterministic_source_keys(
    spark: SparkSession, uri: str, is_lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is stored until the merge is done; where that is lost, no key is taken for one that matches nothing."""
    make(uri, "ZONEMAP")
    rows = spark.range(0, 40, 1, 2).mapInArrow(whims, "k long").selectExpr("0 AS n", "k")
    if is_lost:
        monkeypatch.setattr(type(rows), "persist", lambda frame: frame)
    merge = LanceTable.forPath(spark, uri).merge(rows, "id = k")
    told = merge.whenNotMatchedInsert(values={"id": "n", "v": "k"}).execute().first()
    assert told is not None
    assert told.num_inserted_rows == 40
    assert not rows.storageLevel.useMemory
    assert lance.dataset(uri).count_rows() == ROWS + 40


@pytest.mark.parametrize(
    "name",
    ["spark.pennon.schema.autoMerge.enabled", "spark.databricks.delta.schema.autoMerge.enabled"],
)
def test_session_setting_auto_merge_adds_columns(spark: SparkSession, uri: str, name: str) -> None:
    make(uri)
    spark.conf.set(name, "true")
    try:
        rows = spark.createDataFrame([(1, "a"), (ROWS, "b")], "id int, more string")
        merge = LanceTable.forPath(spark, uri).alias("t").merge(rows.alias("s"), "t.id = s.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        pennon.spark.write(spark.sql("SELECT -5 AS id, 1.5D AS last"), uri, "append")
    finally:
        spark.conf.unset(name)
    found = lance.dataset(uri).to_table(
        filter="id IN (-5, 0, 1, 4000)", columns=["id", "more", "last"]
    )
    assert sorted(found.to_pylist(), key=lambda row: row["id"]) == [
        {"id": -5, "more": None, "last": 1.5},
        {"id": 0, "more": None, "last": None},
        {"id": 1, "more": "a", "last": None},
        {"id": ROWS, "more": "b", "last": None},
    ]
    with pytest.raises(SchemaMismatchError):
        pennon.spark.write(spark.sql("SELECT 1 AS id, 1 AS other"), uri, "append")
