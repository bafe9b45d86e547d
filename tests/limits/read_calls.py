"""Counts the functions that reads of tables call, in all threads: ``python -m tests.limits.read_calls KIND TABLE…``.

Prints a JSON list with a number for each table.  The first table is read once before, which loads modules.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pennon
from pennon.dataset.lance_dataset import LanceDataset

_CALLS = [0]


def _count(_frame: FrameType, event: str, _argument: Any) -> None:
    _CALLS[0] += event in {"call", "c_call"}


READS: dict[str, Callable[[LanceDataset], Any]] = {
    "all": lambda table: table.to_table(),
    "chosen": lambda table: table.to_table(columns=table.schema.names),
    "late": lambda table: table.to_table(filter="c1 = 1", late_materialization=True),
}


def calls_of(kind: str, path: str) -> int:
    """Return how many functions are called to open a table and read all columns."""
    before = _CALLS[0]
    sys.setprofile(_count)
    table = pennon.dataset(path)
    found = READS[kind](table)
    sys.setprofile(None)
    last = found.num_columns - 1
    assert last + 1 == len(table.schema)
    assert found[last].to_pylist() == [last]
    return _CALLS[0] - before


def main() -> None:
    """Count the calls of a kind of read."""
    kind, *paths = sys.argv[1:]
    threading.setprofile(_count)  # before Pennon starts its threads
    calls_of(kind, paths[0])
    print(json.dumps([calls_of(kind, path) for path in paths]))


if __name__ == "__main__":
    main()
