"""``make bench-fragments``: what a fragment, a small append and a deleted row cost, beside pylance.

All rows stay the same; only how they are cut into fragments differs.  Both libraries read the same
files in one process, in turns (A B, B A), and the median of the ratios counts: above 1 Pennon is faster.
Each figure is given for wall time and for CPU time of the process.  ``cold``: a new handle, whose files
are opened; all others ask a handle that answered before.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

os.environ.setdefault("LANCE_LOG", "error")

import lance
import numpy as np
import pyarrow as pa
from machine import describe_machine

import pennon

ROWS: Final = 1_000_000
FRAGMENTS: Final = (1, 20, 200, 1000)
APPENDS: Final = 800
RUNS: Final = 7
TABLES: Final = Path(__file__).parent / "tables"
Ask: TypeAlias = Callable[[Any, Any], Any]
"""Asks something of a library and its handle."""


@dataclass(frozen=True, slots=True)
class Figure:
    """The medians of one question: seconds of both, wall and CPU, and the ratios."""

    name: str
    ours: float
    theirs: float
    wall: float
    cpu: float

    def line(self) -> str:
        """Return a row of a Markdown table."""
        ours, theirs = self.ours * 1e3, self.theirs * 1e3
        return f"| {self.name} | {ours:.2f} | {theirs:.2f} | {self.wall:.2f} | {self.cpu:.2f} |"


def make_rows(count: int) -> pa.Table:
    """Return rows of numbers, few texts, doubles and small vectors."""
    random = np.random.default_rng(5)
    items = pa.array(random.random(count * 16, np.float32))
    return pa.table(
        {
            "id": np.arange(count),
            "key": random.permutation(count),
            "cat": pa.array([f"c{i}" for i in random.integers(0, 100, count)]),
            "x": random.random(count),
            "v": pa.FixedSizeListArray.from_arrays(items, 16),
        }
    )


def cut_table(uri: str, rows: pa.Table, fragments: int) -> None:
    """Write rows as so many fragments, with three indices."""
    lance.write_dataset(rows, uri, max_rows_per_file=-(-rows.num_rows // fragments))
    table = lance.dataset(uri)
    table.create_scalar_index("key", "BTREE")
    table.create_scalar_index("cat", "BITMAP")
    table.create_index("v", "IVF_FLAT", num_partitions=64)


def questions(uri: str, count: int) -> dict[str, Ask]:
    """Return what is asked of a table, by name."""
    random = np.random.default_rng(7)
    ids = random.integers(0, count, 100).tolist()
    nearest = {"column": "v", "q": random.random(16, np.float32), "k": 10, "nprobes": 8}
    columns = ["id", "x"]
    return {
        "open and one row": lambda m, _: m.dataset(uri).take([5], columns=["id"]),
        "cold scan of two columns": lambda m, _: m.dataset(uri).to_table(columns=columns),
        "scan of two columns": lambda _, d: d.to_table(columns=columns),
        "scan of all columns": lambda _, d: d.to_table(),
        "batches of all columns": lambda _, d: sum(each.num_rows for each in d.to_batches()),
        "scan with row ids": lambda _, d: d.to_table(columns=["id"], with_row_id=True),
        "first 10 rows": lambda _, d: d.to_table(columns=["id"], limit=10),
        "take 100": lambda _, d: d.take(ids, columns=columns),
        "filter of 0.1 %": lambda _, d: d.to_table(columns=["id"], filter="x < 0.001"),
        "filtered count": lambda _, d: d.count_rows(filter="x < 0.5"),
        "BTREE point": lambda _, d: d.to_table(columns=columns, filter=f"key = {count // 3}"),
        "BTREE 1 %": lambda _, d: d.to_table(columns=["id"], filter=f"key < {count // 100}"),
        "BITMAP 1 %": lambda _, d: d.to_table(columns=["id"], filter="cat = 'c7'"),
        "nearest 10": lambda _, d: d.to_table(columns=["id"], nearest=nearest),
        "nearest 10 of 1 %": lambda _, d: d.to_table(
            columns=["id"], nearest=nearest, filter="x < 0.01", prefilter=True
        ),
    }


def small_appends(uri: str, rows: pa.Table) -> None:
    """Write a table by many appends of a few rows each."""
    for number in range(APPENDS):
        mode = "append" if number else "create"
        pennon.write_dataset(rows.slice(number * 25, 25), uri, mode=mode)


def questions_of_appends(uri: str) -> dict[str, Ask]:
    """Return what is asked of a table of small appends; appends and compactions go to copies."""
    return {
        "open": lambda m, _: m.dataset(uri).count_rows(),
        "open an old version": lambda m, _: m.dataset(uri, version=APPENDS // 2).count_rows(),
        "cold scan": lambda m, _: m.dataset(uri).to_table(columns=["id", "x"]),
        "scan": lambda _, d: d.to_table(columns=["id", "x"]),
        "filter": lambda _, d: d.to_table(columns=["id"], filter="x < 0.01"),
    }


def measure(asked: dict[str, Ask], uri: str, runs: int) -> Iterator[Figure]:
    """Yield the figure of each question, asked of both libraries in turns."""
    handles = {pennon: pennon.dataset(uri), lance: lance.dataset(uri)}
    for name, ask in asked.items():
        counts = [_rows(ask(library, handle)) for library, handle in handles.items()]
        if counts[0] != counts[1]:
            message = f"{name}: {counts[0]} rows, and {counts[1]} by pylance"
            raise RuntimeError(message)
        found: dict[Any, list[tuple[float, float]]] = {pennon: [], lance: []}
        for number in range(runs):
            order = list(handles.items()) if number % 2 else list(handles.items())[::-1]
            for library, handle in order:
                wall, cpu = time.perf_counter(), time.process_time()
                ask(library, handle)
                found[library].append((time.perf_counter() - wall, time.process_time() - cpu))
        pairs = list(zip(found[pennon], found[lance], strict=True))
        yield Figure(
            name,
            statistics.median(ours[0] for ours, _ in pairs),
            statistics.median(theirs[0] for _, theirs in pairs),
            statistics.median(theirs[0] / ours[0] for ours, theirs in pairs),
            statistics.median(theirs[1] / max(ours[1], 1e-6) for ours, theirs in pairs),
        )


def _rows(found: Any) -> int:
    return found if isinstance(found, int) else int(found.num_rows)


def calls_of_one_more_fragment(folder: Path) -> float:
    """Return how many Python functions a scan of two columns of a known table calls for a fragment more."""
    counts = []
    for fragments in (100, 500):
        uri = str(folder / f"calls{fragments}.lance")
        numbers = np.arange(50 * fragments)
        rows = pa.table({"a": numbers, "b": np.sqrt(numbers)})
        table = pennon.write_dataset(rows, uri, max_rows_per_file=50)
        table.to_table()
        table.to_table()
        calls = 0

        def count(_frame: object, event: str, _argument: object) -> None:
            nonlocal calls
            calls += event == "call"

        sys.setprofile(count)
        table.to_table()
        sys.setprofile(None)
        counts.append(calls)
    return (counts[1] - counts[0]) / 400


def main() -> None:
    """Measure, and print a page, which ``--save`` leaves in ``bench/tables/fragments.md``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows and turns")
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    count, runs = (100_000, 3) if options.quick else (ROWS, RUNS)
    head = (
        "| question | Pennon, ms | pylance, ms | ratio, wall | ratio, CPU |\n|---|---|---|---|---|"
    )
    lines = ["# Tables of many fragments", "", describe_machine("pylance", "pyarrow", "numpy"), ""]
    lines += [(__doc__ or "").partition("\n\n")[2].strip(), ""]
    with tempfile.TemporaryDirectory(prefix="pennon-bench-") as name:
        folder, rows = Path(name), make_rows(count)
        lines.append(
            f"A scan of two columns of a known table calls {calls_of_one_more_fragment(folder):.1f} "
            "functions of Python for one fragment more."
        )
        for fragments in FRAGMENTS:
            uri = str(folder / f"{fragments}.lance")
            cut_table(uri, rows, fragments)
            lines += ["", f"## {count:,} rows in {fragments:,} fragments", "", head]
            for figure in measure(questions(uri, count), uri, runs):
                lines.append(figure.line())
                print(fragments, figure.line(), flush=True)
        uri = str(folder / "appends.lance")
        small_appends(uri, rows)
        lines += ["", f"## {APPENDS} appends of 25 rows", "", head]
        for figure in measure(questions_of_appends(uri), uri, runs):
            lines.append(figure.line())
            print("appends", figure.line(), flush=True)
    if options.save:
        TABLES.mkdir(exist_ok=True)
        (TABLES / "fragments.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
