"""One side of the comparison of files, in a process of its own: ``side.py NAME`` (`formats.format_of`)."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from formats import Format, Table, format_of
from tasks import Side, Task, Works, answer_tasks


class TableSide(Side):
    """The format under test, and the table that it is looking at."""

    def __init__(self, form: Format) -> None:
        self.form = form
        self.opened: dict[str, Table] = {}

    def reads(self) -> dict[str, int]:
        """See `Side.reads`."""
        return self.form.reads()

    def prepare_write(self, task: Task) -> Works:
        """Write ``columns`` of the table in the Arrow file ``data``; ``uri`` is emptied first."""
        data: pa.Table = pa.ipc.open_file(pa.memory_map(task["data"])).read_all()
        table = data.select(task["columns"])
        self.opened = {}
        shutil.rmtree(task["uri"], ignore_errors=True)
        os.environ["PENNON_DURABILITY"] = task.get("durability", "full")
        return [partial(self.form.write, table, task["uri"], task["version"])]

    def prepare_open(self, task: Task) -> Works:
        """Open a table and read its schema."""
        return [lambda: self.form.open(task["uri"]).width()]

    def prepare_first(self, task: Task) -> Works:
        """Open a table and read its first row."""
        return [lambda: self.form.open(task["uri"]).first(task["columns"]).num_rows]

    def prepare_scan(self, task: Task) -> Works:
        """Read all rows, or those of which the key is ``below`` a number."""
        table = self._table(task)
        return [lambda: table.scan(task["columns"], task.get("below")).num_rows]

    def prepare_touch(self, task: Task) -> Works:
        """Scan, and then look at every byte: what is mapped but not read has no cost yet."""
        table = self._table(task)

        def work() -> int:
            found = table.scan(task["columns"])
            touch(found)
            return int(found.num_rows)

        return [work]

    def prepare_count(self, task: Task) -> Works:
        """Count the rows that the group's own filter keeps."""
        table = self._table(task)
        return [lambda: table.count(task["group"])]

    def prepare_take(self, task: Task) -> Works:
        """Take ``count`` random rows, ``times`` over; all rows are others in each ``round``."""
        table = self._table(task)
        shape = (task["times"], task["count"])
        turns = np.random.default_rng(task["round"]).integers(0, task["rows"], shape).tolist()

        def take(rows: list[int]) -> int:
            return int(table.take(rows, task["columns"]).num_rows)

        return [partial(take, rows) for rows in turns]

    def prepare_peak(self, task: Task) -> Works:
        """Scan batch by batch; what is found is how far the memory of the process rises, in KiB."""
        table = self._table(task)
        table.take([0], task["columns"])

        def work() -> int:
            before = restart_peak()
            for batch in table.batches(task["columns"]):
                touch(batch)
            return memory_kib("VmHWM") - before

        return [work]

    def _table(self, task: Task) -> Table:
        if task["uri"] not in self.opened:
            self.opened = {task["uri"]: self.form.open(task["uri"])}
        return self.opened[task["uri"]]


def touch(data: pa.Table | pa.RecordBatch) -> None:
    """Look at every byte of a table or batch: a cost that is the same for all."""
    for column in data.columns:
        for chunk in getattr(column, "chunks", [column]):
            for buffer in chunk.buffers():
                if buffer is not None:
                    np.frombuffer(buffer, np.uint8).sum(dtype=np.uint64)


def restart_peak() -> int:
    """Let the peak of this process's memory start again from now; return what it holds, in KiB."""
    Path("/proc/self/clear_refs").write_text("5")
    return memory_kib("VmRSS")


def memory_kib(name: str) -> int:
    """Return a number of Linux's account of this process: VmRSS (now) or VmHWM (peak), in KiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1])


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # version 0.1 tells what it does not hold
    answer_tasks(TableSide(format_of(sys.argv[1])))
