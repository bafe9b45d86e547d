"""The rows that a worker returns: one a task, without slow imports in a fresh process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from pennon.spark.run_tasks import RunNumbers, RunRows

NUMBERS = pa.record_batch({"id": [3, 1]})


class Plain:
    """Answers with what a function makes of the work, which is bytes."""

    to_bytes = from_bytes = staticmethod(bytes)

    def __init__(self, run: Callable[[Any], bytes]) -> None:
        self.run = run


LIGHT = """
import sys
import pyarrow as pa
from pennon.spark.run_tasks import RunRows
class Done:
    run = to_bytes = staticmethod(lambda work: b"done")
(batch,) = RunRows(Done())(iter([]))
assert batch.num_rows == 1
found = {"pandas", "pyspark", "pennon.ops.write"} & sys.modules.keys()
assert not found, found
"""


def test_run_numbers_returns_one_row_per_number() -> None:
    batches = RunNumbers(Plain(bytes))(iter([NUMBERS, NUMBERS.slice(1)]))
    rows = pa.Table.from_batches(batches)
    rows.validate(full=True)
    assert rows.to_pydict() == {"number": [3, 1, 1], "message": [b"\0\0\0", b"\0", b"\0"]}


def test_a_message_may_be_empty() -> None:
    (batch,) = RunRows(Plain(lambda batches: b""))(iter([]))
    batch.validate(full=True)
    assert batch.to_pydict() == {"number": [0], "message": [b""]}


def test_a_worker_loads_little() -> None:
    subprocess.run([sys.executable, "-c", LIGHT], check=True, timeout=60)
