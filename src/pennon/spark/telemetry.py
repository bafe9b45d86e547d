"""Measuring of tasks on executors: spans and numbers with Spark's ids, where `pennon.otel` is on."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from typing import Final

import pyarrow as pa

from pennon.core.telemetry import (
    STREAM_LAG,
    TASK_SECONDS,
    TASKS,
    TELEMETRY,
    Work,
    gauge,
    measured,
    measured_rows,
)
from pennon.errors import ArgumentError

SETUP: Final = "PENNON_OTEL_SETUP"
"""The environment variable that names what turns telemetry on in a worker: ``module:function``."""
_METRICS: Final = TASKS, TASK_SECONDS


def measured_task(kind: str) -> AbstractContextManager[None]:
    """Return a block that measures a task of this kind."""
    if not _is_on():
        return nullcontext()
    return measured("pennon.task", _METRICS, {"kind": kind}, **_ids())


def measured_read(kind: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the batches that a task of this kind reads, measured from the first to the last."""
    if not _is_on():
        return batches
    return measured_rows(batches, Work("pennon.task", _METRICS, {"kind": kind}, _ids()))


def note_lag(uri: str, versions: int) -> None:
    """Note how many versions of a table a stream has not reached."""
    if _is_on():
        gauge(STREAM_LAG, versions, table=uri)


def _is_on() -> bool:
    if SETUP in os.environ:
        _set_up(os.environ[SETUP])
    return TELEMETRY.is_on


@cache
def _set_up(place: str) -> None:
    """Call what `SETUP` names, once in a process.  Raises ArgumentError if it is not ``module:function``."""
    module, _, function = place.partition(":")
    if not module or not function:
        message = f"{SETUP} names module:function, such as monitoring:start, not {place!r}"
        raise ArgumentError(message)
    getattr(import_module(module), function)()


def _ids() -> dict[str, int]:
    """Return what Spark calls the task that runs here."""
    loaded = sys.modules.get("pyspark.taskcontext")  # by each worker; its import takes long
    task = None if loaded is None else loaded.TaskContext.get()
    if task is None:
        return {}
    return {
        "spark.stage.id": task.stageId(),
        "spark.partition.id": task.partitionId(),
        "spark.task.attempt.id": task.taskAttemptId(),
        "spark.task.attempt.number": task.attemptNumber(),
    }
