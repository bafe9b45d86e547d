"""Tables in an object store that takes 20 ms to answer: seconds, and requests that are counted.

The store is moto in a process of its own, behind a server that waits and counts.
"""

from __future__ import annotations

import itertools
import json
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import lance
import numpy as np
import pyarrow as pa
from turns import LIBRARIES, Effort, Figure, Turn

import pennon

ROWS: Final = 200_000
FRAGMENTS: Final = 10
DIMENSION: Final = 32
MILLISECONDS: Final = 20
SERVER: Final = Path(__file__).with_name("slow_store.py")
BUCKET: Final = "bench"


class SlowStore:
    """The server: an endpoint for S3, whose delay can be set, and which counts requests."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.options = {
            "aws_endpoint": address,
            "allow_http": "true",
            "aws_region": "us-east-1",
            "aws_access_key_id": "x",
            "aws_secret_access_key": "y",
        }

    def set_delay(self, milliseconds: float) -> int:
        """Answer later from now on; return how many requests came since the last call."""
        return self.set_line(milliseconds, 0)[0]

    def set_line(self, milliseconds: float, mb_per_s: float) -> tuple[int, int]:
        """Set delay and bandwidth (0: none); return the requests and bytes since the last call."""
        place = f"{self.address}/-/delay?ms={milliseconds}&mb_per_s={mb_per_s}"
        with urllib.request.urlopen(urllib.request.Request(place, method="POST")) as answer:
            found = json.loads(answer.read())
        return int(found["requests"]), int(found["bytes"])


@contextmanager
def slow_store() -> Iterator[SlowStore]:
    """Run the server for a while."""
    server = subprocess.Popen(
        [sys.executable, str(SERVER), BUCKET], stdout=subprocess.PIPE, text=True
    )
    try:
        if server.stdout is None:
            raise RuntimeError
        yield SlowStore(server.stdout.readline().strip())
    finally:
        server.terminate()
        server.wait()


def measure_object_store(folder: Path, effort: Effort) -> Iterator[tuple[str, Figure]]:  # noqa: ARG001
    """Yield seconds and requests of both; there is no CPU ratio but of the whole process."""
    with slow_store() as store:
        uri = f"s3://{BUCKET}/table.lance"
        table = _make_table(uri, store.options)
        for name, (cold, warm, ask) in _questions(uri, table, store.options).items():
            for is_warm in [each for each, wanted in ((False, cold), (True, warm)) if wanted]:
                title = f"{name}, {'warm' if is_warm else 'cold'}"
                yield (
                    f"An object store that takes {MILLISECONDS} ms, {FRAGMENTS} fragments",
                    _figure(title, ask, store, uri, is_warm=is_warm, runs=effort.runs),
                )


def _figure(
    title: str,
    ask: Callable[[Any, Any], object],
    store: SlowStore,
    uri: str,
    *,
    is_warm: bool,
    runs: int,
) -> Figure:
    found: dict[Any, list[Turn]] = {library: [] for library in LIBRARIES}
    requests: dict[Any, list[int]] = {library: [] for library in LIBRARIES}
    for number in range(runs):
        for library in LIBRARIES if number % 2 else LIBRARIES[::-1]:
            handle = None
            if is_warm:
                handle = library.dataset(uri, storage_options=store.options)
                ask(library, handle)
            store.set_delay(MILLISECONDS)
            wall, cpu = time.perf_counter(), time.process_time()
            ask(library, handle)
            found[library].append((time.perf_counter() - wall, time.process_time() - cpu))
            requests[library].append(store.set_delay(0))
    ours, theirs = (statistics.median(requests[library]) for library in LIBRARIES)
    note = f"{ours:.0f} and {theirs:.0f} requests"
    return Figure.of(title, found[pennon], found[lance], note)


def _make_table(uri: str, options: dict[str, str]) -> pa.Table:
    random = np.random.default_rng(5)
    items = pa.array(random.random(ROWS * DIMENSION, np.float32))
    columns = {
        "id": np.arange(ROWS),
        "key": random.permutation(ROWS),
        "x": random.random(ROWS),
        "s": pa.array([f"text {number % 977} of {number}" for number in range(ROWS)]),
        "v": pa.FixedSizeListArray.from_arrays(items, DIMENSION),
    }
    table = pa.table(columns)
    rows = ROWS // FRAGMENTS
    lance.write_dataset(table, uri, max_rows_per_file=rows, storage_options=options)
    made = lance.dataset(uri, storage_options=options)
    made.create_scalar_index("key", "BTREE")
    made.create_index("v", "IVF_PQ", num_partitions=32, num_sub_vectors=8)
    return table


def _questions(
    uri: str, table: pa.Table, options: dict[str, str]
) -> dict[str, tuple[bool, bool, Callable[[Any, Any], Any]]]:
    """Return what is asked, by name, and whether of a new handle and of one that answered before."""
    numbers = itertools.count()
    columns, ids = ["id", "s"], list(range(0, ROWS, ROWS // 100))
    query = np.random.default_rng(7).random(DIMENSION, np.float32)
    nearest = {"column": "v", "q": query, "k": 10, "nprobes": 4}

    def of(library: Any, handle: Any) -> Any:
        if handle is not None:
            return handle
        own = {"session": pennon.Session()} if library is pennon else {}
        return library.dataset(uri, storage_options=options, **own)

    def append(library: Any, _: Any) -> None:
        library.write_dataset(table.slice(0, 100), uri, mode="append", storage_options=options)

    def create(library: Any, _: Any) -> None:
        other = f"s3://{BUCKET}/new{next(numbers)}.lance"
        library.write_dataset(table.slice(0, 1000), other, storage_options=options)

    return {
        "open": (True, False, of),
        "open and one row": (True, True, lambda m, d: of(m, d).take([5], columns=columns)),
        "take 100": (True, True, lambda m, d: of(m, d).take(ids, columns=columns)),
        "scan of two columns": (True, True, lambda m, d: of(m, d).to_table(columns=["id", "x"])),
        "filter of 0.1 %": (
            True,
            True,
            lambda m, d: of(m, d).to_table(columns=columns, filter="x < 0.001"),
        ),
        "BTREE point": (
            True,
            True,
            lambda m, d: of(m, d).to_table(columns=columns, filter="key = 77"),
        ),
        "nearest 10": (
            True,
            True,
            lambda m, d: of(m, d).to_table(columns=columns, nearest=nearest),
        ),
        "new table": (True, False, create),
        "append of 100 rows": (True, False, append),
        "delete of one row": (True, False, lambda m, d: of(m, d).delete(f"id = {next(numbers)}")),
    }
