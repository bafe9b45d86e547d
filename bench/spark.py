"""Spark over Lance beside Spark over its own Parquet: write and scan, in one run.

``python bench/spark.py [--quick]`` prints seconds and ratios (above 1: ours is quicker).  The better
of three turns counts, taken in turns, so that a busy machine is busy for both.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

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


@dataclass(frozen=True, slots=True)
class Measure:
    """One thing done both ways, in seconds."""

    what: str
    ours: float
    parquet: float

    @property
    def ratio(self) -> float:
        """Return how many times quicker ours is."""
        return self.parquet / self.ours


def best_of_turns(ours: Callable[[], object], parquet: Callable[[], object]) -> tuple[float, float]:
    """Return the least seconds of each, measured alternately after one turn to warm up."""
    least = [float("inf"), float("inf")]
    for turn in range(TURNS + 1):
        for side, action in enumerate((ours, parquet)):
            started = time.perf_counter()
            action()
            if turn:
                least[side] = min(least[side], time.perf_counter() - started)
    return least[0], least[1]


def measure(spark: SparkSession, folder: Path, rows: int) -> list[Measure]:
    """Write a table of ``rows`` rows and scan it, whole and one column."""
    data = spark.range(0, rows, 1, 4).selectExpr(*COLUMNS).cache()
    data.count()
    lance, parquet = str(folder / "t.lance"), str(folder / "t.parquet")

    def overwrite(kind: str, path: str) -> Callable[[], object]:
        return lambda: data.write.format(kind).mode("overwrite").save(path)

    def total(frame: Callable[[], DataFrame], *sums: str) -> Callable[[], object]:
        return lambda: frame().selectExpr(*sums).collect()

    def load() -> DataFrame:
        return spark.read.format("lance").load(lance)

    def load_parquet() -> DataFrame:
        return spark.read.parquet(parquet)

    results = [Measure("write", *best_of_turns(overwrite("lance", lance),
                                               overwrite("parquet", parquet)))]  # fmt: skip
    keep_newest(data, lance)
    pairs = {
        "scan, format('lance')": (total(load, *TOTAL), total(load_parquet, *TOTAL)),
        "scan, pennon.spark.read": (
            total(lambda: pennon.spark.read(spark, lance), *TOTAL),
            total(load_parquet, *TOTAL),
        ),
        "one column, .schema(...)": (
            total(lambda: spark.read.format("lance").schema("i64 long").load(lance), "sum(i64)"),
            total(load_parquet, "sum(i64)"),
        ),
        "one column, pennon.spark.read": (
            total(lambda: pennon.spark.read(spark, lance, ["i64"]), "sum(i64)"),
            total(load_parquet, "sum(i64)"),
        ),
        # Each early stop ends Spark's Python worker, so the next query waits for a new one.
        "limit(1)": (lambda: load().limit(1).collect(), lambda: load_parquet().limit(1).collect()),
    }
    return results + [Measure(what, *best_of_turns(*pair)) for what, pair in pairs.items()]


def keep_newest(data: DataFrame, uri: str) -> None:
    """Leave one version on disk, as Parquet has one."""
    shutil.rmtree(uri)
    pennon.spark.write(data, uri)


def show(results: list[Measure], rows: int) -> None:
    """Print the table of ratios."""
    table = Table("", "Lance s", "Parquet s", "ratio", title=f"Spark, {rows:,} rows")
    for result in results:
        figures = (f"{result.ours:.2f}", f"{result.parquet:.2f}", f"{result.ratio:.2f}")
        table.add_row(result.what, *figures)
    Console().print(table)


def run(rows: int = 2_000_000) -> list[Measure]:
    """Measure in a session and a folder of its own."""
    conf = {"spark.sql.shuffle.partitions": "2", "spark.log.level": "ERROR"}
    spark = pennon.spark.local_session("local[2]", conf=conf)
    with tempfile.TemporaryDirectory(prefix="pennon-bench-") as folder:
        results = measure(spark, Path(folder), rows)
    spark.stop()
    show(results, rows)
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    run(200_000 if parser.parse_args().quick else 2_000_000)
