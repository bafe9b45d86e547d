"""A daemon that forks Spark's Python workers with Pennon loaded: each begins its first task at once.

Spark starts one daemon on each executor, and the daemon forks the workers.  Spark's own daemon loads
nothing, so that every worker loads pandas, pyarrow and Pennon anew, and again after each failed task.
Set Spark's ``spark.python.daemon.module`` to this module before the session starts::

    SparkSession.builder.config("spark.python.daemon.module", "pennon.spark.worker_daemon")

The workers also share the memory of what the daemon loaded.
"""

from __future__ import annotations

import gc
import importlib
from typing import Final

from pyspark.daemon import manager

LOADED: Final = (
    "pandas",
    "pyspark.worker",
    "pennon.spark.run_tasks",
    "pennon.spark.source.data_source",
    "pennon.spark.source.scan_task",
    "pennon.spark.source.writer",
)
"""The modules that the daemon loads before it forks a worker."""


def main() -> None:
    """Load the modules, and serve Spark until it ends."""
    for name in LOADED:
        importlib.import_module(name)
    # A worker collects garbage after each task: what is loaded here is left out of it, and stays shared.
    gc.freeze()
    manager()


if __name__ == "__main__":
    main()
