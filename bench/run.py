"""``make bench``: Pennon beside pylance and Parquet, on the same data, in one run.

Each side is a process of its own (`side.py`).  Repetitions alternate between the sides, so that a
busy moment of the machine hits all.  A ratio is the other's median over ours: above 1 we are faster
(for sizes and memory: smaller).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from groups import ACCESS, GROUPS
from machine import Limits, describe_machine, measure_limits
from measure import (
    COUNTED,
    FULL,
    HERE,
    OLD,
    OPERATIONS,
    PARQUET,
    QUICK,
    SIDES,
    THEIRS,
    VERSIONS,
    Bench,
    Measure,
    Reads,
    Worker,
    is_written,
    save_results,
)
from page import write_page
from report import print_group, print_ratios, print_startup
from rich.console import Console
from startup import measure_startup

RESULTS = HERE / "results" / "latest.json"


@dataclass(frozen=True, slots=True)
class Results:
    """All that a run found."""

    machine: str
    limits: Limits
    startup: dict[str, float]
    measures: list[Measure]

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        save_results(self, path)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote."""
        saved = json.loads(path.read_text())
        measures = [
            Measure(**{**each, "reads": each["reads"] and Reads(**each["reads"])})
            for each in saved["measures"]
        ]
        return cls(saved["machine"], Limits(**saved["limits"]), saved["startup"], measures)


def measure_all(options: argparse.Namespace, console: Console) -> Results:
    """Measure what was chosen, print each group when it is done."""
    effort = QUICK if options.quick else FULL
    found: list[Measure] = []
    with tempfile.TemporaryDirectory(prefix="pennon-bench-") as folder:
        limits, startup = measure_limits(), measure_startup(Path(folder), effort.least)
    print_startup(console, startup, limits)
    with ExitStack() as stack:
        workers = {name: stack.enter_context(Worker(name)) for name in (*SIDES, COUNTED)}
        bench = Bench(workers, effort, options.operation or default_operations(options))
        for group in options.group or [*GROUPS, *ACCESS]:
            with tempfile.TemporaryDirectory(prefix="pennon-bench-") as folder:
                for version in options.file_version or (*VERSIONS, OLD):
                    if is_written(group, version):
                        its = list(bench.run_group(group, version, Path(folder)))
                        if version != OLD:
                            print_group(console, f"{group}, version {version}", its)
                        found += its
    return Results(describe_machine("pylance", "pyarrow", "numpy"), limits, startup, found)


def default_operations(options: argparse.Namespace) -> list[str]:
    """Return all operations; the peak memory of a short run says nothing."""
    return [what for what in OPERATIONS if not (options.quick and what == "peak memory")]


def report(console: Console, found: list[Measure]) -> None:
    """Print the ratios of all groups, by version and by side."""
    for groups in (GROUPS, ACCESS):
        for version in VERSIONS:
            mine = [each for each in found if each.version == version and each.group in groups]
            if len({each.group for each in mine}) > 1:
                print_ratios(console, version, THEIRS, mine)
                print_ratios(console, version, PARQUET, mine)
    print_ratios(console, OLD, THEIRS, [each for each in found if each.version == OLD])


def choices() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, few repetitions")
    parser.add_argument("--group", action="append", choices=[*GROUPS, *ACCESS], help="only this")
    parser.add_argument("--operation", action="append", choices=OPERATIONS, help="only this")
    parser.add_argument(
        "--file-version", action="append", choices=(*VERSIONS, OLD), help="only this"
    )
    parser.add_argument("--no-spark", action="store_true")
    parser.add_argument("--markdown", type=Path, help="write what was found as a page")
    parser.add_argument("--last", action="store_true", help="of the last run; measure nothing")
    return parser.parse_args()


def main() -> None:
    """Measure, print, and leave the numbers in ``bench/results/latest.json``."""
    options = choices()
    console = Console()
    console.width = max(console.width, 160)
    started = time.monotonic()
    console.print("ratio: the other / pennon; above 1 Pennon is faster (or smaller)\n")
    results = Results.load(RESULTS) if options.last else measure_all(options, console)
    report(console, results.measures)
    results.save(RESULTS)
    if options.markdown:
        page = write_page(results.machine, results.limits, results.startup, results.measures)
        options.markdown.write_text(page)
    if not (options.quick or options.last or options.group):
        others = ["shapes.py"] if options.no_spark else ["shapes.py", "spark.py", "spark_turns.py"]
        for program in others:
            quiet = {**os.environ, "LANCE_LOG": "error"}
            subprocess.run([sys.executable, str(HERE / program)], check=True, env=quiet)
    console.print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
