"""ORDER BY with LIMIT in SQL over Lance tables: the rows of Spark, found by the driver or by the tasks that read."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from math import inf, isnan, nan
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import pennon
import pennon.spark
from pennon.scan.plan.query import ColumnOrdering
from pennon.scan.read.tasks import OPEN_BYTES
from pennon.scan.run import sort
from pennon.spark.frames import driver_reads
from pennon.spark.frames.top_rows import TopRows

ROWS: Final = 900
KEYS: Final = ("n", "x", "price", "name", "day", "flag", "raw")


def rows_of(seed: int) -> pa.Table:
    """Return rows with keys of all kinds, most of them more than once, NULLs and NaN among them; ``id`` is in no order."""
    dice = random.Random(seed)

    def column(values: list[Any], kind: pa.DataType) -> pa.Array[Any]:
        return pa.array([dice.choice([None, *values]) for _ in range(ROWS)], kind)

    return pa.table(
        {
            "id": pa.array(dice.sample(range(ROWS), ROWS), pa.int64()),
            "n": column([-3, 0, 7], pa.int16()),
            "x": column([nan, -inf, -0.5, -0.0, 0.0, 1.5, inf], pa.float64()),
            "price": column([Decimal("-1.10"), Decimal("2.00")], pa.decimal128(10, 2)),
            "name": column(["", "a", "Z", "é", "\U0001f600"], pa.string()),
            "day": column([date(2026, 1, 1) + timedelta(n) for n in range(3)], pa.date32()),
            "flag": column([True, False], pa.bool_()),
            "raw": column([b"", b"\xff", b"a"], pa.binary()),
            "part": pa.array([{"x": dice.randrange(4), "id": -n} for n in range(ROWS)]),
        }
    )


@pytest.fixture(scope="module", autouse=True)
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """``top.t`` in Lance, of four fragments with deleted rows, and ``same_rows`` in Spark."""
    root = tmp_path_factory.mktemp("top")
    dataset = pennon.write_dataset(rows_of(3), root / "t.lance", max_rows_per_file=250)
    dataset.delete("id % 7 = 3")
    attached = pennon.spark.attach(spark, str(root), name="top")
    spark.createDataFrame(dataset.to_table()).createOrReplaceTempView("same_rows")
    yield
    attached.detach()
    spark.catalog.dropTempView("same_rows")


def ask(spark: SparkSession, text: str) -> tuple[list[str], list[str]]:
    """Return the rows of a query over the Lance table as text, and those of Spark."""
    found = pennon.spark.sql(spark, text.replace("{t}", "top.t")).collect()
    wanted = spark.sql(text.replace("{t}", "same_rows")).collect()
    return [str(row) for row in found], [str(row) for row in wanted]


def scan_of(spark: SparkSession, text: str) -> str:
    """Return what the scan of the Lance table does."""
    lines = pennon.spark.sql(spark, text.replace("{t}", "top.t"), explain=True).collect()
    return next(line[2] for line in lines if line[0] == "table top.t")


@pytest.mark.parametrize("reader", ["driver", "tasks"])
@pytest.mark.parametrize("seed", range(12))
def test_first_rows_in_random_orders_equal_those_of_spark(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, seed: int, reader: str
) -> None:
    if reader == "tasks":
        monkeypatch.setattr(driver_reads, "MOST_TESTED_BYTES", -1)
    dice = random.Random(seed)
    keys = dice.sample(KEYS, dice.randrange(1, 4))
    order = [
        f"{key} {dice.choice(['', 'ASC', 'DESC'])} {dice.choice(['', 'NULLS FIRST', 'NULLS LAST'])}"
        for key in keys
    ]
    where = dice.choice(["", "WHERE n < 5", "WHERE id < 3"])
    limit = f"LIMIT {dice.choice([1, 10, 300, 2000])} OFFSET {dice.choice([0, 4])}"
    text = (
        f"SELECT id, part.x, {keys[0]} FROM {{t}} {where} ORDER BY {', '.join(order)}, id {limit}"
    )
    assert "; first " in scan_of(spark, text)
    found, wanted = ask(spark, text)
    assert found == wanted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT id FROM {t} ORDER BY n DESC, id LIMIT 2", "first 2 by n DESC, id"),
        ("SELECT * FROM {t} AS u ORDER BY U.id LIMIT 1 OFFSET 2", "first 3 by id"),
        ("SELECT id AS n FROM {t} ORDER BY n LIMIT 2", "first 2 by id"),
        ("SELECT id + 1 AS m, n FROM {t} ORDER BY n NULLS LAST, id LIMIT 2", "first 2 by n NULLS LAST, id"),
        ("SELECT max(id) FROM (SELECT id FROM {t} ORDER BY id LIMIT 5)", "first 5 by id"),
        ("SELECT part.x AS n, id FROM {t} ORDER BY n, id LIMIT 3", None),
        ("SELECT part.id FROM {t} ORDER BY id LIMIT 3", None),
        ("SELECT id + 1 AS id FROM {t} ORDER BY id LIMIT 3", None),
        ("SELECT id FROM {t} ORDER BY id % 7, id LIMIT 3", None),
        ("SELECT id FROM {t} ORDER BY 1 LIMIT 3", None),
        ("SELECT id FROM {t} ORDER BY part, id LIMIT 3", None),
        ("SELECT DISTINCT n FROM {t} ORDER BY n LIMIT 3", None),
        ("SELECT id, row_number() OVER (ORDER BY id) AS r FROM {t} ORDER BY id LIMIT 3", None),
        ("SELECT id FROM {t} WHERE round(x) = 2 ORDER BY id LIMIT 3", None),
        ("SELECT a.id FROM {t} a JOIN {t} b ON a.id = b.id ORDER BY a.id LIMIT 3", None),
        ("SELECT id FROM {t} ORDER BY id LIMIT 0", None),
        ("SELECT id FROM {t} ORDER BY id LIMIT 20000", None),
    ],
)  # fmt: skip
def test_orders_that_are_certain_go_to_the_scan_and_others_stay_in_spark(
    spark: SparkSession, text: str, said: str | None
) -> None:
    shown = scan_of(spark, text)
    assert shown.endswith(f"; {said}") if said is not None else "first" not in shown
    found, wanted = ask(spark, text)
    assert found == wanted


def test_name_that_two_columns_have_in_other_cases_is_left_to_spark(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.caseSensitive")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        text = "SELECT n AS ID, id AS n FROM {t} ORDER BY id, ID LIMIT 3"
        assert "first" not in scan_of(spark, text)
        found, wanted = ask(spark, text)
        assert found == wanted
    finally:
        spark.conf.set("spark.sql.caseSensitive", str(before))


def test_tasks_that_find_first_rows_hold_pieces_of_their_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sort, "ROWS_HELD", 64)
    table = rows_of(5)
    keys = (ColumnOrdering("x", ascending=False), ColumnOrdering("id", nulls_first=True))
    batches = table.to_batches(max_chunksize=10)
    found = pa.Table.from_batches(TopRows(keys, 7).of(batches), table.schema)
    assert found.num_rows == 7

    def place(number: int) -> tuple[bool, bool, float, int]:
        value = table["x"][number].as_py()
        if value is None or isnan(value):
            return value is None, value is None, 0, ids[number]
        return False, True, -value, ids[number]

    ids = table["id"].to_pylist()
    first = sorted(range(ROWS), key=place)[:7]
    assert sorted(found["id"].to_pylist()) == sorted(table["id"].take(first).to_pylist())


def test_rows_with_long_texts_are_ordered_by_tasks(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver gives up when values turn out to be more bytes than a file tells."""
    monkeypatch.setattr(driver_reads, "MOST_TESTED_BYTES", 4 * OPEN_BYTES + 12_000)
    text = "SELECT name, raw, id FROM {t} ORDER BY name DESC, id LIMIT 3"
    found, wanted = ask(spark, text)
    assert found == wanted
