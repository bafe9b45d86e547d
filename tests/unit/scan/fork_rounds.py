"""Forks of a process that uses tables at that very moment; a program, because pylance cannot fork.

``fork_rounds.py FOLDER ROUNDS``: in each round 8 children read the tables at once, local ones and one
in memory, that the parent had opened and read, while threads of the parent go on reading them.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa

import pennon
from tests.unit.forks import CHILDREN, exit_codes

ROWS = 30_000
TABLE = pa.table(
    {
        "n": range(ROWS),
        "w": [f"word {n % 97}" for n in range(ROWS)],
        "l": [[n] * (n % 3) for n in range(ROWS)],
    }
)
BATCH = 1_000
PICKS = [5, ROWS - 1, 12_345, 5]
FILTER = "n % 1000 = 7 AND w LIKE 'word%'"


def make_tables(folder: Path) -> list[Any]:
    """Return tables of both versions and of two stores, each of several fragments."""
    places = {str(folder / "old"): "2.0", str(folder / "new"): "2.1", "memory://forks/t": "2.1"}
    for place, version in places.items():
        pennon.write_dataset(TABLE, place, data_storage_version=version, max_rows_per_file=8_000)
    return [pennon.dataset(place) for place in places]


def reads_right(table: Any) -> bool:
    """Scan, take, filter and count."""
    return bool(
        table.to_table() == TABLE
        and table.take(PICKS) == TABLE.take(PICKS)
        and table.count_rows(FILTER) == ROWS // 1000
        and sum(batch.num_rows for batch in table.to_batches(columns=["w"])) == ROWS
    )


def goes_on_right(begun: Any) -> bool:
    """Read on where the parent was when it forked."""
    return sum(batch.num_rows for batch in begun) == ROWS - BATCH


def main(folder: Path, rounds: int) -> None:
    """Exit with an error if any child found anything wrong, or hung."""
    tables = make_tables(folder)
    assert all(map(reads_right, tables))
    done = threading.Event()

    def read_on() -> None:
        while not done.is_set():
            for table in tables:
                table.take(PICKS)
                pennon.dataset(table.uri, session=table.session()).to_table(columns=["w", "l"])

    threads = [threading.Thread(target=read_on) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for number in range(rounds):
            table = tables[number % len(tables)]
            begun = table.to_batches(batch_size=BATCH)
            next(begun)
            codes = exit_codes(lambda: reads_right(table) and goes_on_right(begun))  # noqa: B023
            assert codes == [0] * CHILDREN, (number, codes)
        with multiprocessing.get_context("fork").Pool(CHILDREN) as pool:
            assert pool.map(reads_right, tables[:2] * CHILDREN) == [True] * (2 * CHILDREN)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert all(map(reads_right, tables))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
