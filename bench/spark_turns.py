"""``make bench-spark``: Pennon on Spark beside Delta, lance-spark and Spark's Parquet, in one run.

Each side (`spark_side.py`) is a process of its own with a session of two cores, in the Spark that it
supports (`spark_peers.py`).  They take turns at every operation, so that a busy moment of the
machine hits all, and must find the same rows.  A ratio is the other's median over ours: above 1 we
are quicker.  Memory is that of the driver, its JVM and the workers together, at its highest.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

import psutil
from machine import describe_machine
from measure import save_results
from page import heads, row
from peers import Home, Missing, prepare
from process_memory import Peak
from rich.console import Console
from rich.table import Table
from spark_peers import PEERS

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "spark.json"
OURS, FORMAT, PARQUET = "pennon", "format", "parquet"
SIDES = (OURS, FORMAT, PARQUET, *PEERS)
Task: TypeAlias = dict[str, Any]
LIMIT_SECONDS = 30
"""A side that has not answered by then has hung, unless the task has a limit of its own; it is started anew, and asked
again in the next round."""

OPERATIONS: Mapping[str, Task] = {
    "write": {"do": "write"},
    "read, all columns": {"do": "scan"},
    "read, sums by `aggregate`": {"do": "scan", "is_pushed": True},
    "read, one column": {"do": "scan", "columns": ["i64"], "sums": ["sum(i64)"]},
    "filter, one row": {"do": "scan", "condition": "i64 = 54321"},
    "filter, 0.1 % of rows": {"do": "scan", "condition": "i32 = 7"},
    "delete 1 %, scattered": {"do": "delete", "condition": "i64 % 100 = 7"},
    "delete a range": {"do": "delete", "condition": "i64 < 10000"},
    "update 1 %, scattered": {"do": "update", "condition": "i64 % 100 = 7"},
    "merge 10 %": {"do": "merge"},
    "compaction": {"do": "compact"},
    "stream into a table": {"do": "stream_in", "limit": 120},
    "stream out of a table": {"do": "stream_out", "limit": 120},
    "change feed of 2 %": {"do": "feed"},
}


@dataclass(frozen=True, slots=True)
class Effort:
    """How many rows, and how many rounds are counted after the first ones."""

    rows: int
    rounds: int


QUICK, FULL = Effort(100_000, 3), Effort(1_000_000, 7)
UNCOUNTED = 2
"""So many rounds are not counted: until then a JVM compiles what it runs."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One operation: the seconds of each side, and the most memory it took, in MB.

    ``failed`` says why a side did not end it, "" where it has no such operation.
    """

    what: str
    seconds: Mapping[str, Sequence[float]]
    peaks: Mapping[str, float]
    failed: Mapping[str, str]

    def median(self, side: str) -> float | None:
        """Return the middle value of a side, None where it does not do this."""
        values = self.seconds.get(side)
        return statistics.median(values) if values else None

    def ratio(self, side: str) -> float | None:
        """Return how many times a side's median is ours."""
        ours, theirs = self.median(OURS), self.median(side)
        return theirs / ours if ours and theirs else None


@dataclass(frozen=True, slots=True)
class Results:
    """All that a run found; ``missing`` are peers that could not be had, and why."""

    machine: str
    rows: int
    missing: Mapping[str, str]
    measures: Sequence[Measure]

    def save(self) -> None:
        """Write it as JSON."""
        save_results(self, RESULTS)

    @classmethod
    def load(cls) -> Self:
        """Read what `save` wrote."""
        saved = json.loads(RESULTS.read_text())
        measures = in_order(Measure(**each) for each in saved["measures"])
        return cls(saved["machine"], saved["rows"], saved["missing"], measures)


def in_order(measures: Iterable[Measure]) -> list[Measure]:
    """Return measures in the order of `OPERATIONS`."""
    return sorted(measures, key=lambda each: list(OPERATIONS).index(each.what))


class SparkWorker:
    """A side that is running."""

    def __init__(self, name: str, home: Home, folder: Path) -> None:
        self.name, self.home, self.folder = name, home, folder
        self.is_ready = False
        self.process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        self.folder.mkdir()
        foreign = ("PYTHONPATH", "SPARK_HOME", "PYSPARK_SUBMIT_ARGS", "PYSPARK_DRIVER_PYTHON")
        env = {k: v for k, v in os.environ.items() if self.name not in PEERS or k not in foreign}
        env |= {"PYSPARK_PYTHON": self.home.python, "PYTHONWARNINGS": "ignore"}
        return subprocess.Popen(
            [self.home.python, *self.command()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=env,
        )

    def command(self) -> list[str]:
        """Return the program that the side runs, and its arguments."""
        return [str(HERE / "spark_side.py"), self.name, str(self.folder), self.home.class_path]

    def run(self, task: Task) -> tuple[dict[str, Any], float]:
        """Run one task there; return its answer, and the most memory that was seen, in MB.

        Before its first task a side says that its session is there, however long that takes.  One that does not answer in time is ended and started anew.
        """
        if self.process.stdin is None or self.process.stdout is None:
            raise RuntimeError
        if not self.is_ready:
            self.is_ready = self.process.stdout.readline() == "ready\n"
        with suppress(BrokenPipeError):  # it has ended, so it gives no answer
            self.process.stdin.write(json.dumps(task) + "\n")
            self.process.stdin.flush()
        with Peak(self.process.pid) as peak:
            ready, _, _ = select.select(
                [self.process.stdout], [], [], task.get("limit", LIMIT_SECONDS)
            )
            line = self.process.stdout.readline() if ready else ""
        if not line:
            self.end()
            shutil.rmtree(self.folder)
            self.is_ready = False
            self.process = self._start()
            return {"hung": True}, 0
        answer: dict[str, Any] = json.loads(line)
        return answer, peak.bytes / 1e6

    def end(self) -> None:
        """End the process and all that it started."""
        for each in psutil.Process(self.process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                each.kill()
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process."""
        self.end()


def find_homes(sides: Sequence[str]) -> dict[str, Home | Missing]:
    """Return where each side runs."""
    here = Home(sys.executable, "")
    return {side: prepare(PEERS[side]) if side in PEERS else here for side in sides}


def measure(workers: Mapping[str, SparkWorker], what: str, effort: Effort, rounds: int) -> Measure:
    """Run one operation on all sides in turn; who begins changes.  The first ones are not counted."""
    task = {**OPERATIONS[what], "rows": effort.rows}
    seconds: dict[str, list[float]] = {side: [] for side in workers}
    peaks = dict.fromkeys(workers, 0.0)
    failed: dict[str, str] = {}
    hung: dict[str, int] = {}
    able = list(workers)
    for number in range(UNCOUNTED + rounds):
        found: dict[str, Any] = {}
        first = number % len(able)
        for side in (*able[first:], *able[:first]):
            answer, peak = workers[side].run(task)
            if "cannot" in answer:
                failed[side] = answer["cannot"]
                able.remove(side)
                continue
            if "hung" in answer:
                hung[side] = hung.get(side, 0) + 1
                workers[side].run(task)  # the first turn of a session is not counted
                continue
            found[side] = answer["found"]
            if number >= UNCOUNTED:
                seconds[side].append(answer["seconds"])
                peaks[side] = max(peaks[side], peak)
        if OURS not in found:
            raise RuntimeError(f"{what}: {failed.get(OURS, 'no answer in time')}")
        if any(each != found[OURS] for each in found.values()):
            raise RuntimeError(f"the sides disagree at {what}: {found}")
    for side, times in hung.items():
        failed[side] = (
            f"no answer within {task.get('limit', LIMIT_SECONDS)} s in {times} of {UNCOUNTED + rounds} turns"
        )
    able = [side for side in able if seconds[side]]
    return Measure(what, {s: seconds[s] for s in able}, {s: round(peaks[s]) for s in able}, failed)


def measure_all(options: argparse.Namespace, console: Console) -> Results:
    """Measure what was chosen, and print each operation when it is done."""
    effort = QUICK if options.quick else FULL
    effort = Effort(options.rows or effort.rows, options.rounds or effort.rounds)
    homes = find_homes(options.side or SIDES)
    missing = {side: home.reason for side, home in homes.items() if isinstance(home, Missing)}
    for side, reason in missing.items():
        console.print(f"{side} is not measured: {reason}")
    found: list[Measure] = []
    with tempfile.TemporaryDirectory(prefix="pennon-bench-") as folder, ExitStack() as stack:
        workers = {}
        for side, home in homes.items():
            if isinstance(home, Home):
                worker = SparkWorker(side, home, Path(folder, side))
                workers[side] = stack.enter_context(worker)
        for what in options.operation or OPERATIONS:
            found.append(measure(workers, what, effort, effort.rounds))
            console.print(what, *(f"{s} {found[-1].median(s):.2f} s" for s in found[-1].seconds))
            for side, reason in found[-1].failed.items():
                console.print(f"  {side}: {reason or 'has no such operation'}")
            results = Results(describe(), effort.rows, missing, in_order(found))
            results.save()
    return results


def describe() -> str:
    """Return what a reader needs to know of the machine, and how busy it was."""
    return f"{describe_machine('pyspark', 'pyarrow')} Load average {os.getloadavg()[2]:.1f}."


def text_of(value: float | None, form: str = ".2f") -> str:
    """Return a number as text, nothing where there is none."""
    return "" if value is None else format(value, form)


def show(console: Console, results: Results) -> None:
    """Print ratios, and seconds beside them."""
    sides = sides_of(results)
    table = Table("", "pennon s", *sides[1:], title=f"Spark, {results.rows:,} rows: ratios")
    for each in results.measures:
        ratios = (text_of(each.ratio(side)) for side in sides[1:])
        table.add_row(each.what, text_of(each.median(OURS)), *ratios)
    console.print(table)


def sides_of(results: Results) -> list[str]:
    """Return who was measured."""
    return [side for side in SIDES if any(side in each.seconds for each in results.measures)]


PAGE = """\
# Performance on Spark

Written by `make bench-spark ARGS="--markdown bench/tables/spark.md"`, each row of the tables in one run, of {rows:,}
rows of five columns (two longs, an int, a double, a string). {machine}

Each side runs in a process of its own, with a session of two cores and a JVM of at most 2 GiB. They take
turns at every operation, and must find the same rows. Times are medians of {turns} turns, after
{uncounted} that are not counted. A ratio is the other's time over that of `pennon.spark` (functions and `LanceTable`):
**above 1 Pennon is quicker.**

{beside}

- *write* makes a new table of four files; the rows come from `spark.range`. *read* ends in sums, by Spark, or by
  `aggregate=` in the tasks that read (Pennon only; the others repeat the line above).
- Spark talks to Pennon's Python workers over Unix domain sockets, which is a setting ([spark.md](../../docs/spark.md#how-quick-it-is)).
- *merge* takes a tenth as many rows; ten of eleven match and are updated, the others are inserted.
- Changes begin with a fresh copy of a table of four files; *compaction* with one of 64.
- *stream into a table* has ten batches, a Parquet file each; *stream out of a table* four, a file of the table each. *change
  feed* shows 1 % of the rows updated and 1 % deleted, in a table of four files that keeps a feed (Delta), or has stable row ids.
- *peak memory* is the resident memory of driver, JVM and workers together; the JVM is asked to collect
  its garbage before each turn.
"""


def page_of(results: Results) -> str:
    """Return the page."""
    sides = sides_of(results)
    lines = [
        PAGE.format(
            **asdict(results), turns=turns_of(results), uncounted=UNCOUNTED, beside=beside(results)
        )
    ]
    heading = [f"/ {name_of(side)}" for side in sides[1:]]
    lines += ["## Ratios\n", *heads("", *heading)]
    for each in results.measures:
        lines.append(row(each.what, *(text_of(each.ratio(side)) for side in sides[1:])))
    lines += ["", *failures(results)]
    lines += ["\n## Seconds\n", *heads("", *map(name_of, sides))]
    for each in results.measures:
        lines.append(row(each.what, *(text_of(each.median(side), ".3g") for side in sides)))
    lines += ["\n## Peak memory, MB\n", *heads("", *map(name_of, sides))]
    for each in results.measures:
        lines.append(row(each.what, *(text_of(each.peaks.get(side), ",.0f") for side in sides)))
    return "\n".join(lines) + "\n"


def failures(results: Results) -> Iterator[str]:
    """Yield what did not end, in words."""
    for each in results.measures:
        for side, reason in each.failed.items():
            if reason:
                yield f"- {name_of(side)}, {each.what}: {reason}."


def turns_of(results: Results) -> int:
    """Return how many turns were counted."""
    return max(len(each.seconds[OURS]) for each in results.measures)


def name_of(side: str) -> str:
    """Return what a side is called on the page."""
    names = {OURS: "`pennon.spark`", FORMAT: '`format("lance")`', PARQUET: "Parquet"}
    return names.get(side) or f"{side} {PEERS[side].release}"


def beside(results: Results) -> str:
    """Return who ran beside us, in words."""
    return "\n".join(_beside(results))


def _beside(results: Results) -> Iterator[str]:
    yield '- `format("lance")` and Parquet are Spark\'s own reader and writer in the same Spark as Pennon.'
    notes = {
        "delta": ", with deletion vectors, `snapshotPartitions` 2",
        "lance-spark": ", whose changes are SQL over its catalog; it has no compaction",
    }
    for name, peer in PEERS.items():
        if name in results.missing:
            yield f"- {name} {peer.release} could not be measured: {results.missing[name]}."
        else:
            yield f"- {name} {peer.release} runs in Spark {peer.spark}{notes[name]}."


def choices() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100,000 rows, few rounds")
    parser.add_argument("--rows", type=int, help="so many rows")
    parser.add_argument("--rounds", type=int, help="so many rounds")
    parser.add_argument("--side", action="append", choices=SIDES, help="only this, and pennon")
    parser.add_argument("--operation", action="append", choices=OPERATIONS, help="only this")
    parser.add_argument("--markdown", type=Path, help="write what was found as a page")
    parser.add_argument("--last", action="store_true", help="of the last run; measure nothing")
    options = parser.parse_args()
    if options.side and OURS not in options.side:
        options.side.insert(0, OURS)
    return options


def main() -> None:
    """Measure, print, and leave the numbers in ``bench/results/spark.json``."""
    options = choices()
    console = Console()
    console.width = max(console.width, 160)
    results = Results.load() if options.last else measure_all(options, console)
    show(console, results)
    if options.markdown:
        options.markdown.write_text(page_of(results))


if __name__ == "__main__":
    main()
