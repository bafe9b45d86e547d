"""Tables of a thousand columns, and tables of which rows were deleted."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import lance
import numpy as np
import pyarrow as pa
from turns import Ask, Effort, Figure, ask_in_turns, time_in_turns

WIDE: Final = (1_000, 5_000)
"""Columns and rows."""
ROWS: Final = 1_000_000
DELETED: Final = {"1 %": "id % 100 = 3", "30 %": "id % 10 < 3"}


def measure_wide(folder: Path, effort: Effort) -> Iterator[tuple[str, Figure]]:
    """Yield the figures of a wide table, a third of it words."""
    random = np.random.default_rng(5)
    count, rows = WIDE
    words = [f"w{number}" for number in range(500)]
    columns: dict[str, Any] = {}
    for number in range(count):
        is_text = number % 3 == 0
        columns[f"c{number}"] = random.choice(words, rows) if is_text else random.random(rows)
    table = pa.table(columns)
    uri = str(folder / "wide.lance")
    lance.write_dataset(table, uri)
    head = f"{count:,} columns, {rows:,} rows"
    for figure in ask_in_turns(_questions_of_wide(uri, rows), uri, effort.runs):
        yield head, figure

    def path(library: Any) -> str:
        return str(folder / f"{library.__name__}.lance")

    yield (
        head,
        time_in_turns(
            "write",
            lambda library: library.write_dataset(table, path(library), data_storage_version="2.1"),
            effort.runs,
            lambda library: shutil.rmtree(path(library), ignore_errors=True),
        ),
    )


def _questions_of_wide(uri: str, rows: int) -> dict[str, Ask]:
    ids = list(range(0, rows, rows // 100))
    return {
        "open and one row": lambda m, _: m.dataset(uri).take([7]),
        "one column of a new handle": lambda m, _: m.dataset(uri).to_table(columns=["c500"]),
        "cold scan": lambda m, _: m.dataset(uri).to_table(),
        "scan": lambda _, d: d.to_table(),
        "take 100": lambda _, d: d.take(ids),
        "filter of 1 %": lambda _, d: d.to_table(filter="c1 < 0.01"),
    }


def measure_deleted(folder: Path, effort: Effort) -> Iterator[tuple[str, Figure]]:
    """Yield the figures of tables of which few rows and many rows were deleted."""
    count = ROWS // effort.share
    random = np.random.default_rng(5)
    texts = pa.array([f"text {number % 977} of {number}" for number in range(count)])
    table = pa.table({"id": np.arange(count), "x": random.random(count), "s": texts})
    for share, condition in DELETED.items():
        uri = str(folder / f"{share[:2].strip()}.lance")
        lance.write_dataset(table, uri, max_rows_per_file=count // 4)
        lance.dataset(uri).delete(condition)
        for figure in ask_in_turns(_questions_of_deleted(uri, count), uri, effort.runs):
            yield f"{count:,} rows, {share} deleted", figure


def _questions_of_deleted(uri: str, count: int) -> dict[str, Ask]:
    ids = list(range(0, count // 2, count // 200))
    columns = ["id", "s"]
    return {
        "open and one row": lambda m, _: m.dataset(uri).take([7]),
        "scan of two columns": lambda _, d: d.to_table(columns=columns),
        "take 100": lambda _, d: d.take(ids, columns=columns),
        "filter of 0.1 %": lambda _, d: d.to_table(filter="x < 0.001"),
        "filtered count": lambda _, d: d.count_rows(filter="x < 0.5"),
    }
