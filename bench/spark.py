"""Spark over Lance beside Spark over its own Parquet: write and scan, in one run.

``python bench/spark.py [ROWS]`` prints seconds and ratios (above 1: ours is quicker).  The best of
three turns counts, taken in turns, so that a busy machine is busy for all.

The column *floor* is a Python source that does nothing (`spark_floor.py`): what lies between it and
Parquet is Spark's price for a source in Python, what lies between it and Lance is ours.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from rich.console import Console
from rich.table import Table
from spark_floor import Floor, ReadFiles, write_floor

import pennon
import pennon.spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TURNS = 3
COLUMNS = (
    "id AS i64",
    "CAST(id % 1000 AS INT) AS i32",
    "id * 0.5D AS f64",
    "concat('name ', id % 5000) AS text",
    "IF(id % 3 = 0, NULL, id * 7) AS nulls",
)
TOTAL = ("sum(i64)", "sum(i32)", "sum(f64)", "count(text)", "max(text)", "count(nulls)")


DDL = "i64 long, i32 int, f64 double, text string, nulls long"
FILES = 4


@dataclass(frozen=True, slots=True)
class Measure:
    """One thing done three ways, in seconds."""

    what: str
    ours: float
    parquet: float
    floor: float

    @property
    def ratio(self) -> float:
        """Return how many times quicker ours is than Parquet."""
        return self.parquet / self.ours

    @property
    def bound(self) -> float:
        """Return how many times quicker than Parquet a source in Python could be."""
        return self.parquet / self.floor


Action: TypeAlias = Callable[[], object]


def best_of_turns(actions: Sequence[Action]) -> list[float]:
    """Return the least seconds of each, measured alternately after one turn to warm up."""
    least = [float("inf")] * len(actions)
    for turn in range(TURNS + 1):
        for side, action in enumerate(actions):
            started = time.perf_counter()
            action()
            if turn:
                least[side] = min(least[side], time.perf_counter() - started)
    return least


def measure(spark: SparkSession, folder: Path, rows: int) -> list[Measure]:
    """Write a table of ``rows`` rows and scan it, whole and one column."""
    data = spark.range(0, rows, 1, FILES).selectExpr(*COLUMNS).cache()
    data.count()
    lance, parquet, floor = (str(folder / name) for name in ("t.lance", "t.parquet", "t.floor"))

    def overwrite(kind: str, path: str) -> Action:
        return lambda: data.write.format(kind).mode("overwrite").save(path)

    writes = (overwrite("lance", lance), overwrite("parquet", parquet), overwrite("floor", floor))
    results = [Measure("write", *best_of_turns(writes))]
    keep_newest(data, lance)
    write_floor(pennon.dataset(lance).to_table(), Path(floor), FILES)
    data.unpersist()
    scans = scans_of(spark, lance, parquet, floor)
    return results + [Measure(what, *best_of_turns(ways)) for what, ways in scans.items()]


def scans_of(
    spark: SparkSession, lance: str, parquet: str, floor: str
) -> dict[str, tuple[Action, Action, Action]]:
    """Return what is scanned, in the three ways."""

    def total(frame: Callable[[], DataFrame], *sums: str) -> Action:
        return lambda: frame().selectExpr(*sums).collect()

    def first(frame: Callable[[], DataFrame]) -> Action:
        return lambda: frame().limit(1).collect()

    def load() -> DataFrame:
        return spark.read.format("lance").load(lance)

    def load_parquet() -> DataFrame:
        return spark.read.parquet(parquet)

    def load_floor() -> DataFrame:
        return spark.read.format("floor").option("ddl", DDL).load(floor)

    def map_floor(ddl: str) -> DataFrame:
        names = tuple(part.split()[0] for part in ddl.split(", "))
        return spark.range(0, FILES, 1, FILES).mapInArrow(ReadFiles(floor, names), ddl)

    one = "i64 long"
    return {
        "scan, format('lance')": (
            total(load, *TOTAL),
            total(load_parquet, *TOTAL),
            total(load_floor, *TOTAL),
        ),
        "scan, pennon.spark.read": (
            total(lambda: pennon.spark.read(spark, lance), *TOTAL),
            total(load_parquet, *TOTAL),
            total(lambda: map_floor(DDL), *TOTAL),
        ),
        "one column, .schema(...)": (
            total(lambda: spark.read.format("lance").schema(one).load(lance), "sum(i64)"),
            total(load_parquet, "sum(i64)"),
            total(lambda: spark.read.format("floor").schema(one).load(floor), "sum(i64)"),
        ),
        "one column, pennon.spark.read": (
            total(lambda: pennon.spark.read(spark, lance, ["i64"]), "sum(i64)"),
            total(load_parquet, "sum(i64)"),
            total(lambda: map_floor(one), "sum(i64)"),
        ),
        **aggregates_of(spark, lance, load_parquet, map_floor),
        # Each early stop ends Spark's Python worker, so the next query waits for a new one.
        "limit(1)": (first(load), first(load_parquet), first(load_floor)),
    }


def aggregates_of(
    spark: SparkSession,
    lance: str,
    load_parquet: Callable[[], DataFrame],
    map_floor: Callable[[str], DataFrame],
) -> dict[str, tuple[Action, Action, Action]]:
    """Return what needs not send rows to Spark; the floor sends them."""

    def read(**options: Any) -> Action:
        return lambda: pennon.spark.read(spark, lance, **options).collect()

    def grouped(frame: Callable[[], DataFrame], key: str) -> Action:
        return lambda: frame().groupBy(key).agg({"f64": "sum", "*": "count"}).collect()

    def group_by(key: str) -> tuple[Action, Action, Action]:
        ours = read(aggregate={"f64": "sum", "*": "count"}, group_by=[key])
        kind = "i32 int" if key == "i32" else "text string"
        return (
            ours,
            grouped(load_parquet, key),
            grouped(lambda: map_floor(f"{kind}, f64 double"), key),
        )

    few = "i32 = 7"
    totals = {"i64": "sum", "i32": "sum", "f64": "sum", "text": ["count", "max"], "nulls": "count"}
    one = {"i64": "sum"}
    return {
        "count, LanceTable.count": (
            lambda: pennon.spark.LanceTable.forPath(spark, lance).count(),
            lambda: load_parquet().count(),
            lambda: map_floor("i64 long").count(),
        ),
        "count of some rows, .count(...)": (
            lambda: pennon.spark.LanceTable.forPath(spark, lance).count(few),
            lambda: load_parquet().where(few).count(),
            lambda: map_floor("i32 int").where(few).count(),
        ),
        "0.1 % of rows, filter=": (
            read(filter=few),
            lambda: load_parquet().where(few).collect(),
            lambda: map_floor(DDL).where(few).collect(),
        ),
        "one column, aggregate=": (
            read(aggregate=one),
            lambda: load_parquet().agg(one).collect(),
            lambda: map_floor("i64 long").agg(one).collect(),
        ),
        "all columns, aggregate=": (
            read(aggregate=totals),
            lambda: load_parquet().selectExpr(*TOTAL).collect(),
            lambda: map_floor(DDL).selectExpr(*TOTAL).collect(),
        ),
        "1,000 groups, aggregate=": group_by("i32"),
        "5,000 groups of text, aggregate=": group_by("text"),
        "limit=10": (
            read(limit=10),
            lambda: load_parquet().limit(10).collect(),
            lambda: map_floor(DDL).limit(10).collect(),
        ),
    }


def keep_newest(data: DataFrame, uri: str) -> None:
    """Leave one version on disk, as Parquet has one."""
    shutil.rmtree(uri)
    pennon.spark.write(data, uri)


def show(results: list[Measure], rows: int) -> None:
    """Print the table of ratios."""
    heads = ("", "Lance s", "Parquet s", "floor s", "ratio", "ratio of the floor")
    table = Table(*heads, title=f"Spark, {rows:,} rows")
    for result in results:
        figures = (result.ours, result.parquet, result.floor, result.ratio, result.bound)
        table.add_row(result.what, *(f"{figure:.2f}" for figure in figures))
    Console().print(table)


def run(rows: int = 2_000_000) -> list[Measure]:
    """Measure in a session and a folder of its own."""
    conf = {"spark.sql.shuffle.partitions": "2", "spark.log.level": "ERROR"}
    spark = pennon.spark.local_session("local[2]", conf=conf)
    spark.dataSource.register(Floor)
    with tempfile.TemporaryDirectory(prefix="pennon-bench-") as folder:
        results = measure(spark, Path(folder), rows)
    spark.stop()
    show(results, rows)
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    run(200_000 if parser.parse_args().quick else 2_000_000)
