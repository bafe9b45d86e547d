"""Reading: options, pruning, partitions, both push-down settings, views, limits."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import pennon
import pennon.spark
from pennon.errors import ArgumentError, UnsupportedError
from pennon.file import LanceFileReader
from pennon.spark import LanceTable
from pennon.spark.source.data_source import LanceReader
from pennon.spark.source.options import parse_read_options

PUSH_DOWN = "spark.sql.python.filterPushdown.enabled"
ROWS = 30_000


def table() -> pa.Table:
    """Three fragments' worth: every kind of column that a filter may name, with NULLs."""
    numbers = list(range(ROWS))
    position = [{"x": n, "y": None if n % 4 == 0 else f"y{n}"} for n in numbers]
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "name": [None if n % 7 == 0 else f"n{n % 100}" for n in numbers],
            "score": pa.array([_score(n) for n in numbers], pa.float64()),
            "small": pa.array([n % 200 for n in numbers], pa.uint8()),
            "day": pa.array([n % 365 for n in numbers], pa.int32()).cast(pa.date32()),
            "at": pa.array(numbers, pa.int64()).cast(pa.timestamp("us", "UTC")),
            "flag": [None if n % 5 == 0 else n % 2 == 0 for n in numbers],
            "position": position,
        }
    )


def _score(number: int) -> float | None:
    special = (None, float("nan"), -0.0, 0.0, float("inf"), float("-inf"))
    return special[number % 10] if number % 10 < len(special) else number / 4


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("read") / "t.lance")
    pennon.write_dataset(table(), uri, max_rows_per_file=10_000)
    assert pennon.dataset(uri).data_storage_version == "2.1"
    return uri


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("read") / "t.parquet")
    pq.write_table(table(), path)
    return path


@pytest.fixture(params=["false", "true"])
def push_down(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    spark.conf.set(PUSH_DOWN, request.param)
    yield request.param
    spark.conf.unset(PUSH_DOWN)


CONDITIONS = (
    "id = 5",
    "id IN (1, 2, 29999, NULL)",
    "id > 29990 AND id <= 29998",
    "id <> 3 AND id < 6",
    "name = 'n3' AND id < 500",
    "name LIKE 'n1%' AND name LIKE '%7'",
    "contains(name, '99')",
    "name IS NULL AND id < 100",
    "name IS NOT NULL AND id < 10",
    "name <=> 'n5' AND id < 900",
    "NOT (name = 'n5') AND id < 20",
    "score > 7000",
    "score >= double('NaN') AND id < 100",
    "score = double('NaN') AND id < 100",
    "score = 0.0 AND id < 100",
    "score < 0 AND id < 100",
    "small = 7 AND id < 3000",
    "day >= date'1970-12-25'",
    "at < timestamp'1970-01-01 00:00:00.000020'",
    "flag AND id < 30",
    "NOT flag AND id < 30",
    "flag IS NULL AND id < 30",
    "position.x = 17",
    "position.y = 'y17'",
    "id = 1 OR name = 'n2'",
    "length(name) = 2 AND id < 200",
)


@pytest.fixture(scope="module")
def truth(spark: SparkSession, parquet: str) -> dict[str, list[int]]:
    """The ids of the rows of each condition: Spark's own answers, over all rows in one pass.

    Asked as columns, not as filters: pushed into Parquet, a filter loses rows of NaN.
    """
    wanted = (f"sort_array(collect_list(IF({condition}, id, NULL)))" for condition in CONDITIONS)
    answers = spark.read.parquet(parquet).selectExpr(*wanted).collect()[0]
    assert all(answers)
    return dict(zip(CONDITIONS, answers, strict=True))


def ids_where(frame: DataFrame, condition: str) -> list[int]:
    return sorted(row.id for row in frame.where(condition).select("id").collect())


def test_unpushed_filters_select_the_rows_of_parquet(
    spark: SparkSession, stored: str, truth: dict[str, list[int]], push_down: str
) -> None:
    ours = spark.read.format("lance").load(stored)
    for condition in ("id = 5", "id = 1 OR name = 'n2'", "score = double('NaN') AND id < 100"):
        assert ids_where(ours, condition) == truth[condition], condition


def test_pushed_filters_select_the_rows_of_parquet(
    spark: SparkSession, stored: str, parquet: str, truth: dict[str, list[int]]
) -> None:
    spark.conf.set(PUSH_DOWN, "true")
    try:
        for condition in CONDITIONS:
            once = spark.read.format("lance").option("push_filters", "true").load(stored)
            assert ids_where(once, condition) == truth[condition], condition
        few = "id > 29990 AND id <= 29998"
        once = spark.read.format("lance").option("push_filters", "true").load(stored)
        rows = spark.read.parquet(parquet).where(few)
        assert list(map(str, once.where(few).collect())) == list(map(str, rows.collect()))
    finally:
        spark.conf.unset(PUSH_DOWN)


FILTERS = (
    "id = 5",
    "small = 7 AND id < 3000",
    "name LIKE 'n1%' AND score > 7000",
    "position.x IN (1, 29999)",
    "position.y IS NULL AND id < 50",
    "_rowid < 5",
    "at < timestamp '1970-01-01 00:00:00.000020'",
    "id < 0",
)


def test_read_filter_equals_scan_filter(
    spark: SparkSession, stored: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where little is to be tested for few rows, no task starts."""
    dataset, columns = pennon.dataset(stored), ["name", "id"]
    for text in FILTERS:
        frame = pennon.spark.read(spark, stored, columns, filter=text)
        assert "MapInArrow" not in plan_of(frame, capsys), text
        expected = dataset.to_table(columns=columns, filter=text).to_pylist()
        assert [row.asDict() for row in frame.collect()] == expected, text
        limited = pennon.spark.read(spark, stored, columns, filter=text, limit=3).collect()
        assert [row.asDict() for row in limited] == expected[:3], text
        if "_rowid" not in text:  # which conditions of Delta do not name
            assert LanceTable.forPath(spark, stored).count(text) == len(expected), text
    with pytest.raises(ArgumentError, match="no column 'nope'"):
        pennon.spark.read(spark, stored, filter="nope = 1")


def test_a_filter_of_many_fragments_is_tested_by_tasks(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = str(tmp_path / "t.lance")
    dataset = pennon.write_dataset(table(), uri, max_rows_per_file=ROWS // 10)
    for text in FILTERS:
        frame = pennon.spark.read(spark, uri, ["name", "id"], filter=text)
        assert "MapInArrow" in plan_of(frame, capsys), text
        expected = dataset.to_table(columns=["name", "id"], filter=text).to_pylist()
        assert [row.asDict() for row in frame.collect()] == expected, text
        if "_rowid" not in text:
            assert LanceTable.forPath(spark, uri).count(text) == len(expected), text


def test_read_of_many_or_wide_rows_runs_in_tasks(
    spark: SparkSession, stored: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = pennon.spark.read(spark, stored, ["id"], filter="id >= 15000")
    assert "MapInArrow" in plan_of(many, capsys)
    assert many.agg(sf.sum("id")).first() == (sum(range(15_000, ROWS)),)
    uri = str(tmp_path / "wide.lance")
    wide = pa.table({"id": pa.array(range(100), pa.int64()), "text": ["x" * 100_000] * 100})
    pennon.write_dataset(wide, uri)
    assert "MapInArrow" in plan_of(pennon.spark.read(spark, uri, filter="id < 90"), capsys)
    few = pennon.spark.read(spark, uri, filter="id < 9")
    assert "MapInArrow" not in plan_of(few, capsys)
    assert [(row.id, len(row.text)) for row in few.collect()] == [(n, 100_000) for n in range(9)]


def plan_of(frame: DataFrame, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    frame.explain()
    return capsys.readouterr().out


def test_pushed_filters_leave_the_plan(
    spark: SparkSession, stored: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spark.conf.set(PUSH_DOWN, "true")
    try:
        once = spark.read.format("lance").option("push_filters", "true").load(stored)
        assert "Filter" not in plan_of(once.where("id < 10"), capsys).replace("RuntimeFilter", "")
        kept = plan_of(once.where("id < 10 AND length(name) > 1"), capsys)
        assert "Filter" in kept.replace("RuntimeFilter", "")
    finally:
        spark.conf.unset(PUSH_DOWN)


def test_pushed_filter_of_one_query_is_absent_from_the_next(
    spark: SparkSession, stored: str, push_down: str
) -> None:
    """Spark 4.3.0 keeps what it planned for a DataFrame, pushed filters included."""
    frame = spark.read.format("lance").load(stored)
    assert frame.where("id < 10").count() == 10
    assert frame.count() == ROWS
    few, many = frame.where("id < 10"), frame.where("id < 1000")
    assert few.join(many, "id").count() == 10


def test_partitions_follow_fragments_and_split_by_bytes(spark: SparkSession, stored: str) -> None:
    reader = spark.read.format("lance")
    assert reader.load(stored).rdd.getNumPartitions() == 3
    read = pennon.spark.read(spark, stored)  # knows that there are two cores
    assert read.rdd.getNumPartitions() == 2
    assert [row.id for row in read.select("id").collect()] == list(range(ROWS))
    split = reader.option("max_partition_bytes", 100_000).load(stored)
    assert split.rdd.getNumPartitions() > 6
    assert [row.id for row in split.select("id").collect()] == list(range(ROWS))


def test_options_choose_version_columns_and_row_columns(spark: SparkSession, uri: str) -> None:
    pennon.write_dataset(pa.table({"a": [1, 2], "b": ["x", "y"]}), uri)
    first = pennon.dataset(uri).versions()[0]["timestamp"].astimezone()
    pennon.write_dataset(pa.table({"a": [3], "b": ["z"]}), uri, mode="append")

    def load(**options: str | int | bool) -> list[tuple[object, ...]]:
        rows = spark.read.format("lance").options(**options).load(uri).orderBy("a").collect()
        return [tuple(row) for row in rows]

    assert load(version=1) == [(1, "x"), (2, "y")]
    assert load(asof=first.isoformat()) == load(version=1)
    assert load(columns="a") == [(1,), (2,), (3,)]
    assert load(columns="b,a") == [("x", 1), ("y", 2), ("z", 3)]
    assert load(columns="a", with_row_id="true") == [(1, 0), (2, 1), (3, 1 << 32)]
    assert load(columns="a", with_row_address="true")[2] == (3, 1 << 32)
    assert load(batch_size=1) == load()
    read = pennon.spark.read(spark, uri, ["b"], version=1, with_row_id=True)
    assert read.columns == ["b", "_rowid"]
    assert read.count() == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"colums": "a"}, "unknown option colums; there are path, version"),
        ({"version": "9"}, "9"),
        ({"version": "1", "asof": "2026-01-01T00:00:00Z"}, "version or asof"),
        ({"columns": "a,nothing"}, "no column 'nothing'; there are id, name|no column 'a'"),
        ({"batch_size": "-1"}, "batch_size is a positive whole number"),
        ({"asof": "yesterday"}, "ISO time"),
    ],
)
def test_read_with_invalid_options_is_refused(
    spark: SparkSession, stored: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(PySparkException, match=message):
        spark.read.format("lance").options(**options).load(stored).count()


def test_a_schema_prunes_columns_and_parts_of_structs(spark: SparkSession, stored: str) -> None:
    frame = spark.read.format("lance").schema("position struct<y:string>, id long").load(stored)
    assert tuple(frame.where("id = 5").collect()[0]) == (("y5",), 5)
    dotted = spark.read.format("lance").option("columns", "position.x,id").load(stored)
    assert dotted.schema.simpleString() == "struct<position:struct<x:bigint>,id:bigint>"
    with pytest.raises(PySparkException, match=r"no column 'nope'; there are id, name"):
        spark.read.format("lance").schema("nope int").load(stored).count()


def test_pruned_columns_are_not_read(spark: SparkSession, uri: str, tmp_path: Path) -> None:
    """Pruning is seen from its effect: a column whose bytes are gone is in nobody's way."""
    names = pa.array([f"a long name of row {n}" for n in range(20_000)])
    pennon.write_dataset(pa.table({"a": range(20_000), "b": names}), uri)
    (file,) = Path(uri, "data").glob("*.lance")
    damaged = bytearray(file.read_bytes())
    for page in LanceFileReader(str(file)).metadata().columns[1].pages:
        for buffer in page.buffers:
            place = slice(buffer.position, buffer.position + buffer.size)
            damaged[place] = b"\xff" * buffer.size
    file.write_bytes(damaged)
    total = 20_000 * 19_999 // 2
    frame = spark.read.format("lance").schema("a long").load(uri)
    assert frame.groupBy().sum().collect()[0][0] == total
    assert pennon.spark.read(spark, uri, ["a"]).groupBy().sum().collect()[0][0] == total
    with pytest.raises(PySparkException, match="FormatError"):
        spark.read.format("lance").load(uri).selectExpr("max(b)").collect()


def test_temporary_views_select_and_insert(spark: SparkSession, uri: str) -> None:
    pennon.write_dataset(pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}), uri)
    create = f"CREATE OR REPLACE TEMPORARY VIEW v USING lance OPTIONS (path '{uri}')"
    spark.sql(create)
    spark.sql("INSERT INTO v VALUES (2, 'y')")
    spark.sql("INSERT INTO v (b, a) SELECT 'z', 3")
    assert spark.sql("SELECT sum(a), max(b) FROM v").collect()[0] == (6, "z")
    spark.sql("INSERT OVERWRITE v VALUES (9, 'o')")
    spark.sql(create)
    assert [tuple(row) for row in spark.sql("SELECT * FROM v").collect()] == [(9, "o")]
    spark.sql(create.replace(f"'{uri}'", f"'{uri}', version '1'"))
    assert spark.sql("SELECT * FROM v").collect() == [(1, "x")]
    assert pennon.dataset(uri).version == 4


def test_read_skips_deleted_rows(spark: SparkSession, uri: str) -> None:
    pennon.write_dataset(pa.table({"a": range(1000)}), uri, max_rows_per_file=500)
    lance.dataset(uri).delete("a % 3 = 0")
    frame = spark.read.format("lance").option("max_partition_bytes", 1000).load(uri)
    expected = [n for n in range(1000) if n % 3]
    assert [row.a for row in frame.collect()] == expected
    assert frame.count() == len(expected)


def test_a_reader_in_a_fresh_worker_imports_no_pandas(spark: SparkSession, stored: str) -> None:
    """Importing pandas takes longer than reading; ``pa.array`` and pyarrow.dataset would do it."""
    program = (
        "import pickle, sys\n"
        "reader, partition = pickle.loads(bytes.fromhex(sys.argv[1]))\n"
        "assert next(reader.read(partition)).num_rows\n"
        "assert 'pandas' not in sys.modules\n"
    )
    frame = spark.read.format("lance").load(stored)
    reader = LanceReader(parse_read_options({"path": stored}), frame.schema)
    pickled = cloudpickle.dumps((reader, reader.partitions()[0])).hex()
    subprocess.run([sys.executable, "-c", program, pickled], check=True)


def test_asof_option_respects_the_time_zone(spark: SparkSession, uri: str) -> None:
    pennon.write_dataset(pa.table({"a": [1]}), uri)
    before = datetime(2000, 1, 1, tzinfo=UTC).isoformat()
    with pytest.raises(PySparkException, match="NotFoundError"):
        spark.read.format("lance").option("asof", before).load(uri).count()


def test_read_reports_table_size_to_the_planner(spark: SparkSession, tmp_path: Path) -> None:
    """Else it takes each for some bytes, and sends all of it to every executor where two are joined."""
    uri, rows = str(tmp_path / "large.lance"), 2_000_000
    pennon.write_dataset(pa.table({"id": range(rows)}), uri)
    frame = pennon.spark.read(spark, uri)
    stats = frame._jdf.queryExecution().optimizedPlan().stats()
    assert stats.sizeInBytes() >= 8 * rows
    assert frame.selectExpr("count(*)", "sum(id)").first() == (rows, rows * (rows - 1) // 2)
    joined = frame.join(frame.withColumnRenamed("id", "other"), sf.expr("id = other"))
    assert "BroadcastHashJoin" not in joined._jdf.queryExecution().executedPlan().toString()


def test_column_of_storage_class_blob(spark: SparkSession) -> None:
    """Values in a nested table, as pylance 0.19.2 wrote them, are read, filtered and aggregated; writes fail."""
    golden = Path(__file__).parents[1] / "golden" / "datasets" / "v0.19.2" / "blob_storage_class"
    rows = pennon.dataset(golden).to_table()
    for frame in (
        spark.read.format("lance").load(str(golden)),
        LanceTable.forPath(spark, str(golden)).toDF(),
    ):
        found = {row["id"]: row["b"] for row in frame.collect()}
        want = dict(zip(rows["id"].to_pylist(), rows["b"].to_pylist(), strict=True))
        assert {n: None if b is None else bytes(b) for n, b in found.items()} == want
        assert {row["id"] for row in frame.where("b IS NULL").select("id").collect()} == {2, 7}
        assert frame.where("octet_length(b) > 3").count() == 2
    with pytest.raises(UnsupportedError, match="storage class blob"):
        LanceTable.forPath(spark, str(golden)).delete("id = 2")


def test_relative_path_means_the_same_to_functions_and_the_data_source(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both take it from where the session was started, as Spark's own readers do."""
    relative = os.path.relpath(tmp_path / "t.lance", Path.cwd())
    monkeypatch.chdir(tmp_path)
    pennon.spark.write(spark.range(3), relative)
    assert spark.read.format("lance").load(relative).count() == 3
    assert pennon.spark.read(spark, relative).count() == 3
    assert LanceTable.forPath(spark, relative).count() == 3
    spark.range(2).write.format("lance").mode("append").save(relative)
    assert pennon.dataset(str(tmp_path / "t.lance")).count_rows() == 5
