"""Tables, views and functions by name in SQL without a catalog, and statements that are refused."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import pennon
import pennon.spark
from pennon.errors import ArgumentError, NotFoundError
from pennon.spark import LanceTable

REFUSED = r"table of Spark's catalog.*pennon\.spark\.view.*DROP TABLE"


@pytest.fixture
def catalog(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, whose catalog is empty again in the end."""
    yield spark
    for each in spark.catalog.listTables():
        if each.isTemporary:
            spark.catalog.dropTempView(each.name)
        else:
            spark.sql(f"DROP TABLE {each.name}")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE t USING lance OPTIONS (path '{uri}')",
        "CREATE TABLE t USING lance LOCATION '{folder}/u.lance' AS SELECT 1 AS a",
    ],
)
def test_create_table_using_lance_is_refused(
    catalog: SparkSession, table: LanceTable, tmp_path: Path, statement: str
) -> None:
    with pytest.raises(PySparkException, match=REFUSED):
        catalog.sql(statement.format(uri=table.uri, folder=tmp_path))
    assert catalog.catalog.listTables() == []
    assert [path.name for path in tmp_path.iterdir()] == ["table.lance"]
    assert table.count() == 4


def test_save_as_table_is_refused(catalog: SparkSession) -> None:
    rows = catalog.range(3)
    with pytest.raises(PySparkException, match=REFUSED):
        rows.write.format("lance").saveAsTable("t")
    assert catalog.catalog.listTables() == []


def test_catalog_table_using_lance_refuses_select_and_insert(
    catalog: SparkSession, table: LanceTable
) -> None:
    catalog.sql(f"CREATE TABLE t (key string, value long) USING lance LOCATION '{table.uri}'")
    for statement in ("SELECT * FROM t", "INSERT INTO t VALUES ('x', 1)"):
        with pytest.raises(PySparkException, match=REFUSED):
            catalog.sql(statement).collect()
    catalog.sql("DROP TABLE t")
    assert table.count() == 4


# --- views ----------------------------------------------------------------------------------------


def test_one_call_brings_a_view_to_the_newest_version(
    catalog: SparkSession, table: LanceTable
) -> None:
    view = pennon.spark.view(catalog, table.uri, "v")
    count = "SELECT count(*) AS n FROM v"
    assert (view.version, catalog.sql(count).first()) == (1, (4,))
    table.delete("key = 'a'")
    assert catalog.sql(count).first() == (4,)
    assert view.refresh() == 2
    assert (view.version, catalog.sql(count).first()) == (2, (3,))


def test_view_of_version_filter_or_tag_keeps_its_scope_on_refresh(
    catalog: SparkSession, table: LanceTable
) -> None:
    first = pennon.spark.view(catalog, table.uri, "one", version=1)
    large = pennon.spark.view(catalog, table.uri, "large", ["key"], filter="value > 2")
    ds = pennon.dataset(table.uri)
    ds.tags.create("good", 1)
    good = pennon.spark.view(catalog, table.uri, "good", tag="good")
    table.delete("key = 'd'")
    ds.tags.update("good", 2)
    assert [each.refresh() for each in (first, large, good)] == [1, 2, 2]
    assert catalog.table("one").count() == 4
    assert catalog.table("large").collect() == [("c",)]
    assert catalog.table("good").count() == 3


# --- versions by name -----------------------------------------------------------------------------


def test_tags_branches_and_times_are_options(catalog: SparkSession, table: LanceTable) -> None:
    ds = pennon.dataset(table.uri)
    ds.tags.create("first", 1)
    branch = ds.create_branch("try/it")
    branch.delete("key IN ('a', 'b')")
    ds.tags.create("tried", ("try/it", branch.version))
    table.delete("key = 'a'")
    made = pennon.dataset(table.uri, version=1).get_version()["timestamp"].astimezone()

    def load(**options: str) -> int:
        return catalog.read.format("lance").options(**options).load(table.uri).count()

    last = str(branch.version)
    assert load() == 3
    assert load(versionAsOf="1") == load(version="first") == load(tag="first") == 4
    assert load(timestampAsOf=made.isoformat()) == load(asof=made.isoformat()) == 4
    assert load(branch="try/it") == load(branch="try/it", version=last) == load(tag="tried") == 2
    assert load(branch="main") == 3

    def read(**options: Any) -> int:
        return table.read(**options).count()

    assert read(version="first") == read(tag="first") == read(version=1) == 4
    assert read(asof=made) == read(asof=made.isoformat()) == 4
    assert read(branch="try/it") == read(version="tried") == 2
    late = datetime.now(UTC) + timedelta(days=1)
    assert read(branch="try/it", asof=late) == 2
    with pytest.raises(NotFoundError, match="nothing"):
        read(tag="nothing")
    with pytest.raises(NotFoundError, match="nowhere"):
        read(branch="nowhere")
    with pytest.raises(ArgumentError, match="leave out branch"):
        read(tag="first", branch="try/it")
    with pytest.raises(ArgumentError, match="version or tag"):
        read(tag="first", version=1)


# --- threads --------------------------------------------------------------------------------------


def test_threads_without_an_active_session_read_and_write(
    spark: SparkSession, table: LanceTable, tmp_path: Path
) -> None:
    def work(number: int) -> tuple[int, int, int]:
        rows = pennon.spark.read(spark, table.uri)
        pennon.spark.write(rows, str(tmp_path / "many.lance"), "append")
        return number, spark.read.format("lance").load(table.uri).count(), rows.count()

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(work, range(3))) == [(number, 4, 4) for number in range(3)]
    assert pennon.dataset(str(tmp_path / "many.lance")).count_rows() == 12


# --- counts ---------------------------------------------------------------------------------------


def test_lance_table_count_with_conditions(table: LanceTable) -> None:
    assert table.count() == 4
    assert table.count("value >= 2 AND key <> 'd'") == 2  # our own tasks
    assert table.count("value % 2 = 0") == 2  # Spark
    assert table.count(sf.col("value") > 3) == 1
    assert table.alias("t").count("t.key = 'a' OR length(t.key) > 1") == 1
    table.delete("key = 'b'")
    assert (table.count(), table.count("value < 3"), table.count("value + 0 < 3")) == (3, 1, 1)
    table.delete()
    assert (table.count(), table.count("value < 3"), table.count("value + 0 < 3")) == (0, 0, 0)


# --- table functions ------------------------------------------------------------------------------


def test_sql_functions_list_history_files_and_columns(
    catalog: SparkSession, table: LanceTable
) -> None:
    pennon.spark.register(catalog)
    table.delete("key = 'a'")

    def ask(columns: str, function: str) -> list[tuple[Any, ...]]:
        rows = catalog.sql(f"SELECT {columns} FROM {function}('{table.uri}')").collect()
        return [tuple(row) for row in rows]

    ds = pennon.dataset(table.uri)
    times = [version["timestamp"] for version in ds.versions()]
    found = ask("version, timestamp, fragments, physical_rows, deleted_rows", "lance_versions")
    assert [row[0] for row in found] == [1, 2]
    assert [row[1] for row in found] == times
    assert [row[2:] for row in found] == [(2, 4, 0), (2, 4, 1)]
    found = ask("fragment_id, rows, physical_rows, files, deletion_file", "lance_fragments")
    assert [row[:4] for row in found] == [(0, 1, 2, 1), (1, 2, 2, 1)]
    assert [Path(table.uri, row[4]).exists() if row[4] else None for row in found] == [True, None]
    found = ask("fragment_id, path, file_version, size_bytes, fields", "lance_files")
    assert [(row[0], row[2], row[4]) for row in found] == [
        (0, "2.1", ["key", "value"]),
        (1, "2.1", ["key", "value"]),
    ]
    assert all(Path(table.uri, row[1]).stat().st_size == row[3] for row in found)
    assert ask("*", "lance_indices") == []
    found = ask("version, operation, operationMetrics['numDeletedRows']", "lance_history")
    assert found == [(2, "DELETE", "1"), (1, "WRITE", None)]
    joined = catalog.sql(
        f"SELECT count(*) FROM (SELECT '{table.uri}' AS uri), LATERAL lance_files(uri)"
    )
    assert joined.first() == (2,)


def test_sql_reads_a_version(catalog: SparkSession, table: LanceTable) -> None:
    pennon.spark.register(catalog)
    pennon.dataset(table.uri).tags.create("first", 1)
    table.delete("key = 'a'")
    count = "SELECT count(*), sum(value) FROM lance_at"
    assert catalog.sql(f"{count}('{table.uri}', 1)").first() == (4, 10)
    assert catalog.sql(f"{count}('{table.uri}', 'first')").first() == (4, 10)
    assert catalog.sql(f"{count}('{table.uri}', 2)").first() == (3, 9)
    assert catalog.sql(f"{count}('{table.uri}')").first() == (3, 9)
    with pytest.raises(PySparkException, match="uri is a literal"):
        catalog.sql("SELECT * FROM lance_at(NULL, 1)").collect()
    with pytest.raises(PySparkException, match="version 9"):
        catalog.sql(f"SELECT * FROM lance_at('{table.uri}', 9)").collect()


def test_sql_lance_at_equals_spark_read(catalog: SparkSession, uri: str) -> None:
    at = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    entries = pa.map_(pa.string(), pa.int64())
    rows = pa.table(
        {
            "b": pa.array([True, None]),
            "i": pa.array([1, None], pa.int8()),
            "u": pa.array([1 << 63, None], pa.uint64()),
            "f": pa.array([float("inf"), None], pa.float32()),
            "d": pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)),
            "s": ["é", None],
            "x": pa.array([b"\0", None]),
            "day": pa.array([date(2026, 1, 1), None]),
            "ts": pa.array([at, None], pa.timestamp("us", "UTC")),
            "ntz": pa.array([at.replace(tzinfo=None), None], pa.timestamp("us")),
            "gap": pa.array([timedelta(days=1, microseconds=1), None], pa.duration("us")),
            "items": pa.array([[1, None], None], pa.list_(pa.int32())),
            "m": pa.array([[("k", 1)], None], entries),
            "deep": pa.array([[{"m": [("k", None)], "n": 1}], None], _deep(entries)),
        }
    )
    pennon.write_dataset(rows, uri, data_storage_version="2.2")
    pennon.spark.register(catalog)
    found = catalog.sql(f"SELECT * FROM lance_at('{uri}')")
    wanted = pennon.spark.read(catalog, uri)
    assert [f.dataType for f in found.schema] == [f.dataType for f in wanted.schema]
    assert found.collect() == wanted.collect()


def _deep(entries: pa.DataType) -> pa.DataType:
    return pa.list_(pa.struct({"m": entries, "n": pa.int64()}))
