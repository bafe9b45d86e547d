"""Tables of 1 to 1,000 fragments, and of hundreds of small appends."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import lance
import numpy as np
import pyarrow as pa
from turns import Ask, Effort, Figure, ask_in_turns, time_in_turns

import pennon

ROWS: Final = 1_000_000
FRAGMENTS: Final = (1, 20, 200, 1000)
APPENDS: Final = 800
APPENDED: Final = 25
CALLS_OF: Final = (100, 500)
"""Fragments of the tables by which calls of functions are counted."""


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


def measure_fragments(folder: Path, effort: Effort) -> Iterator[tuple[str, Figure]]:
    """Yield the figures of the same rows in more and more fragments."""
    rows = make_rows(ROWS // effort.share)
    calls = calls_of_one_more_fragment(folder)
    for fragments in FRAGMENTS:
        uri = str(folder / f"{fragments}.lance")
        cut_table(uri, rows, fragments)
        head = f"{rows.num_rows:,} rows in {fragments:,} fragments"
        if fragments == FRAGMENTS[-1]:
            head += f" (one more costs a scan of two known columns {calls:.1f} calls)"
        for figure in ask_in_turns(questions(uri, rows.num_rows), uri, effort.runs):
            yield head, figure


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


def measure_appends(folder: Path, effort: Effort) -> Iterator[tuple[str, Figure]]:
    """Yield the figures of a table that small appends made; appends and compactions go to copies."""
    uri = str(folder / "appends.lance")
    rows = make_rows(APPENDS * APPENDED)
    for number in range(APPENDS):
        part = rows.slice(number * APPENDED, APPENDED)
        pennon.write_dataset(part, uri, mode="append" if number else "create")
    head = f"{APPENDS} appends of {APPENDED} rows"
    for figure in ask_in_turns(questions_of_appends(uri), uri, effort.runs):
        yield head, figure

    def copy(library: Any) -> str:
        own = f"{uri}.{library.__name__}"
        shutil.rmtree(own, ignore_errors=True)
        shutil.copytree(uri, own)
        return own

    part = rows.slice(0, APPENDED)
    own = {library: copy(library) for library in (pennon, lance)}
    append = lambda library: library.write_dataset(part, own[library], mode="append")  # noqa: E731
    yield head, time_in_turns("one more append", append, 3 * effort.runs)
    compact = lambda library: library.dataset(own[library]).optimize.compact_files()  # noqa: E731
    yield head, time_in_turns("compaction", compact, effort.runs, copy)


def questions_of_appends(uri: str) -> dict[str, Ask]:
    """Return what is asked of a table of small appends."""
    columns = ["id", "x"]
    return {
        "open": lambda m, _: m.dataset(uri).count_rows(),
        "open an old version": lambda m, _: m.dataset(uri, version=APPENDS // 2).count_rows(),
        "list of versions": lambda m, _: len(m.dataset(uri).versions()),
        "cold scan": lambda m, _: m.dataset(uri).to_table(columns=columns),
        "scan": lambda _, d: d.to_table(columns=columns),
        "filter": lambda _, d: d.to_table(columns=["id"], filter="x < 0.01"),
    }


def calls_of_one_more_fragment(folder: Path) -> float:
    """Return how many Python functions a scan of two columns of a known table calls for a fragment more."""
    counts = []
    for fragments in CALLS_OF:
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
    return (counts[1] - counts[0]) / (CALLS_OF[1] - CALLS_OF[0])
