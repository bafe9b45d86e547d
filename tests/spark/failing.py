"""Data sources and tasks that fail on purpose; Spark's workers import them by name."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

import pennon
from pennon.ops.rows.change_rows import ChangeTask
from pennon.ops.rows.changed_wire import Changed
from pennon.ops.task_wire import parse_number, serialize_number
from pennon.spark.source.data_source import LanceDataSource
from pennon.spark.source.stream_sink import LanceStreamWriter, stream_writer
from pennon.spark.source.writer import FragmentsWritten, LanceWriter


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

    def run(self, number: int) -> bytes:
        if number == 7 and _is_first(self.marker):
            os._exit(17)
        time.sleep(self.seconds)
        return str(number * number).encode()

    to_bytes = from_bytes = staticmethod(bytes)


@dataclass(frozen=True)
class FailingTask:
    """Fails for one number."""

    number: int

    def run(self, number: int) -> bytes:
        if number == self.number:
            message = f"task {number} fails on purpose"
            raise OSError(message)
        return b""

    to_bytes = from_bytes = staticmethod(bytes)


@dataclass(frozen=True, slots=True)
class DyingChangeTask(ChangeTask):
    """Changes rows; the worker process of the first attempt dies when all its files are written."""

    marker: str = ""

    def run(self, batches: Iterable[pa.RecordBatch]) -> Changed:
        changed = ChangeTask.run(self, batches)
        if changed.removals and _is_first(self.marker):
            os._exit(17)
        return changed


@dataclass(frozen=True)
class DyingQueries:
    """Hands rows on; the first worker process dies behind half of them, the next one has them backwards."""

    marker: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = pa.Table.from_batches(list(batches))
        if _is_first(self.marker):
            yield from rows.slice(0, rows.num_rows // 2).to_batches()
            os._exit(17)
        backwards = range(rows.num_rows - 1, -1, -1)
        yield from rows.take(pa.array(backwards, pa.int64())).to_batches()


class CountingTask:
    """Counts the rows of a partition."""

    to_bytes = staticmethod(serialize_number)
    from_bytes = staticmethod(parse_number)

    def run(self, batches: Iterator[pa.RecordBatch]) -> int:
        return sum(batch.num_rows for batch in batches)


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


@dataclass(frozen=True)
class Interloper:
    """Returns texts as they are; commits something to a table the first times that it is called."""

    uri: str
    deed: str
    log: str
    times: int = 1

    def __call__(self, text: str) -> str:
        for number in range(self.times if text == "a" else 0):
            if _is_first(f"{self.log}.{number}"):
                self._commit()
                break
        return text

    def has_come(self) -> bool:
        """Return whether it has committed."""
        return Path(f"{self.log}.0").exists()

    def _commit(self) -> None:
        table = pennon.dataset(self.uri)
        row = pa.table({"key": ["x"], "value": pa.array([0], pa.int64())})
        verb, _, rest = self.deed.partition(" ")
        if verb == "delete":
            table.delete(rest)
        elif verb == "update":
            table.update({"value": "value + 100"}, "key = 'a'")
        elif verb == "compact":
            table.optimize.compact_files()
        else:
            pennon.write_dataset(row, self.uri, mode="append" if verb == "append" else "overwrite")


@dataclass(frozen=True)
class AppendsMeanwhile:
    """Returns texts as they are; appends a row to a table when it is first called with the text "a"."""

    uri: str
    row: dict[str, Any]
    log: str

    def __call__(self, text: str) -> str:
        if text == "a" and _is_first(self.log):
            schema = pennon.dataset(self.uri).schema
            pennon.write_dataset(pa.Table.from_pylist([self.row], schema), self.uri, mode="append")
        return text


@dataclass(frozen=True)
class Troubled:
    """Does what a task does, and then gets into trouble: its files are written, and nobody hears of it.

    ``deed``: "fails" (each first attempt), "kills" (its executor, once ``after`` tasks are done), "doubles" (each task
    is done by two attempts side by side, of which one counts, as Spark's speculation has it).
    """

    task: Any
    deed: str
    folder: str
    after: int = 1

    def run(self, work: Any) -> Any:
        if self.deed == "doubles":
            return self._doubled(work)
        answer = self.task.run(work)
        context = TaskContext.get()
        is_first_attempt = context is not None and context.attemptNumber() == 0
        if self.deed == "fails" and is_first_attempt:
            text = "the first attempt fails on purpose"
            raise OSError(text)
        if self.deed == "kills" and self._is_due():
            os.kill(_executor(), signal.SIGKILL)
            _wait_to_be_killed()
        return answer

    def to_bytes(self, answer: Any) -> Any:
        return self.task.to_bytes(answer)

    def from_bytes(self, message: bytes) -> Any:
        return self.task.from_bytes(message)

    def _doubled(self, work: Any) -> Any:
        rows = work if isinstance(work, int) else list(work)
        given = [rows if isinstance(rows, int) else iter(rows) for _ in range(2)]
        with ThreadPoolExecutor(2) as attempts:
            return [*attempts.map(self.task.run, given)][1]

    def _is_due(self) -> bool:
        Path(self.folder, f"done-{uuid4()}").touch()
        is_late = len(list(Path(self.folder).glob("done-*"))) >= self.after
        return is_late and _is_first(f"{self.folder}/killed")


def _wait_to_be_killed() -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        time.sleep(0.05)


def _executor() -> int:
    """Return the process of the executor whose worker this is."""
    pid = os.getppid()
    while b"CoarseGrainedExecutorBackend" not in Path(f"/proc/{pid}/cmdline").read_bytes():
        stat = Path(f"/proc/{pid}/stat").read_text()
        pid = int(stat.rpartition(")")[2].split()[1])
    return pid


RUNNERS: Final = (
    ("changes.backfill", "run_tasks"),
    ("changes.backfill", "run_on_rows"),
    ("changes.change_operations", "run_tasks"),
    ("changes.cluster", "run_on_blocks"),
    ("changes.cluster", "run_tasks"),
    ("changes.partial_overwrite", "run_on_rows"),
    ("changes.row_changes", "run_on_rows"),
    ("changes.rows_found", "run_tasks"),
    ("table.column_methods", "run_tasks"),
    ("table.functions", "run_on_rows"),
    ("table.index_methods", "run_on_blocks"),
    ("table.index_methods", "run_tasks"),
    ("table.optimize_builder", "run_tasks"),
)


@contextmanager
def trouble(deed: str, folder: Path, after: int = 1) -> Iterator[None]:
    """Let tasks of all operations get into trouble."""
    folder.mkdir()
    with ExitStack() as stack:
        for place, name in RUNNERS:
            module = import_module(f"pennon.spark.{place}")
            inner = getattr(module, name)
            stack.enter_context(patch.object(module, name, _troubled(inner, deed, folder, after)))
        yield


def _troubled(inner: Callable[..., Any], deed: str, folder: Path, after: int) -> Callable[..., Any]:
    def run(where: Any, task: Any, *others: Any, **named: Any) -> Any:
        return inner(where, Troubled(task, deed, str(folder), after), *others, **named)

    return run


# --- a sink of streams that fails ------------------------------------------------------------------


class FailingSink(LanceDataSource):
    """The sink of streams, whose commits fail as a script says: a file with a word for each commit to come."""

    @classmethod
    def name(cls) -> str:
        return "failing_lance"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        options = {key: value for key, value in self.options.items() if key != "script"}
        writer = stream_writer(options, schema, overwrite=overwrite)
        return FailingWriter(writer, self.options["script"])


class FailingWriter(DataSourceStreamArrowWriter):
    """Passes on to another writer, and fails before or behind its commit."""

    def __init__(self, inner: LanceStreamWriter, script: str) -> None:
        self.inner, self.script = inner, script

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        found = self.inner.write(iterator)
        if self._next(("task",)) == "task":
            os._exit(9)
        return found

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        word = self._next(("before", "after", "gone before", "gone after", "fine"))
        if word.endswith("before"):
            self._fail(word)
        self.inner.commit(messages, batchId)
        if word.endswith("after"):
            self._fail(word)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        self.inner.abort(messages, batchId)

    def _next(self, known: Sequence[str]) -> str:
        """Take the first word of the script, if it is one of these."""
        path = Path(self.script)
        words = path.read_text().splitlines() if path.exists() else []
        if not words or words[0] not in known:
            return ""
        path.write_text("\n".join(words[1:]))
        return words[0]

    def _fail(self, word: str) -> None:
        if word.startswith("gone"):
            os._exit(9)
        message = f"the sink fails: {word} its commit"
        raise OSError(message)
