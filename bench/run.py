"""``make bench``: Pennon beside pylance, on the same bytes, in one run.

Each side is a process of its own (`side.py`).  Repetitions alternate between the sides, so that a
busy moment of the machine hits both.  Both read the same table, which pylance wrote.  A ratio is
pylance's median over ours: above 1 we are faster (for sizes and memory: smaller).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from groups import GROUPS, NOT_IN_2_0, make_table
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "latest.json"
OURS, THEIRS = "pennon", "pylance"
SIDES = (OURS, THEIRS)
TAKES = {
    "take 1": (1, 50),
    "take 1, alone": (1, 1),
    "take 100": (100, 10),
    "take 100, alone": (100, 1),
    "take 5,000": (5_000, 1),
}
"""How many rows, and how many takes in a row.  One alone finds the caches of the processor cold."""
VERSIONS = ("2.0", "2.1")


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of the report: what was measured of which group, and every value of both sides."""

    version: str
    group: str
    what: str
    unit: str
    ours: list[float]
    theirs: list[float]

    @property
    def ratio(self) -> float:
        """Return pylance's median over ours."""
        return statistics.median(self.theirs) / max(statistics.median(self.ours), 1e-9)


class Worker:
    """A side that is running."""

    def __init__(self, name: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "side.py"), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(self, **task: Any) -> dict[str, Any]:
        """Run one task there."""
        if self.process.stdin is None or self.process.stdout is None:
            raise RuntimeError
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            message = f"{self.process.args!r} failed at {task}"
            raise RuntimeError(message)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait()


def measure(workers: dict[str, Worker], repeats: int, **task: Any) -> dict[str, list[float]]:
    """Run a task on both sides in turn; return milliseconds.  The first round is not counted."""
    times: dict[str, list[float]] = {side: [] for side in SIDES}
    for number in range(repeats + 1):
        for side in SIDES if number % 2 else SIDES[::-1]:
            seconds = workers[side].run(**task, round=number)["seconds"]
            if number:
                times[side].append(seconds * 1000)
    return times


def measure_group(
    group: str, version: str, folder: Path, *, quick: bool, repeats: int
) -> Iterator[Measure]:
    """Measure everything of one group of types in one version of the data files."""
    workers = {side: Worker(side) for side in SIDES}
    uris = {side: str(folder / f"{group}-{version}-{side}.lance") for side in SIDES}
    table = make_table(group, quick=quick)
    rows, column = table.num_rows, table.column_names[0]
    del table

    written: dict[str, list[float]] = {side: [] for side in SIDES}
    for number in range(repeats + 1):
        for side in SIDES:
            answer = workers[side].run(
                do="write", group=group, quick=quick, version=version, uri=uris[side]
            )
            written[side] += [answer["seconds"] * 1000] if number else []
    yield Measure(version, group, "write", "ms", written[OURS], written[THEIRS])
    sizes = {side: [data_bytes(Path(uris[side])) / 1e6] for side in SIDES}
    yield Measure(version, group, "file size", "MB", sizes[OURS], sizes[THEIRS])

    uri = uris[THEIRS]
    plans: dict[str, dict[str, Any]] = {
        "open": {"do": "open"},
        "scan": {"do": "scan"},
        "scan, bytes touched": {"do": "touch"},
        "one column": {"do": "scan", "columns": [column]},
    }
    for what, (number, times) in TAKES.items():
        plans[what] = {"do": "take", "count": number, "times": times, "rows": rows}
    for what, plan in plans.items():
        times = measure(
            workers, repeats * (3 if plan["do"] in ("open", "take") else 1), uri=uri, **plan
        )
        yield Measure(version, group, what, "ms", times[OURS], times[THEIRS])
    for worker in workers.values():
        worker.close()
    peaks = {side: [peak_of(side, uri) for _ in range(2)] for side in SIDES}
    yield Measure(version, group, "peak memory of a scan", "MB", peaks[OURS], peaks[THEIRS])


def data_bytes(root: Path) -> int:
    """Return the size of all data files of a table."""
    return sum(path.stat().st_size for path in (root / "data").iterdir())


def peak_of(side: str, uri: str) -> float:
    """Return by how many MB a scan raises the peak memory of a fresh process."""
    worker = Worker(side)
    peak: int = worker.run(do="peak", uri=uri)["result"]
    worker.close()
    return peak / 1024


def report(console: Console, title: str, measures: list[Measure]) -> None:
    """Print one group."""
    table = Table(title=title, title_justify="left", title_style="bold", width=96)
    table.add_column("")
    for head in ("pennon", "min–max", "pylance", "min–max", "ratio"):
        table.add_column(head, justify="right")
    for each in measures:
        table.add_row(
            f"{each.what}, {each.unit}",
            *(text for values in (each.ours, each.theirs) for text in spread(values)),
            coloured(each.ratio),
        )
    console.print(table)


def spread(values: list[float]) -> tuple[str, str]:
    """Return the median and the range, as text."""
    return f"{statistics.median(values):.2f}", f"{min(values):.2f}–{max(values):.2f}"


def summarize(console: Console, version: str, measures: list[Measure]) -> None:
    """Print the ratios of all groups: a row each, and their geometric mean."""
    ratios: dict[str, dict[str, float]] = {}
    for each in measures:
        ratios.setdefault(each.group, {})[each.what] = each.ratio
    heads = list(dict.fromkeys(each.what for each in measures))
    table = Table(title=f"ratios, version {version}", title_justify="left", title_style="bold")
    for head in ("", *heads):
        table.add_column(head, justify="right", max_width=9)
    for group, row in ratios.items():
        table.add_row(group, *(coloured(row[head]) for head in heads))
    means = [statistics.geometric_mean(row[head] for row in ratios.values()) for head in heads]
    table.add_section()
    table.add_row("geometric mean", *map(coloured, means))
    console.print(table)


def coloured(ratio: float) -> str:
    """Return a ratio in green where we are ahead, in red where not."""
    colour = "green" if ratio >= 1 else "red"
    return f"[{colour}]{ratio:.2f}[/{colour}]"


def main() -> None:
    """Measure, print, and leave the numbers in ``bench/results/latest.json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, 3 repetitions")
    parser.add_argument("--group", action="append", choices=list(GROUPS), help="only this one")
    parser.add_argument("--file-version", action="append", choices=VERSIONS, help="only this one")
    parser.add_argument("--no-spark", action="store_true")
    options = parser.parse_args()
    console = Console()
    console.width = max(console.width, 120)
    console.print("ratio: pylance / pennon; above 1 Pennon is faster (or smaller)\n")
    found: list[Measure] = []
    repeats = 3 if options.quick else 7
    for version in options.file_version or VERSIONS:
        mine: list[Measure] = []
        for group in options.group or GROUPS:
            if version == "2.0" and group in NOT_IN_2_0:
                continue
            with tempfile.TemporaryDirectory(prefix="pennon-bench-") as folder:
                its = list(
                    measure_group(
                        group, version, Path(folder), quick=options.quick, repeats=repeats
                    )
                )
            report(console, f"{group}, version {version}", its)
            mine += its
        summarize(console, version, mine)
        found += mine
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps([asdict(each) for each in found], indent=1))
    if not options.no_spark:
        quick = ["--quick"] if options.quick else []
        subprocess.run([sys.executable, str(HERE / "spark.py"), *quick], check=True)


if __name__ == "__main__":
    main()
