"""Run tasks on Spark's executors: numbers, rows or blocks in, bytes out, one message a partition.

An operation on a table is a plan, tasks that are known by their numbers, and one commit
(`pennon.ops.run_tasks`).  Spark runs the tasks by ``mapInArrow``, which classic sessions, clusters and
Connect have in common::

    driver      range(count), each number a partition; the task, pickled, in the plan
    executors   number  ->  number, message: a long and a binary column
    driver      collect: one row of each partition

Spark may run a task more than once: again where an executor died, beside itself where it was slow.
It hands over the row of one attempt of each partition, whichever is done first.  So a task writes files
under names that nobody else chooses, and those of other attempts are files that no version names.
"""

from __future__ import annotations

import re
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar
from uuid import uuid4

import pyarrow as pa

from pennon.io.durability import sync_now
from pennon.spark.inference import planned
from pennon.spark.placement import placed_by_id
from pennon.spark.telemetry import measured_task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

W_contra = TypeVar("W_contra", contravariant=True)
W = TypeVar("W")
R = TypeVar("R")
Block: TypeAlias = tuple[int, bytes]
"""Rows as bytes, with a number that says where they belong."""
Progress: TypeAlias = Callable[[int, int], object]
"""Is told how many tasks are done, of how many; not of each, and not from the caller's thread."""

POLL_SECONDS: Final = 0.5
MESSAGES: Final = "number long, message binary"
"""What tasks hand over, in Spark's words: workers load no PySpark for it."""
_PLAIN: Final = re.compile(r"\w+")
_TARGET: Final = "target"
_GROUP: Final = "spark.jobGroup.id"


class Task(Protocol[W_contra, R]):
    """Work that an executor does on a number, the rows of a partition or blocks; it pickles."""

    def run(self, work: W_contra, /) -> R:
        """Do the work, and return the answer."""

    def to_bytes(self, answer: R, /) -> bytes:
        """Return an answer as the bytes that come to the driver."""

    def from_bytes(self, message: bytes, /) -> R:
        """Return the answer in bytes; raises FormatError."""


def message_of(task: Task[W, Any], work: W) -> bytes:
    """Do work, and return the answer as bytes; the files that it names are synced, if they ever are."""
    message = task.to_bytes(task.run(work))
    sync_now()
    return message


class SplitTask(Protocol):
    """Work of a number that becomes blocks; it pickles."""

    def run(self, number: int, /) -> Iterator[Block]:
        """Yield the blocks."""


@dataclass(frozen=True, slots=True)
class RunNumbers:
    """``mapInArrow`` function of a task: each incoming row is a number."""

    task: Task[int, Any]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Do the pieces that the incoming batches name."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                with measured_task(type(self.task).__name__):
                    message = message_of(self.task, number)
                yield message_batch(number, message)


@dataclass(frozen=True, slots=True)
class RunBlocks:
    """``mapInArrow`` function of a task that makes blocks: each incoming row is a number."""

    task: SplitTask

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row for each block."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for block_number, block in self.task.run(number):
                    yield message_batch(block_number, block)


@dataclass(frozen=True, slots=True)
class RunRows:
    """``mapInArrow`` function of a task that takes rows; ``names``: what their columns are called, see `named`."""

    task: Task[Iterator[pa.RecordBatch], Any]
    names: tuple[str, ...] | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Do what is to be done with the rows of a partition."""
        names = self.names
        if names is not None:
            batches = (batch.rename_columns(list(names)) for batch in batches)
        with measured_task(type(self.task).__name__):
            message = message_of(self.task, batches)
        yield message_batch(0, message)


@dataclass(frozen=True, slots=True)
class RunGatheredBlocks:
    """``mapInArrow`` function of a task that takes the blocks of a partition."""

    task: Task[Iterator[Block], Any]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Do what is to be done with the blocks of a partition."""
        with measured_task(type(self.task).__name__):
            message = message_of(self.task, _blocks(batches))
        yield message_batch(0, message)


def named(rows: DataFrame) -> tuple[DataFrame, tuple[str, ...] | None]:
    """Return a DataFrame as ``mapInArrow`` can take it, and the names of its columns if they had to change.

    PySpark asks for each column by its name without quotes, so a backtick or a star in one ends the call.
    """
    names = tuple(rows.columns)
    if all(_PLAIN.fullmatch(name) for name in names):
        return rows, None
    return rows.toDF(*(f"__pennon_c{at}" for at in range(len(names)))), names


def run_tasks(
    spark: SparkSession, task: Task[int, R], count: int, *, progress: Progress | None = None
) -> list[R]:
    """Return ``[task.run(number) for number in range(count)]``, worked on by the executors."""
    if not count:
        return []
    numbers = spark.range(0, count, 1, count).mapInArrow(RunNumbers(task), MESSAGES)
    with _watched(spark, count, progress):
        found = {row.number: bytes(row.message) for row in numbers.collect()}
    return [task.from_bytes(found[number]) for number in range(count)]


def run_on_rows(
    rows: DataFrame, task: Task[Iterator[pa.RecordBatch], R], *, joins: bool = False
) -> list[R]:
    """Return the answer of a task for each partition of a DataFrame.

    ``joins``: the rows are those of a join of ours (`pennon.spark.inference`).
    """
    plain, names = named(rows)
    messages = plain.mapInArrow(RunRows(task, names), MESSAGES)
    with planned(messages, len(plain.columns) if joins else 0):
        found = messages.collect()
    return [task.from_bytes(bytes(row.message)) for row in found]


def run_on_blocks(
    blocks: DataFrame,
    task: Task[Iterator[Block], R],
    *,
    count: int = 0,
    progress: Progress | None = None,
) -> list[R]:
    """Return the answer of a task for each partition of `shuffled_blocks`.

    ``count`` is the number of all Spark tasks, with those that make the blocks; ``progress`` is told how many are done.
    """
    with _watched(blocks.sparkSession, count, progress):
        found = blocks.mapInArrow(RunGatheredBlocks(task), MESSAGES).collect()
    return [task.from_bytes(bytes(row.message)) for row in found]


def shuffled_blocks(
    spark: SparkSession, task: SplitTask, count: int, *, targets: int, per_target: int
) -> DataFrame:
    """Return the blocks of all pieces as rows of `MESSAGES`, in ``targets`` partitions, each in the order of its blocks' numbers.

    Each partition has the blocks of so many numbers.  Spark carries them: they are spilled to disk, and made
    again where an executor died.
    """
    blocks = spark.range(0, count, 1, count).mapInArrow(RunBlocks(task), MESSAGES)
    placed = blocks.selectExpr("*", f"CAST(number div {per_target} AS int) AS {_TARGET}")
    return placed_by_id(placed, targets, _TARGET).sortWithinPartitions("number")


def _blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[Block]:
    """Yield the blocks in the rows of a partition."""
    for batch in batches:
        for row in range(batch.num_rows):
            yield batch.column(0)[row].as_py(), batch.column(1)[row].as_py()


def message_batch(number: int, message: bytes) -> pa.RecordBatch:
    """Return a row of `MESSAGES`."""
    # `pa.array` would import pandas: 0.3 seconds of a fresh worker, which has no other use for it.
    ends = pa.py_buffer(struct.pack("=ii", 0, len(message)))
    columns: list[Any] = [
        pa.Array.from_buffers(pa.int64(), 1, [None, pa.py_buffer(struct.pack("=q", number))]),
        pa.Array.from_buffers(pa.binary(), 1, [None, ends, pa.py_buffer(message)]),
    ]
    return pa.RecordBatch.from_arrays(columns, ["number", "message"])


# --- progress -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stages:
    """Pieces of work that come one after the other, and are told of as one; of how many tasks each is."""

    progress: Progress | None
    tasks: tuple[int, ...]

    def told(self, number: int) -> Progress | None:
        """Return what is told of the piece of that number, which may count its work in another way."""
        progress, before, mine = self.progress, sum(self.tasks[:number]), self.tasks[number]
        if progress is None:
            return None
        return lambda done, of: progress(before + done * mine // max(of, 1), sum(self.tasks))


def _watched(
    spark: SparkSession, count: int, progress: Progress | None
) -> AbstractContextManager[None]:
    """Return what tells a callback how many tasks of a job are done, while it runs."""
    if progress is None:
        return nullcontext()
    if getattr(spark, "sparkContext", None) is None:
        return _watched_over_connect(spark, count, progress)
    return _watched_in_place(spark, count, progress)


@contextmanager
def _watched_over_connect(spark: SparkSession, count: int, progress: Progress) -> Iterator[None]:
    """The server tells it; of all jobs of a session, that of this thread is ours."""
    mine = threading.get_ident()

    def tell(stages: Any, *_: Any, **__: Any) -> None:
        if threading.get_ident() == mine:
            done = sum(stage.num_completed_tasks for stage in stages or ())
            progress(min(done, count), count)

    spark.registerProgressHandler(tell)  # type: ignore[arg-type]
    try:
        yield
    finally:
        spark.removeProgressHandler(tell)  # type: ignore[arg-type]
    progress(count, count)


@contextmanager
def _watched_in_place(spark: SparkSession, count: int, progress: Progress) -> Iterator[None]:
    """The driver is asked, from another thread, for the jobs of a group that has this one alone."""
    context = spark.sparkContext
    tracker, ended = context.statusTracker(), threading.Event()
    before, group = context.getLocalProperty(_GROUP), f"pennon {uuid4()}"

    def watch() -> None:
        while not ended.wait(POLL_SECONDS):
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
            stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
            progress(min(sum(stage.numCompletedTasks for stage in stages if stage), count), count)

    watcher = threading.Thread(target=watch, name="pennon progress", daemon=True)
    context.setLocalProperty(_GROUP, group)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        context.setLocalProperty(_GROUP, before)  # type: ignore[arg-type]
    progress(count, count)
