"""A Spark session for a command, and Spark's tasks as progress."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pennon.spark
from pennon.errors import ArgumentError
from pennon.ops.bars import Progress, bar


def session(master: str) -> Any:
    """Return a Spark session.  Raises ArgumentError if there is no Spark."""
    try:
        begin = pennon.spark.local_session
    except ImportError as error:
        message = "this needs Spark: pip install 'pennon[spark]'"
        raise ArgumentError(message) from error
    spark = begin(master, "pennon")
    if not master.startswith("sc://"):
        spark.sparkContext.setLogLevel("ERROR")
    return spark


@contextmanager
def spark_progress(spark: Any, what: str) -> Iterator[None]:
    """Show Spark's tasks as progress while the block runs, if somebody looks."""
    context = getattr(spark, "_sc", None)  # a Connect session has no context to ask
    with bar(what) as tell:
        if tell is None or context is None:
            yield
            return
        done = threading.Event()
        arguments = (context.statusTracker(), tell, done)
        watcher = threading.Thread(target=_watch, args=arguments, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()


def _watch(tracker: Any, tell: Progress, done: threading.Event) -> None:
    """Ask Spark a few times a second how far the running stages are."""
    while not done.wait(0.2):
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        total = sum(stage.numTasks for stage in stages if stage)
        completed = sum(stage.numCompletedTasks for stage in stages if stage)
        if total:
            tell(completed, total)
