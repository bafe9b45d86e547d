"""Data sources and tasks that fail on purpose; Spark's workers import them by name."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

import pennon
from pennon.ops.rows.change_rows import Changed, ChangeTask
from pennon.spark.source import LanceDataSource
from pennon.spark.writer import FragmentsWritten, LanceWriter


def _is_first(marker: str) -> bool:
    """Return whether nobody has been here before; leaves the marker file."""
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


@dataclass(frozen=True)
class DyingTask:
    """Squares numbers; the worker process that is given the number 7 dies, the first time."""

    marker: str
    seconds: float = 0.0

    def __call__(self, number: int) -> bytes:
        if number == 7 and _is_first(self.marker):
            os._exit(17)
        time.sleep(self.seconds)
        return str(number * number).encode()


@dataclass(frozen=True)
class FailingTask:
    """Fails for one number."""

    number: int

    def __call__(self, number: int) -> bytes:
        if number == self.number:
            message = f"task {number} fails on purpose"
            raise OSError(message)
        return b""


@dataclass(frozen=True, slots=True)
class DyingChangeTask(ChangeTask):
    """Changes rows; the worker process of the first attempt dies when all its files are written."""

    marker: str = ""

    def run(self, batches: Iterable[pa.RecordBatch]) -> Changed:
        changed = ChangeTask.run(self, batches)
        if changed.removals and _is_first(self.marker):
            os._exit(17)
        return changed


def count_rows(batches: Iterator[pa.RecordBatch]) -> bytes:
    """Say how many rows a partition has."""
    return str(sum(batch.num_rows for batch in batches)).encode()


class _Failing(LanceDataSource):
    """Takes the marker file out of the options (as a suffix of the path, after ``#``)."""

    wrapper: type[LanceWriter]

    def writer(self, schema: StructType, overwrite: bool) -> LanceWriter:
        path, _, marker = self.options["path"].partition("#")
        self.options = {**self.options, "path": path}
        inner = super().writer(schema, overwrite)
        wrapped = self.wrapper(inner._plan)
        wrapped.marker = marker  # type: ignore[attr-defined]
        return wrapped


class _DyingWriter(LanceWriter):
    marker: str

    def write(self, iterator: Iterator[pa.RecordBatch]) -> FragmentsWritten:
        return super().write(self._die_once(iterator))

    def _die_once(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):
            if number == 1 and _is_first(self.marker):
                os._exit(17)
            yield batch


class _UncommittableWriter(LanceWriter):
    marker: str

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        message = "the commit fails on purpose"
        raise OSError(message)

    def abort(self, messages: Sequence[Any]) -> None:
        Path(self.marker).write_text(str(len(messages)))
        super().abort(messages)


class DyingSource(_Failing):
    """The worker process of one task dies in the middle of its rows, the first time."""

    wrapper = _DyingWriter

    @classmethod
    def name(cls) -> str:
        return "lance_dying"


class UncommittableSource(_Failing):
    """All tasks succeed and the commit fails; ``abort`` leaves a note."""

    wrapper = _UncommittableWriter

    @classmethod
    def name(cls) -> str:
        return "lance_uncommittable"


@dataclass(frozen=True)
class CountingFunction:
    """Doubles values, and writes down which ones it saw; fails at one, or appends a row meanwhile.

    Before it fails it waits until something is in the folder ``after``.
    """

    log: str
    fails_at: int | None = None
    after: str = ""
    appends_to: str | None = None

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        values = [self.value(value) for value in batch.column("value").to_pylist()]
        return pa.RecordBatch.from_pydict({"twice": values})

    def value(self, value: int) -> int:
        """Return twice the value."""
        if value == self.fails_at:
            while not (Path(self.after).exists() and any(Path(self.after).iterdir())):
                time.sleep(0.02)
            message = f"the value {value} fails on purpose"
            raise OSError(message)
        with Path(self.log).open("a") as log:
            log.write(f"{value}\n")
        if self.appends_to is not None and _is_first(f"{self.log}.appended"):
            rows = pa.table({"key": ["e"], "value": pa.array([5], pa.int64())})
            pennon.write_dataset(rows, self.appends_to, mode="append")
        return 2 * value

    def seen(self) -> list[int]:
        """Return the values seen, in order."""
        return [int(line) for line in Path(self.log).read_text().split()]
