"""One side of the comparison, in a process of its own.

``side.py pennon`` or ``side.py pylance`` reads one JSON task a line from stdin, runs it, and answers
with one JSON line.  Both sides run the same calls, since both have the same names.
"""

from __future__ import annotations

import gc
import importlib
import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from groups import make_table

MODULES = {"pennon": "pennon", "pylance": "lance"}


class Side:
    """The library under test, and the table that it is looking at."""

    def __init__(self, name: str) -> None:
        self.lance = importlib.import_module(MODULES[name])
        self.tables: dict[tuple[str, bool], pa.Table] = {}
        self.datasets: dict[str, Any] = {}

    def run(self, task: dict[str, Any]) -> dict[str, Any]:
        """Run one task; return seconds, and what else it found."""
        act: Callable[[dict[str, Any]], Callable[[], Any]] = getattr(self, f"prepare_{task['do']}")
        work = act(task)
        gc.collect()
        started = time.perf_counter()
        result = work()
        seconds = time.perf_counter() - started
        seconds /= task.get("times", 1)
        return {"seconds": seconds, "result": result if isinstance(result, int) else None}

    def prepare_write(self, task: dict[str, Any]) -> Callable[[], Any]:
        """Write a group's table to ``uri``, which is emptied first."""
        table = self._table(task)
        shutil.rmtree(task["uri"], ignore_errors=True)
        return lambda: self.lance.write_dataset(
            table, task["uri"], data_storage_version=task["version"]
        ).count_rows()

    def prepare_open(self, task: dict[str, Any]) -> Callable[[], Any]:
        """Open a table and read its schema."""
        return lambda: len(self.lance.dataset(task["uri"]).schema)

    def prepare_scan(self, task: dict[str, Any]) -> Callable[[], Any]:
        """Read all rows of all columns, or of ``columns``."""
        dataset = self._dataset(task)
        return lambda: dataset.to_table(columns=task.get("columns")).num_rows

    def prepare_touch(self, task: dict[str, Any]) -> Callable[[], Any]:
        """The same, and then look at every byte: what is mapped but not read has no cost yet."""
        dataset = self._dataset(task)
        return lambda: checksum(dataset.to_table(columns=task.get("columns")))

    def prepare_take(self, task: dict[str, Any]) -> Callable[[], Any]:
        """Take ``count`` random rows, ``times`` over; all rows are others in each ``round``."""
        dataset = self._dataset(task)
        random = np.random.default_rng(task["round"])
        shape = (task["times"], task["count"])
        turns = random.integers(0, task["rows"], shape).tolist()

        def work() -> int:
            return sum(dataset.take(rows).num_rows for rows in turns)

        return work

    def prepare_peak(self, task: dict[str, Any]) -> Callable[[], Any]:
        """Scan batch by batch in this fresh process; the result is how far its memory rises, in KiB."""
        dataset = self._dataset(task)
        dataset.take([0])

        def work() -> int:
            before = restart_peak()
            for batch in dataset.to_batches():
                checksum(batch)
            return memory_kib("VmHWM") - before

        return work

    def _table(self, task: dict[str, Any]) -> pa.Table:
        key = (task["group"], task["quick"])
        if key not in self.tables:
            self.tables = {key: make_table(task["group"], quick=task["quick"])}
        return self.tables[key]

    def _dataset(self, task: dict[str, Any]) -> Any:
        if task["uri"] not in self.datasets:
            self.datasets = {task["uri"]: self.lance.dataset(task["uri"])}
        return self.datasets[task["uri"]]


def checksum(data: pa.Table | pa.RecordBatch) -> int:
    """Return the sum of all bytes of all buffers: a cost that is the same for both sides."""
    columns = data.columns
    chunks = [c for column in columns for c in getattr(column, "chunks", [column])]
    buffers = [buffer for chunk in chunks for buffer in chunk.buffers() if buffer is not None]
    return sum(int(np.frombuffer(buffer, np.uint8).sum(dtype=np.uint64)) for buffer in buffers)


def restart_peak() -> int:
    """Let the peak of this process's memory start again from now; return what it holds, in KiB."""
    Path("/proc/self/clear_refs").write_text("5")
    return memory_kib("VmRSS")


def memory_kib(name: str) -> int:
    """Return a number of Linux's account of this process: VmRSS (now) or VmHWM (peak), in KiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1])


def main() -> None:
    """Answer tasks until stdin ends."""
    side = Side(sys.argv[1])
    for line in sys.stdin:
        print(json.dumps(side.run(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
