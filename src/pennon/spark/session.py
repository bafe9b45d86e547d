"""A local Spark session whose workers are this Python."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import SparkSession

DEFAULTS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
    # Over TCP each Python task waits 40 ms for an acknowledgement of its first bytes.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.daemon.module": "pennon.spark.worker_daemon",
}

AUTO_MERGE: Final = (
    "spark.pennon.schema.autoMerge.enabled",
    "spark.databricks.delta.schema.autoMerge.enabled",
)
"""Our setting, and Delta's: any of them lets all writes and merges of a session add columns."""


def merges_schemas(spark: SparkSession) -> bool:
    """Return whether writes and merges of a session let tables grow without being asked one by one."""
    return any(str(spark.conf.get(name, "false")).lower() == "true" for name in AUTO_MERGE)


def is_case_sensitive(spark: SparkSession) -> bool:
    """Return whether names that differ in case alone are two names in a session."""
    return str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"


def local_session(
    master: str = "local[*]", app_name: str = "pennon", conf: Mapping[str, str] | None = None
) -> SparkSession:
    """Start (or get) a session on this machine; ``sc://host`` connects to one elsewhere.

    Spark starts its workers with PYSPARK_PYTHON, else with whatever ``python3`` is first on PATH,
    which need not have Pennon installed; so it is set to this interpreter where it is not set.

    >>> pennon.spark.local_session("local[2,3]").version == spark.version
    True
    """
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        os.environ.setdefault(name, sys.executable)
    if master.startswith("sc://"):
        return SparkSession.builder.remote(master).getOrCreate()
    builder = SparkSession.builder.master(master).appName(app_name)
    for key, value in {**DEFAULTS, **(conf or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def activate(spark: SparkSession) -> None:
    """Make a session the active one of this thread, so that ``df.write.format("lance")`` works in it.

    Spark knows data sources written in Python by the active session, and a thread that Python started has
    none: ``DATA_SOURCE_NOT_FOUND``.  Reads and `pennon.spark.write` need it nowhere, and Connect has no such
    thing.

    >>> pennon.spark.activate(spark)
    >>> table.toDF().write.format("lance").mode("append").save(path)
    >>> table.count()
    6
    """
    java: Any = getattr(spark, "_jvm", None)
    if java is not None:
        java.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)  # noqa: SLF001 - PySpark has no other way
