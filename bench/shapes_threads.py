"""Questions from 1 to 8 threads on one handle, as a service asks them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import lance
import numpy as np
import pyarrow as pa
from turns import LIBRARIES, Effort, Figure

import pennon

ROWS: Final = 200_000
DIMENSION: Final = 64
THREADS: Final = (1, 2, 4, 8)
SECONDS: Final = 1.5
TURNS: Final = 2
"""So often each library answers as many as it can; the better of its turns counts."""


def measure_threads(folder: Path, effort: Effort) -> Iterator[tuple[str, Figure]]:
    """Yield seconds for a question; with CPU time of the process for all threads."""
    uri = str(folder / "table.lance")
    _make_table(uri)
    handles = {library: library.dataset(uri) for library in LIBRARIES}
    for name, ask in _questions().items():
        alone = 0.0
        for threads in THREADS:
            best: dict[Any, tuple[float, float]] = {}
            for _ in range(TURNS):
                for library, handle in handles.items():
                    seconds = SECONDS if effort.share == 1 else SECONDS / 3
                    found = _seconds_for_one(partial(ask, handle), threads, seconds)
                    best[library] = min(best.get(library, found), found)
            ours, theirs = best[pennon], best[lance]
            alone = alone or ours[0]
            note = f"{1 / ours[0]:,.0f} a second, {alone / ours[0]:.2f} of one thread"
            head = f"One handle, questions from threads: {name}"
            figure = Figure(
                f"{threads} threads",
                ours[0],
                theirs[0],
                theirs[0] / ours[0],
                theirs[1] / ours[1],
                note,
            )
            yield head, figure


def _make_table(uri: str) -> None:
    random = np.random.default_rng(5)
    items = pa.array(random.random(ROWS * DIMENSION, np.float32))
    columns = {
        "id": np.arange(ROWS),
        "key": random.permutation(ROWS),
        "s": pa.array([f"text {number % 977} of {number}" for number in range(ROWS)]),
        "v": pa.FixedSizeListArray.from_arrays(items, DIMENSION),
    }
    lance.write_dataset(pa.table(columns), uri, max_rows_per_file=ROWS // 4)
    table = lance.dataset(uri)
    table.create_scalar_index("key", "BTREE")
    table.create_index("v", "IVF_PQ", num_partitions=64, num_sub_vectors=8)


def _questions() -> dict[str, Callable[[Any, int], object]]:
    random = np.random.default_rng(7)
    vectors = [random.random(DIMENSION, np.float32) for _ in range(64)]
    columns = ["id", "s"]
    return {
        "take 1": lambda d, at: d.take([at * 7919 % ROWS], columns=columns),
        "take 100": lambda d, at: d.take(
            [(at * 7919 + each * 977) % ROWS for each in range(100)], columns=columns
        ),
        "BTREE point": lambda d, at: d.to_table(columns=columns, filter=f"key = {at * 31 % ROWS}"),
        "nearest 10": lambda d, at: d.to_table(
            columns=["id"], nearest={"column": "v", "q": vectors[at % 64], "k": 10, "nprobes": 8}
        ),
        "filter of 1 %": lambda d, _: d.to_table(
            columns=["id"], filter=f"key < {ROWS // 100}", use_scalar_index=False
        ),
    }


def _seconds_for_one(
    ask: Callable[[int], object], threads: int, seconds: float
) -> tuple[float, float]:
    """Return the wall and CPU time for one question, of all that threads ask in some seconds."""
    counts = [0] * threads
    began, cpu = time.perf_counter(), time.process_time()

    def work(number: int) -> None:
        at = number * 1000
        while time.perf_counter() < began + seconds:
            ask(at)
            at += 1
            counts[number] += 1

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    asked = max(sum(counts), 1)
    return (time.perf_counter() - began) / asked, (time.process_time() - cpu) / asked
