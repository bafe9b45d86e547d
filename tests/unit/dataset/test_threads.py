"""One handle asked by many threads at once: takes, filters, index lookups and searches."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon

ROWS = 6000
THREADS = 8
ROUNDS = 12

Ask = Callable[[Any, int], Any]


def table_of_rows() -> pa.Table:
    """Return rows with a key in random order, texts with NULLs, and vectors."""
    draw = np.random.default_rng(7)
    vectors = draw.random(ROWS * 16, dtype=np.float32)
    return pa.table(
        {
            "id": np.arange(ROWS),
            "key": draw.permutation(ROWS),
            "day": pa.array(np.arange(ROWS) % 400, pa.int32()).cast(pa.date32()),
            "text": [None if row % 7 == 0 else f"text {row % 97} of {row}" for row in range(ROWS)],
            "tags": [[row, None] if row % 3 else [] for row in range(ROWS)],
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors), 16),
        }
    )


@pytest.fixture(scope="module", params=["2.0", "2.1"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a table of several fragments with deleted rows and indices."""
    path: Path = tmp_path_factory.mktemp("threads")
    made = pennon.write_dataset(
        table_of_rows(),
        path / "t.lance",
        max_rows_per_file=1600,
        data_storage_version=request.param,
    )
    made.create_scalar_index("key", "BTREE")
    made.create_scalar_index("day", "BTREE")
    made.create_index("vector", "IVF_PQ", num_partitions=8, num_sub_vectors=4)
    made.delete("id % 11 = 3")
    return pennon.dataset(path / "t.lance")


def rows_asked(number: int) -> list[int]:
    """Return the rows of a take: a few in any order, some twice."""
    return [(number * 577 + place * 331) % 5000 for place in range(number % 90 + 1)] * (
        number % 2 + 1
    )


ASKS: dict[str, Ask] = {
    "take 1": lambda ds, n: ds.take([n * 317 % 5000], columns=["id", "text"]),
    "take many": lambda ds, n: ds.take(rows_asked(n)),
    "take of a fragment": lambda ds, n: ds.get_fragments()[n % 3].take([n, 5, n + 700]),
    "take by address": lambda ds, n: ds._take_rows([n, 1 << 32, n + 20], columns=["id", "vector"]),
    "filter": lambda ds, n: ds.to_table(
        columns=["id", "text"], filter=f"key < {n * 9}", use_scalar_index=False
    ),
    "count": lambda ds, n: ds.count_rows(f"id > {n} AND text IS NOT NULL"),
    "BTREE point": lambda ds, n: ds.to_table(columns=["id", "tags"], filter=f"key = {n * 31}"),
    "BTREE range": lambda ds, n: ds.to_table(
        filter=f"key BETWEEN {n} AND {n * 3} OR key IN (7, {n})"
    ),
    "BTREE of dates": lambda ds, n: ds.to_table(
        columns=["id"], filter=f"day = date '1970-02-{n % 28 + 1:02}'"
    ),
    "nearest": lambda ds, n: ds.to_table(
        columns=["id", "text"],
        nearest={"column": "vector", "q": np.full(16, n / 90, np.float32), "k": 7, "nprobes": 3},
    ),
    "nearest, refined": lambda ds, n: ds.to_table(
        columns=["id"],
        filter="id % 2 = 0",
        prefilter=True,
        nearest={
            "column": "vector",
            "q": np.linspace(0, n / 90, 16, dtype=np.float32),
            "k": 3,
            "nprobes": 8,
            "refine_factor": 4,
        },
    ),
}


def answers(asks: list[Ask], ds: Any, start: int, begin: Barrier | None = None) -> list[Any]:
    """Return the answers to questions, those of each thread in an order of its own."""
    found: list[Any] = [None] * (len(asks) * ROUNDS)
    if begin is not None:
        begin.wait()
    for place in range(len(found)):
        number = (place + start) % len(found)
        found[number] = asks[number % len(asks)](ds, number // len(asks) * 8 + 1)
    return found


@pytest.mark.parametrize("name", [*ASKS, "all"])
def test_threads_that_share_a_handle_get_the_answers_of_one(table: Any, name: str) -> None:
    asks = list(ASKS.values()) if name == "all" else [ASKS[name]]
    expected = answers(asks, pennon.dataset(table.uri), 0)
    begin = Barrier(THREADS)
    with ThreadPoolExecutor(THREADS) as pool:
        starts = [thread * len(asks) * ROUNDS // THREADS for thread in range(THREADS)]
        found = list(pool.map(lambda start: answers(asks, table, start, begin), starts))
    assert all(each == expected for each in found)
