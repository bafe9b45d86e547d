"""Planning a query of many columns without Spark's inference of filters.

Spark infers filters from what it knows of the columns (constraints), and for that compares each computed column
with every other: of 100 columns of one expression in the source of a merge, 15 of 19 seconds; of 200, minutes.
What it infers are NULL checks of join keys, which cost little to do without.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SETTING: Final = "spark.sql.constraintPropagation.enabled"
MOST_COLUMNS: Final = 32
"""The number of equal columns for which inference takes less than two seconds."""
_LOCK: Final = threading.Lock()
_WITHOUT: Final[dict[Any, tuple[int, str | None]]] = {}
"""The sessions that infer nothing now: how many queries want it so, and what the setting was (None: not set)."""


@contextmanager
def planned(rows: DataFrame, columns: int) -> Iterator[None]:
    """Plan a query over so many columns, which then may run; the session's setting is what it was soon after.

    A classic session plans it at once.  Over Connect the server plans what it runs, so the setting stays for the
    query: others of the session lack inferred filters meanwhile.
    """
    if columns <= MOST_COLUMNS:
        yield
        return
    spark = rows.sparkSession
    frame: Any = getattr(rows, "_jdf", None)
    if frame is None:
        with _without_inference(spark):
            yield
        return
    with _without_inference(spark):
        frame.queryExecution().executedPlan()
    yield


@contextmanager
def _without_inference(spark: SparkSession) -> Iterator[None]:
    try:
        _begin(spark)
    except Exception:  # noqa: BLE001 - a server may refuse to change settings: then it plans as it does
        yield
        return
    try:
        yield
    finally:
        _end(spark)


def _begin(spark: SparkSession) -> None:
    with _LOCK:
        count, before = _WITHOUT.get(spark, (0, None))
        if not count:
            is_set = spark.conf.get(SETTING, "true") == spark.conf.get(SETTING, "false")
            before = str(spark.conf.get(SETTING)) if is_set else None
            spark.conf.set(SETTING, "false")
        _WITHOUT[spark] = count + 1, before


def _end(spark: SparkSession) -> None:
    with _LOCK:
        count, before = _WITHOUT.pop(spark)
        if count > 1:
            _WITHOUT[spark] = count - 1, before
        elif before is None:
            spark.conf.unset(SETTING)
        else:
            spark.conf.set(SETTING, before)
