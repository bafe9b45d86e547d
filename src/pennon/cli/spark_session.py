"""A Spark session for a command, and Spark's tasks as a bar."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pennon.errors import ArgumentError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


def session(master: str) -> Any:
    """Return a Spark session.  Raises ArgumentError if there is no Spark."""
    try:
        from pennon.spark import local_session  # saves Spark, which may not be installed
    except ImportError as error:
        message = "this needs Spark: pip install 'pennon[spark]'"
        raise ArgumentError(message) from error
    spark = local_session(master, "pennon")
    if not master.startswith("sc://"):
        spark.sparkContext.setLogLevel("ERROR")
    return spark


@contextmanager
def spark_progress(spark: Any, *, quiet: bool) -> Iterator[None]:
    """Show Spark's tasks as a bar on stderr while the block runs, if somebody looks."""
    context = getattr(spark, "_sc", None)  # a Connect session has no context to ask
    if quiet or context is None or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console  # saves rich where nobody looks
    from rich.progress import Progress  # as above

    done = threading.Event()
    with Progress(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("ingesting", total=None)
        watcher = threading.Thread(
            target=_watch, args=(context.statusTracker(), shown, task, done), daemon=True
        )
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()


def _watch(tracker: Any, shown: Progress, task: TaskID, done: threading.Event) -> None:
    """Ask Spark a few times a second how far the running stages are."""
    while not done.wait(0.2):
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        total = sum(stage.numTasks for stage in stages if stage)
        completed = sum(stage.numCompletedTasks for stage in stages if stage)
        if total:
            shown.update(task, total=total, completed=completed)
