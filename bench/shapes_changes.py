"""Operations that change a table: each on a fresh copy, with all that it makes durable."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import lance
import numpy as np
import pyarrow as pa
from turns import Effort, Figure, time_in_turns

ROWS: Final = 1_000_000


def measure_operations(folder: Path, effort: Effort) -> Iterator[tuple[str, Figure]]:
    """Yield the figures of operations; both libraries begin with the same files, which pylance wrote."""
    count = ROWS // effort.share
    random = np.random.default_rng(5)
    texts = pa.array([f"text {number % 977} of {number}" for number in range(count)])
    rows = pa.table({"id": np.arange(count), "x": random.random(count), "s": texts})
    uri = str(folder / "table.lance")
    lance.write_dataset(rows, uri, max_rows_per_file=count // 4)
    handles: dict[Any, Any] = {}

    def prepare(library: Any) -> None:
        own = str(folder / f"{library.__name__}.lance")
        shutil.rmtree(own, ignore_errors=True)
        shutil.copytree(uri, own)
        handles[library] = library.dataset(own)

    def work(change: Callable[[Any], object], library: Any) -> object:
        return change(handles[library])

    for name, change in _operations(rows).items():
        figure = time_in_turns(name, partial(work, change), effort.runs, prepare)
        yield f"{count:,} rows in 4 fragments", figure


def _operations(rows: pa.Table) -> dict[str, Callable[[Any], object]]:
    new = rows.slice(rows.num_rows * 2 // 5, rows.num_rows // 100)
    return {
        "delete 1 %": lambda d: d.delete("id % 100 = 7"),
        "update 1 %": lambda d: d.update({"x": "x * 2"}, where="id % 100 = 7"),
        "merge 1 %": lambda d: (
            d.merge_insert("id")
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute(new)
        ),
        "add a column": lambda d: d.add_columns({"y": "x * 2"}),
        "delete 20 % and compact": lambda d: (
            d.delete("id % 5 = 1"),
            d.optimize.compact_files(),
        ),
        "BTREE": lambda d: d.create_scalar_index("id", "BTREE"),
    }
