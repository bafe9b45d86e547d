"""Aggregates and counts that tasks work out where they read, against Spark's own of the same rows."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as sf

import pennon
import pennon.spark
from pennon.errors import ArgumentError
from pennon.spark.frames import partial_aggregates
from pennon.spark.frames.partial_aggregates import Part, Partials, Way

ROWS = 3000
LEAST, MOST = -(1 << 63), (1 << 63) - 1
START = datetime(2020, 1, 1, tzinfo=UTC)
FLOATS = (math.nan, -0.0, 0.0, 1.5, -2.0, math.inf, 3.25)
SUMS = ("count", "sum", "min", "max", "mean")
IN_TASKS: Mapping[str, str | Sequence[str]] = {
    "*": "count",
    **dict.fromkeys(("i8", "l", "f32", "f64"), SUMS),
    "dec": ("count", "sum", "min", "max"),
    **dict.fromkeys(("s", "b", "ts", "day", "bin"), ("min", "max", "count")),
    "u64": ("sum", "max"),
    "items": "count",
}
IN_SPARK: Mapping[str, str | Sequence[str]] = {"*": "count", "dec": "mean", "dec38": "sum"}
"""What has answers of its own in Spark."""


def rows_of(seed: int) -> pa.Table:
    """Random rows of all kinds, a tenth of the values NULL."""
    dice = random.Random(seed)

    def column(value: Callable[[], object], kind: pa.DataType) -> pa.Array[Any]:
        values = [None if dice.random() < 0.1 else value() for _ in range(ROWS)]
        return pa.array(values, kind)

    columns = {
        "k": column(lambda: dice.randrange(7), pa.int32()),
        "i8": column(lambda: dice.randrange(-128, 128), pa.int8()),
        "l": column(lambda: dice.randrange(-(1 << 50), 1 << 50), pa.int64()),
        "f32": column(lambda: dice.choice(FLOATS), pa.float32()),
        "f64": column(lambda: dice.choice(FLOATS), pa.float64()),
        "dec": column(lambda: Decimal(dice.randrange(10**9)).scaleb(-2), pa.decimal128(12, 2)),
        "dec38": column(lambda: Decimal(dice.randrange(10**9)), pa.decimal128(38, 0)),
        "u64": column(lambda: dice.randrange(1 << 63), pa.uint64()),
        "s": column(lambda: dice.choice(["", "a", "z", "é", "\U0001f600"]), pa.string()),
        "b": column(lambda: dice.random() < 0.5, pa.bool_()),
        "ts": column(
            lambda: START + timedelta(seconds=dice.randrange(10**8)), pa.timestamp("us", "UTC")
        ),
        "day": column(lambda: date(2020, 1, 1) + timedelta(dice.randrange(99)), pa.date32()),
        "bin": column(lambda: bytes([dice.randrange(256)]), pa.binary()),
        "items": column(lambda: [1, 2], pa.list_(pa.int32())),
        "point": column(lambda: {"x": dice.randrange(3)}, pa.struct({"x": pa.int64()})),
    }
    return pa.table(columns)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of several fragments, with deleted rows."""
    uri = str(tmp_path_factory.mktemp("aggregates") / "t.lance")
    pennon.write_dataset(rows_of(1), uri, max_rows_per_file=1300)
    pennon.dataset(uri).delete("i8 = 3")
    return uri


def comparable(row: Row) -> tuple[object, ...]:
    """A row whose NaN equals itself, and whose sums do not tell in which order they were made."""

    def plain(value: object) -> object:
        return f"{value + 0.0:.10g}" if isinstance(value, float) else value

    return tuple(map(plain, row))


def in_spark(
    spark: SparkSession, uri: str, aggregate: Mapping[str, Any], keys: Sequence[str], where: str
) -> Any:
    """What Spark gives of the same rows."""
    pairs = [
        (column, name)
        for column, functions in aggregate.items()
        for name in ([functions] if isinstance(functions, str) else functions)
    ]
    measures = [
        getattr(sf, name)(sf.lit(1) if column == "*" else sf.col(column)) for column, name in pairs
    ]
    return pennon.spark.read(spark, uri).where(where).groupBy(*keys).agg(*measures)


@pytest.mark.parametrize(
    ("keys", "aggregate", "where"),
    [
        pytest.param([], IN_SPARK, "true", id="all rows, in Spark"),
        pytest.param([], IN_TASKS, "k > 3", id="some rows"),
        pytest.param(["f64"], IN_TASKS, "true", id="NaN and zeros"),
        pytest.param(["s", "b", "day"], IN_TASKS, "k > 3", id="three keys"),
        pytest.param(["point.x"], {"l": "mean"}, "true", id="a part of a struct, in Spark"),
    ],
)
def test_aggregates_equal_those_of_spark(
    spark: SparkSession, stored: str, keys: list[str], aggregate: Mapping[str, Any], where: str
) -> None:
    found = pennon.spark.read(spark, stored, aggregate=aggregate, group_by=keys, filter=where)
    wanted = in_spark(spark, stored, aggregate, keys, where)
    kinds = [(field.name, field.dataType) for field in found.schema]
    assert kinds == [(field.name, field.dataType) for field in wanted.schema]
    rows, truth = (sorted(map(comparable, each.collect()), key=repr) for each in (found, wanted))
    assert rows == truth
    assert len(rows) > 0


def test_the_tasks_send_groups_and_no_rows(spark: SparkSession, stored: str) -> None:
    grouped = pennon.spark.read(spark, stored, aggregate={"l": "sum"}, group_by=["k"])
    plan = grouped._jdf.queryExecution().executedPlan().toString()
    assert "__pennon_0_0" in plan  # the partial sums are what comes out of Python
    counted = pennon.spark.read(spark, stored, aggregate={"*": "count"})
    assert "MapInArrow" not in counted._jdf.queryExecution().executedPlan().toString()
    assert counted.collect() == [Row(**{"count(1)": pennon.dataset(stored).count_rows()})]


# --- of statistics ----------------------------------------------------------------------------------

MARK = 0x1122334455667788
WITH_STATISTICS: list[dict[str, Any]] = [
    {"data_storage_version": "2.0", "rows_per_zone": 128},
    {"data_storage_version": "0.1", "max_rows_per_group": 128},
]
BOUNDS: Mapping[str, str | Sequence[str]] = {
    "*": "count",
    **dict.fromkeys(
        ("i8", "l", "f32", "f64", "dec", "u64", "s", "b", "ts", "day", "none", "long"),
        ("min", "max", "count"),
    ),
}


@pytest.mark.parametrize("options", WITH_STATISTICS, ids=["2.0", "0.1"])
@pytest.mark.parametrize(
    "deleted", [pytest.param("false", marks=pytest.mark.slow), "l > 0 AND i8 > -100"]
)
@pytest.mark.filterwarnings("ignore::pennon.errors.DataLossWarning")
def test_min_and_max_from_statistics_equal_those_of_the_rows(
    spark: SparkSession, uri: str, options: dict[str, Any], deleted: str
) -> None:
    """With NULLs and without, NaN, texts that statistics cut, rows that are not there any more."""
    rows = rows_of(3).drop_columns(["items", "point", "bin", "dec38"])
    rows = rows.append_column("none", pa.nulls(ROWS, pa.int64()))
    rows = rows.append_column("long", pa.array([f"{'z' * 200}{n}" for n in range(ROWS)]))
    full = rows.set_column(2, "l", pa.array(range(ROWS), pa.int64()))
    for each in (rows, full):
        pennon.write_dataset(each, uri, mode="append", max_rows_per_file=1300, **options)
    table = pennon.dataset(uri)
    table.delete(f"{deleted} AND _rowaddr < {1 << 32}")
    for name in ("i8", "f64", "long", "*"):
        some = BOUNDS if name == "*" else {name: BOUNDS[name]}
        found = pennon.spark.read(spark, uri, aggregate=some).collect()
        assert list(map(comparable, found)) == list(
            map(comparable, in_spark(spark, uri, some, [], "true").collect())
        )


@pytest.mark.parametrize("options", WITH_STATISTICS, ids=["2.0", "0.1"])
def test_aggregates_from_statistics_read_no_values(
    spark: SparkSession, uri: str, options: dict[str, Any]
) -> None:
    """One of the values is another in the file than it was when the statistics were made."""
    values = pa.array([*range(999), MARK], pa.int64())
    pennon.write_dataset(pa.table({"a": values, "b": values}), uri, **options)
    (file,) = Path(uri, "data").iterdir()
    data = file.read_bytes()
    at = data.index(MARK.to_bytes(8, "little"))
    file.write_bytes(data[:at] + bytes(8) + data[at + 8 :])

    def greatest(**how: Any) -> list[Any]:
        return [row[0] for row in pennon.spark.read(spark, uri, **how).collect()]

    assert greatest(aggregate={"a": ["max", "min", "count"]}) == [MARK]
    assert greatest(aggregate={"a": "max"}, filter="a >= 0") == [998]
    assert greatest(aggregate={"a": ["max", "sum"]}) == [998]
    pennon.dataset(uri).delete("b = 5")
    assert greatest(aggregate={"a": "max"}) == [998]


def test_values_of_a_column_without_nulls_are_counted_by_the_manifest(
    spark: SparkSession, uri: str
) -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int64())])
    pennon.write_dataset(pa.table([[1, 2, 3], [None, 5, 6]], schema=schema), uri)
    pennon.dataset(uri).delete("a = 2")
    known = pennon.spark.read(spark, uri, aggregate={"a": "count", "*": "count"})
    assert known.collect() == [Row(**{"count(a)": 2, "count(1)": 2})]
    assert "MapInArrow" not in known._jdf.queryExecution().executedPlan().toString()
    assert pennon.spark.read(spark, uri, aggregate={"b": "count"}).collect() == [(1,)]


# --- sums, and no rows --------------------------------------------------------------------------------


@pytest.mark.parametrize("ansi", [True, False])
def test_a_sum_overflows_as_in_spark(spark: SparkSession, uri: str, ansi: bool) -> None:
    rows = {"k": [1, 1, 2, 2], "l": pa.array([MOST, 5, LEAST, MOST], pa.int64())}
    pennon.write_dataset(pa.table(rows), uri)
    spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    try:
        sums = pennon.spark.read(spark, uri, aggregate={"l": "sum"}, group_by=["k"])
        fitting = pennon.spark.read(spark, uri, aggregate={"l": "sum"}, filter="k = 2")
        assert fitting.collect() == [Row(**{"sum(l)": -1})]
        if ansi:
            with pytest.raises(ArithmeticException):
                sums.collect()
        else:
            assert sorted(sums.collect()) == [(1, LEAST + 4), (2, -1)]
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_aggregates_of_a_table_without_rows(spark: SparkSession, uri: str) -> None:
    pennon.write_dataset(pa.table({"k": [1], "l": [2.5]}), uri)
    pennon.dataset(uri).delete("true")
    aggregate = {"l": ["count", "sum", "min", "max", "mean"], "*": "count"}
    (row,) = pennon.spark.read(spark, uri, aggregate=aggregate).collect()
    assert tuple(row) == (0, None, None, None, None, 0)
    assert pennon.spark.read(spark, uri, aggregate=aggregate, group_by=["k"]).collect() == []
    assert pennon.spark.read(spark, uri, aggregate={"*": "count"}).collect() == [(0,)]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"aggregate": {"l": "median"}}, "no aggregate 'median' of column 'l'; there are count, "),
        ({"aggregate": {"*": "sum"}}, r"no aggregate 'sum' of column '\*'; there are count$"),
        ({"aggregate": {"nothing": "sum"}}, "no column 'nothing'"),
        ({"aggregate": {"l": "sum"}, "columns": ["l"]}, "an aggregate has its own columns"),
        ({"aggregate": {"l": "sum"}, "group_by": "k"}, "group_by is a list of columns"),
        ({"group_by": ["k"]}, "names a function for at least one column"),
    ],
)
def test_wrong_aggregates_are_refused(
    spark: SparkSession, stored: str, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        pennon.spark.read(spark, stored, **given)


def test_aggregate_task_memory_is_bounded_by_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many groups leave the task again and again, few are kept to its end."""
    monkeypatch.setattr(partial_aggregates, "PIECE_ROWS", 10)
    monkeypatch.setattr(partial_aggregates, "MOST_GROUPS", 30)
    fields = [pa.field("k", pa.int64()), pa.field("p", pa.int64())]
    part = Part(Way.SUM, "v", pa.int64(), fields[1])
    partials = Partials(("k",), (part,), pa.schema(fields))

    def run(groups: int) -> tuple[list[int], dict[int, int]]:
        batches = (
            pa.record_batch({"k": [n % groups for n in some], "v": [1] * 10})
            for some in (range(start, start + 10) for start in range(0, 1000, 10))
        )
        sizes, sums = [], dict.fromkeys(range(groups), 0)
        for batch in partials.of(batches):
            sizes.append(batch.num_rows)
            for key, value in zip(*batch.to_pydict().values(), strict=True):
                sums[key] += value
        return sizes, sums

    sizes, sums = run(5)
    assert sizes == [5]
    assert sums == dict.fromkeys(range(5), 200)
    sizes, sums = run(1000)
    assert max(sizes) == 40
    assert sums == dict.fromkeys(range(1000), 1)


# --- limits ---------------------------------------------------------------------------------------


def test_read_with_limit_returns_the_first_rows(spark: SparkSession, stored: str) -> None:
    first = pennon.dataset(stored).to_table(columns=["l", "ts", "items", "point"], limit=1500)
    for limit in (0, 1, 1299, 1500):
        rows = pennon.spark.read(spark, stored, ["l", "ts", "items", "point"], limit=limit)
        assert "MapInArrow" not in rows._jdf.queryExecution().executedPlan().toString()
        found = rows.toArrow()
        assert found.column("l").to_pylist() == first.column("l").to_pylist()[:limit]
        assert found.column("ts").to_pylist() == first.column("ts").to_pylist()[:limit]
        assert found.column("point").to_pylist() == first.column("point").to_pylist()[:limit]
    every = pennon.dataset(stored).count_rows()
    assert pennon.spark.read(spark, stored, limit=10**9).count() == every


def test_a_large_limit_is_read_by_tasks(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    rows = 300_000
    numbers = pa.array(range(rows), pa.int64())
    pennon.write_dataset(pa.table({"a": numbers, "b": numbers, "c": numbers}), uri)
    frame = pennon.spark.read(spark, uri, limit=rows - 7)
    assert "MapInArrow" in frame._jdf.queryExecution().executedPlan().toString()
    assert [row.a for row in frame.select("a").collect()] == list(range(rows - 7))


def test_read_with_filter_and_limit_counts_matching_rows(spark: SparkSession, stored: str) -> None:
    passing = pennon.dataset(stored).count_rows("k = 2")
    assert pennon.spark.read(spark, stored, ["k"], filter="k = 2", limit=5).collect() == [(2,)] * 5
    assert pennon.spark.read(spark, stored, filter="k = 2", limit=10**6).count() == passing
    with pytest.raises(ArgumentError, match="limit is a number of rows, 0 or more, not -1"):
        pennon.spark.read(spark, stored, limit=-1)
