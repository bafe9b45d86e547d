"""``make bench-sql``: queries by `pennon.spark.sql` over Lance beside those of ``spark.sql`` over Parquet.

With ``--lance-spark`` the same queries also run in a session of lance-spark, over its catalog of the same tables.
The 22 queries of TPC-H (`tpch_tables.py`, ``tpch/``) and 43 over one wide table (`hits.py`, ``hits.sql``) run in one session,
each over Parquet and over Lance in turns, and must find the same rows.  A ratio is Parquet's median over
ours: above 1 we are quicker.  Last, queries of one column run beside `pennon.spark.read` of that column, over that table and
over one of more rows: what a query costs before its first row is the same for both, and counts less in the longer one.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

from hits import columns
from machine import describe_machine
from measure import save_results
from page import heads, row
from peers import Home, Missing, prepare
from pyspark.sql import DataFrame, SparkSession
from report import mean
from rich.console import Console
from spark_peers import PEERS
from spark_side import CONF, QUICK_SOCKETS
from spark_turns import SparkWorker
from sql_rows import Answer, difference, is_ordered
from sql_tables import HITS, LONG_HITS, Folder, Query, hits_queries, tpch_queries

import pennon.spark

HERE: Final = Path(__file__).parent
RESULTS: Final = HERE / "results" / "sql.json"
OURS, PARQUET, READ, LANCE_SPARK = "pennon", "parquet", "read", "lance-spark"
Work: TypeAlias = Callable[[], Any]
COLUMNS: Final = ("width", "user_id", "url")
"""The columns of the wide table that are read alone."""
DATABASE_OF: Final = {"column": HITS, "long": LONG_HITS}
"""The database that each group of queries of one column reads."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How large the tables are, and how many turns each query has, after some that are not counted."""

    scale: float
    rows: int
    turns: int
    uncounted: int
    column_turns: int
    long_rows: int


LIMIT_SECONDS: Final = 120
"""How long another process may take for a query."""
QUICK, FULL = Effort(0.1, 100_000, 3, 1, 7, 300_000), Effort(1, 1_000_000, 5, 2, 81, 3_000_000)


@dataclass(frozen=True, slots=True)
class Measure:
    """One query: its rows, and the seconds of each turn of each side."""

    what: str
    rows: int
    seconds: Mapping[str, Sequence[float]]

    def median(self, side: str) -> float:
        """Return the middle value of a side."""
        return statistics.median(self.seconds[side])

    @property
    def others(self) -> list[str]:
        """Return beside whom we were measured."""
        return [side for side, seconds in self.seconds.items() if side != OURS and seconds]

    @property
    def group(self) -> str:
        """Return the first word of its name."""
        return self.what.partition(" ")[0]

    def ratio(self, side: str) -> float:
        """Return how many times another's median is ours."""
        return self.median(side) / self.median(OURS)


@dataclass(frozen=True, slots=True)
class Results:
    """All that a run found; ``sizes``: the megabytes of each database in each format."""

    machine: str
    scale: float
    rows: int
    turns: int
    column_turns: int
    sizes: Mapping[str, float]
    measures: Sequence[Measure]
    differences: Mapping[str, str]
    """Return the differences of queries that gave other rows over Lance than over Parquet."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Why lance-spark did not answer a query."""

    @classmethod
    def load(cls) -> Self:
        """Read what `save_results` wrote."""
        saved = json.loads(RESULTS.read_text())
        saved["measures"] = [Measure(**each) for each in saved["measures"]]
        return cls(**saved)


@contextmanager
def session(folder: Path) -> Iterator[SparkSession]:
    """Give a session of two cores."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("bench-sql")
    conf = {**CONF, **QUICK_SOCKETS, "spark.sql.warehouse.dir": str(folder / "warehouse")}
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


@dataclass(frozen=True, slots=True)
class PeerAnswer:
    """The answer of another process to a query: its seconds and rows, or the reason why there are none."""

    seconds: float = 0
    rows: int = 0
    cannot: str = ""


class LanceSpark(SparkWorker):
    """A session of lance-spark, over the folder of the Lance tables (`sql_side.py`)."""

    def __init__(self, home: Home, folder: Path, tables: Path) -> None:
        self.tables = tables
        super().__init__(LANCE_SPARK, home, folder)

    def command(self) -> list[str]:
        """Return the program that it runs, and its arguments."""
        return [str(HERE / "sql_side.py"), str(self.tables), self.home.class_path]

    def ask(self, query: Query) -> PeerAnswer:
        """Run a query there."""
        task = {"text": query.text, "parameters": dict(query.parameters), "limit": LIMIT_SECONDS}
        answer, _ = self.run(task)
        if "hung" in answer:
            return PeerAnswer(cannot=f"no answer within {LIMIT_SECONDS} s, or its JVM died")
        return PeerAnswer(**answer)


def works_of(spark: SparkSession, query: Query, peer: LanceSpark | None) -> dict[str, Work]:
    """Return how each side runs a query, to its last row."""
    given = dict(query.parameters)
    works: dict[str, Work] = {
        OURS: lambda: pennon.spark.sql(spark, query.text, given or None).toArrow(),
        PARQUET: lambda: spark.sql(query.text, given or None).toArrow(),
    }
    if peer is not None:
        works[LANCE_SPARK] = lambda: peer.ask(query)
    return works


def works_of_column(
    spark: SparkSession, folder: Folder, database: str, column: str
) -> dict[str, Work]:
    """Return how one column is read to its end by a query, and by `pennon.spark.read`."""
    path = str(folder.lance(database, "hits"))

    def finish(rows: DataFrame) -> None:
        rows.write.format("noop").mode("overwrite").save()

    text = f"SELECT {column} FROM {database}.hits"
    return {
        OURS: lambda: finish(pennon.spark.sql(spark, text)),
        READ: lambda: finish(pennon.spark.read(spark, path, [column])),
    }


def take_turns(
    spark: SparkSession, works: Mapping[str, Work], turns: int, uncounted: int
) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """Run each work so many times; return the seconds of each turn that counts, and the last results.

    Who begins changes with every turn.  A side that did not answer gets no more turns.
    """
    sides = list(works)
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    found: dict[str, Any] = {}
    for number in range(uncounted + turns):
        for side in list(sides) if number % 2 else sides[::-1]:
            spark._jvm.java.lang.System.gc()  # type: ignore[union-attr]  # noqa: SLF001 - no other way to ask the JVM
            began = time.perf_counter()
            found[side] = answer = works[side]()
            taken = time.perf_counter() - began
            if isinstance(answer, PeerAnswer):
                taken = answer.seconds
                if answer.cannot:
                    sides.remove(side)
                    seconds[side].clear()
                    continue
            if number >= uncounted:
                seconds[side].append(taken)
    return seconds, found


def measure_all(options: argparse.Namespace, console: Console) -> Results:
    """Measure what was chosen, and print each query when it is done."""
    effort = QUICK if options.quick else FULL
    scale, rows = options.scale or effort.scale, options.rows or effort.rows
    turns = options.turns or effort.turns
    tpch, hits = chosen(tpch_queries(scale), options.query), chosen(hits_queries(), options.query)
    pairs = product(DATABASE_OF, COLUMNS)
    alone = [(group, name) for group, name in pairs if is_chosen(f"{group} {name}", options.query)]
    groups = {group for group, _ in alone}
    measures: list[Measure] = []
    differences: dict[str, str] = {}
    failed: dict[str, str] = {}
    with a_folder(options.folder) as root, session(root) as spark, ExitStack() as stack:
        folder = Folder(root)
        if tpch:
            folder.make_tpch(spark, scale)
        if hits or "column" in groups:
            folder.make_hits(spark, rows)
        peer = start_peer(folder, stack, console) if options.lance_spark else None
        sizes = {f"{database}, {form}": size / 1e6 for form, database, size in folder.sizes()}
        for query in (*tpch, *hits):
            seconds, found = take_turns(
                spark, works_of(spark, query, peer), turns, effort.uncounted
            )
            ours, theirs = (Answer.of_table(found[side]) for side in (OURS, PARQUET))
            measures.append(Measure(query.name, len(ours.rows), seconds))
            differs = difference(ours, theirs, ordered=is_ordered(query.text))
            peer_answer = found.get(LANCE_SPARK, PeerAnswer(rows=len(ours.rows)))
            if peer_answer.cannot:
                failed[query.name] = peer_answer.cannot
            elif peer_answer.rows != len(ours.rows):
                differs += f" {peer_answer.rows} rows of lance-spark"
            if differs:
                differences[query.name] = differs
            console.print(line_of(measures[-1]), differs, peer_answer.cannot, markup=False)
        if "long" in groups:
            folder.make_hits(spark, effort.long_rows, LONG_HITS)
        for group, column in alone:
            works = works_of_column(spark, folder, DATABASE_OF[group], column)
            seconds, _ = take_turns(spark, works, effort.column_turns, effort.uncounted)
            count = effort.long_rows if group == "long" else rows
            measures.append(Measure(f"{group} {column}", count, seconds))
            console.print(line_of(measures[-1]))
    machine = f"{describe_machine('pyspark', 'pyarrow')} Load average {os.getloadavg()[2]:.1f}."
    answers = (measures, differences, failed)
    results = Results(machine, scale, rows, turns, effort.column_turns, sizes, *answers)
    save_results(results, RESULTS)
    return results


def start_peer(folder: Folder, stack: ExitStack, console: Console) -> LanceSpark | None:
    """Start lance-spark, which is ended with the stack; None if it cannot be had."""
    home = prepare(PEERS[LANCE_SPARK])
    if isinstance(home, Missing):
        console.print(f"{LANCE_SPARK} is not measured: {home.reason}")
        return None
    worker = LanceSpark(home, folder.root / "lance-spark-session", folder.root / "lance")
    stack.callback(shutil.rmtree, worker.folder, ignore_errors=True)
    return stack.enter_context(worker)


def line_of(each: Measure) -> str:
    """Return a measure in a line."""
    others = (f"{side} {each.median(side):.3f} s: {each.ratio(side):.2f}" for side in each.others)
    return f"{each.what:10} {each.rows:8} rows, {each.median(OURS):.3f} s, {', '.join(others)}"


@contextmanager
def a_folder(path: Path | None) -> Iterator[Path]:
    """Give the folder that was named, whose tables stay, or one that is gone afterwards."""
    if path is not None:
        path.mkdir(parents=True, exist_ok=True)
        yield path.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="pennon-bench-sql-") as made:
        yield Path(made)


def is_chosen(name: str, words: Sequence[str] | None) -> bool:
    """Return whether a query was named, by its group or in full, or none was."""
    return not words or any(name in (word, f"{word} {name.split()[1]}") for word in words)


def chosen(queries: Sequence[Query], words: Sequence[str] | None) -> list[Query]:
    """Return the queries that were named."""
    return [each for each in queries if is_chosen(each.name, words)]


# --- what was found ---------------------------------------------------------------------------------


def groups_of(results: Results) -> Iterator[tuple[str, str, list[Measure]]]:
    """Yield each group of queries, each side that it was measured beside, and the measures of these."""
    for group in dict.fromkeys(each.group for each in results.measures):
        mine = [each for each in results.measures if each.group == group]
        for side in (PARQUET, READ, LANCE_SPARK):
            measured = [each for each in mine if side in each.others]
            if measured:
                yield group, side, measured


def summary(results: Results) -> Iterator[str]:
    """Yield the geometric mean of each group, the least ratio, and the queries whose ratio is below 1."""
    yield from heads("queries", "beside", "geometric mean", "least", "below 1")
    for group, side, measures in groups_of(results):
        ratios = [each.ratio(side) for each in measures]
        slower = [each.what.partition(" ")[2] for each in measures if each.ratio(side) < 1]
        names = f"{len(slower)}: {', '.join(slower)}" if slower else "none"
        cells = (f"**{mean(ratios):.2f}**", f"{min(ratios):.2f}", names)
        yield row(f"{group}, {len(measures)}", side, *cells)


def details(results: Results) -> Iterator[str]:
    """Yield the times and the ratios of each query."""
    sides = [each for each in (PARQUET, READ, LANCE_SPARK) if sides_have(results, each)]
    yield from heads(
        "query", "rows", "pennon, s", *(text for side in sides for text in (f"{side}, s", "ratio"))
    )
    for each in results.measures:
        cells = [f"{each.rows:,}", f"{each.median(OURS):.3f}"]
        for side in sides:
            has = side in each.others
            cells += [f"{each.median(side):.3f}", f"{each.ratio(side):.2f}"] if has else ["", ""]
        yield row(each.what, *cells)


_EXCEPTION: Final = re.compile(r"[\w.]*(?:Exception|Error): ")


def failures(failed: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the queries without an answer by their cause: the last exception, up to its details."""
    found: dict[str, list[str]] = {}
    for name, text in failed.items():
        cause = _EXCEPTION.split(text)[-1].partition(" (")[0].strip()
        found.setdefault(cause, []).append(name)
    return found


def sides_have(results: Results, side: str) -> bool:
    """Return whether a side was measured at all."""
    return any(side in each.others for each in results.measures)


PAGE = """\
# SQL on Spark

Written by `make bench-sql ARGS="{arguments}--markdown …"`, all of it from one run. {machine}
"""
QUERIES = """
*tpch* are the 22 queries of TPC-H at scale {scale:g}, over tables of the specification's shapes that `bench/tpch_tables.py` makes;
*hits* are 43 queries of ClickBench's kinds over one table of {rows:,} rows and {columns} columns (`bench/hits.py`). Each query runs by
`spark.sql` over Parquet (snappy) and by `pennon.spark.sql` over Lance (version 2.1), in one session of two cores, in turns, until its
last row is an Arrow table here; both find the same rows. Times are medians of {turns} turns. A ratio is the other's time over that
of `pennon.spark.sql`: **above 1 Pennon is quicker.** lance-spark runs in a process and a Spark of its own, over the same tables,
and hands over its rows one by one (`collect`).
"""
ONE_COLUMN = """
*column* reads one column of a wide table of {rows:,} rows and {columns} columns to its end, by `pennon.spark.sql` and by
`pennon.spark.read`; *long* does the same over a table of more rows, made the same way. Spark's plan is the same for both. Times are
medians of {column_turns} turns. A ratio is the time of `pennon.spark.read` over that of `pennon.spark.sql`.
"""


def page_of(results: Results) -> str:
    """Return the page."""
    names = ("machine", "scale", "rows", "turns", "column_turns")
    facts = {key: getattr(results, key) for key in names} | {"columns": len(columns())}
    groups = dict.fromkeys(each.group for each in results.measures)
    has_queries, has_columns = bool(groups.keys() - DATABASE_OF), bool(groups.keys() & DATABASE_OF)
    arguments = "" if has_queries else "".join(f"--query {group} " for group in groups)
    text = PAGE + QUERIES * has_queries + ONE_COLUMN * has_columns
    lines = [text.format(**facts, arguments=arguments)]
    lines += [*summary(results), ""]
    lines += [
        f"- No answer of {LANCE_SPARK} ({cause}): {', '.join(names)}."
        for cause, names in failures(results.failed).items()
    ]
    lines += [f"- {name}: the rows differ: {text}" for name, text in results.differences.items()]
    sizes = ", ".join(f"{name}: {size:,.0f} MB" for name, size in results.sizes.items())
    lines += [f"Files: {sizes}.\n", "## Each query\n", *details(results)]
    return "\n".join(lines) + "\n"


def choices() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="scale 0.1, 100,000 and 300,000 rows, few turns"
    )
    parser.add_argument("--scale", type=float, help="the scale factor of TPC-H")
    parser.add_argument("--rows", type=int, help="rows of the wide table")
    parser.add_argument("--turns", type=int, help="so many turns of each query")
    text = "only these: tpch, hits, column, long, 'tpch 9', 'hits 21', 'column url'"
    parser.add_argument("--query", action="append", help=text)
    text = "where tables are made and stay, for further runs of the same sizes"
    parser.add_argument("--folder", type=Path, help=text)
    text = "also beside lance-spark, in its own Spark"
    parser.add_argument("--lance-spark", action="store_true", help=text)
    parser.add_argument("--markdown", type=Path, help="write what was found as a page")
    parser.add_argument("--last", action="store_true", help="of the last run; measure nothing")
    return parser.parse_args()


def main() -> int:
    """Measure, print, and leave the numbers in ``bench/results/sql.json``; 1 if rows differ."""
    options = choices()
    console = Console(highlight=False, width=160)
    results = Results.load() if options.last else measure_all(options, console)
    console.print("\n".join(summary(results)), markup=False)
    if options.markdown:
        options.markdown.write_text(page_of(results))
    for name, text in results.differences.items():
        console.print(f"{name}: the rows differ: {text}", markup=False)
    return 1 if results.differences else 0


if __name__ == "__main__":
    sys.exit(main())
