"""``make bench-loader``: training batches from `pennon.torch` beside pylance, MosaicML Streaming and Hugging Face.

The sides read the same rows, shuffled, in turns, each in a process of its own; what is measured is samples a second
after the queues are full.  A ratio is our median over the other's: above 1 we are faster.  pylance's loader that shuffles
batches of neighbouring rows is compared with ours that does so; all others with ours that shuffles rows.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from loader_bucket import measure_bucket
from loader_rows import ROWS, Rows, write_rows
from machine import machine_facts
from measure import HERE, OURS, THEIRS, Worker, save_results
from peers import Home, Missing, Peer, prepare
from process_memory import Own
from rich.console import Console
from rich.table import Table
from tasks import Task

RESULTS = HERE / "results" / "loader.json"
TRAIN = HERE.parent / ".venv-train"
BLOCKS, ROWS_TAKEN, HUGGING_FACE, MOSAIC = "pennon-batches", "pylance-rows", "hf", "mosaic"
NAMES: Final = {
    OURS: "pennon.torch, rows shuffled",
    BLOCKS: "pennon.torch, batches shuffled",
    THEIRS: "lance.torch, batches shuffled",
    ROWS_TAKEN: "lance.torch, rows shuffled",
    HUGGING_FACE: "HF datasets, streamed Parquet",
    MOSAIC: "MosaicML Streaming, local MDS",
}
AIMS: Final = {THEIRS: 3.0, ROWS_TAKEN: 3.0, HUGGING_FACE: 2.0, MOSAIC: 1.2}
WORKERS: Final = (0, 2)
MEMORY_BATCHES: Final = 60
PEER: Final = Peer(
    MOSAIC,
    "0.13.0",
    (
        "--no-deps",
        "mosaicml-streaming==0.13.0",
        "numpy==2.1.3",
        "Brotli==1.2.0",
        "python-snappy==0.7.3",
        "cramjam==2.11.0",
        "zstd==1.5.7.2",
        "xxhash==3.6.0",
        "catalogue==2.0.10",
    ),
)
"""MosaicML's package wants an older NumPy than others, and torchvision and clouds' packages that are not needed here."""


@dataclass(frozen=True, slots=True)
class Speed:
    """One side at one kind of rows: samples a second of each turn, and what its processes held at most."""

    kind: str
    workers: int
    side: str
    rates: Sequence[float]
    first_seconds: float
    memory_bytes: int
    batch_bytes: int

    @property
    def rate(self) -> float:
        """Return the median of samples a second."""
        return statistics.median(self.rates)


@dataclass(frozen=True, slots=True)
class Results:
    """All that a run found; ``missing`` says why a side was not measured."""

    machine: str
    missing: Mapping[str, str]
    speeds: Sequence[Speed]
    bucket: Sequence[Mapping[str, float]]

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save_results` wrote."""
        saved = json.loads(path.read_text())
        speeds = [Speed(**each) for each in saved["speeds"]]
        return cls(saved["machine"], saved["missing"], speeds, saved["bucket"])


def mosaic_python() -> str | Missing:
    """Return the interpreter of MosaicML's package, which finds torch where the others have it."""
    home = prepare(PEER)
    if isinstance(home, Home):
        packages = next((TRAIN / "lib").glob("python*/site-packages"))
        for own in Path(home.python).parents[1].glob("lib/python*/site-packages"):
            (own / "train.pth").write_text(f"{packages}\n")  # after its own packages
        return home.python
    return home


def measure_kind(
    kind: Rows, folder: Path, sides: Mapping[str, str], options: argparse.Namespace
) -> Iterator[Speed]:
    """Yield the speed of each side at one kind of rows, for each number of workers."""
    rows = options.rows or (kind.rows // 8 if options.quick else kind.rows)
    write_rows(kind, rows, folder)
    task: Task = {
        "folder": str(folder),
        "kind": kind.name,
        "row_bytes": kind.row_bytes,
        "batch_size": kind.batch_size,
        "mds": kind.mds,
        "round": 1,
    }
    if MOSAIC in sides:
        with Worker(MOSAIC, "loader_side.py", sides[MOSAIC]) as worker:
            worker.run({**task, "do": "write"})
    for workers in options.workers or WORKERS:
        yield from _measure_in_turns({**task, "workers": workers}, sides, options)


def _measure_in_turns(
    task: Task, sides: Mapping[str, str], options: argparse.Namespace
) -> Iterator[Speed]:
    rates: dict[str, list[float]] = {side: [] for side in sides}
    firsts: dict[str, list[float]] = {side: [] for side in sides}
    with ExitStack() as stack:
        running = {
            side: stack.enter_context(Worker(side, "loader_side.py", python))
            for side, python in sides.items()
        }
        for number in range(options.turns):
            order = list(running) if number % 2 else list(running)[::-1]
            for side in order:
                answer = running[side].run({**task, "do": "rate", "seconds": options.seconds})
                rates[side].append(answer["found"]["rate"])
                firsts[side].append(answer["found"]["first"])
    for side, python in sides.items():
        memory = 0 if options.no_memory else memory_of(side, python, task)
        batch = task["batch_size"] * task["row_bytes"]
        first = firsts[side][0]  # later ones find workers running
        yield Speed(task["kind"], task["workers"], side, rates[side], first, memory, batch)


def memory_of(side: str, python: str, task: Task) -> int:
    """Return by how much the memory of a new process and its workers rises as it reads, in bytes."""
    with Worker(side, "loader_side.py", python) as worker:
        worker.run({**task, "do": "read", "batches": 1, "workers": 0})  # what is imported
        with Own(worker.process.pid) as before:
            time.sleep(0.2)
        with Own(worker.process.pid) as peak:
            worker.run({**task, "do": "read", "batches": MEMORY_BATCHES})
        return peak.bytes - before.bytes


def measure_all(options: argparse.Namespace, console: Console) -> Results:
    """Measure what was chosen; print each kind of rows when it is done."""
    train = str(TRAIN / "bin" / "python")
    sides = {side: train for side in NAMES if side in (options.side or NAMES)}
    missing: dict[str, str] = {}
    if MOSAIC in sides:
        python = mosaic_python()
        if isinstance(python, Missing):
            missing[MOSAIC] = python.reason
            del sides[MOSAIC]
            console.print(f"{NAMES[MOSAIC]} is not measured: {python.reason}")
        else:
            sides[MOSAIC] = python
    speeds: list[Speed] = []
    for name in options.kind or ROWS:
        with tempfile.TemporaryDirectory(prefix="pennon-bench-") as folder:
            its = list(measure_kind(ROWS[name], Path(folder), sides, options))
        print_kind(console, name, its)
        speeds += its
    bucket: list[Mapping[str, float]] = []
    if OURS in sides and not options.no_bucket:
        bucket = list(measure_bucket(options.kind or list(ROWS), train, quick=options.quick))
        print_bucket(console, bucket)
    return Results(machine_facts("pylance", "pyarrow", "numpy"), missing, speeds, bucket)


def lines_of(speeds: Sequence[Speed]) -> Iterator[tuple[str, ...]]:
    """Yield a row of cells for each side: rates, our ratio to it, and its memory in batches."""
    rates = {(each.side, each.workers): each.rate for each in speeds}
    for each in speeds:
        ours = BLOCKS if each.side == THEIRS else OURS
        ratio = rates.get((ours, each.workers), 0.0) / each.rate
        aim = AIMS.get(each.side)
        verdict = (
            "" if aim is None or not ratio else f"aim {aim}, {'met' if ratio >= aim else 'NOT met'}"
        )
        yield (
            NAMES[each.side],
            str(each.workers),
            f"{each.rate:,.0f}",
            f"{min(each.rates):,.0f} to {max(each.rates):,.0f}",
            "" if each.side in (OURS, BLOCKS) or not ratio else f"{ratio:.2f}",
            verdict,
            f"{each.first_seconds:.2f}",
            f"{each.memory_bytes / 1e6:,.0f}",
            f"{each.memory_bytes / each.batch_bytes:.1f}",
        )


HEADS: Final = (
    "loader", "workers", "samples/s", "of all turns", "ratio", "", "first batch, s", "memory, MB", "in batches",
)  # fmt: skip


def print_kind(console: Console, name: str, speeds: Sequence[Speed]) -> None:
    """Print the table of one kind of rows."""
    table = Table(title=name, title_justify="left", title_style="bold")
    for number, head in enumerate(HEADS):
        table.add_column(head, justify="right" if number else "left")
    for line in lines_of(speeds):
        table.add_row(*line)
    console.print(table)


def print_bucket(console: Console, found: Sequence[Mapping[str, float]]) -> None:
    """Print what came out of the bucket."""
    for each in found:
        console.print(
            f"bucket, {each['kind']}: {each['rate']:,.0f} samples/s, {each['mb_per_s']:.1f} of "
            f"{each['limit_mb_per_s']:.0f} MB/s: {each['share']:.0%} of its bandwidth, {each['requests']:.0f} requests"
        )


def choices(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="an eighth of the rows, short turns")
    parser.add_argument("--kind", action="append", choices=ROWS, help="only these rows")
    parser.add_argument("--side", action="append", choices=NAMES, help="only this loader")
    parser.add_argument("--workers", action="append", type=int, help="only so many workers")
    parser.add_argument("--rows", type=int, help="so many rows")
    parser.add_argument("--turns", type=int, help="how often each side is measured")
    parser.add_argument("--seconds", type=float, help="how long a turn lasts")
    parser.add_argument("--no-memory", action="store_true", help="leave out the memory")
    parser.add_argument("--no-bucket", action="store_true", help="leave out the simulated bucket")
    parser.add_argument("--last", action="store_true", help="of the last run; measure nothing")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the numbers are left")
    options = parser.parse_args(words)
    options.turns = options.turns or (3 if options.quick else 5)
    options.seconds = options.seconds or (0.5 if options.quick else 1.5)
    return options


def main() -> None:
    """Measure, print, and leave the numbers in ``bench/results/loader.json``."""
    options = choices()
    console = Console()
    console.width = max(console.width, 150)
    started = time.monotonic()
    console.print("ratio: pennon / the other; above 1 Pennon is faster\n")
    if options.last:
        results = Results.load(options.results)
        for name in ROWS:
            print_kind(console, name, [each for each in results.speeds if each.kind == name])
        print_bucket(console, results.bucket)
    else:
        save_results(measure_all(options, console), options.results)
    console.print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
