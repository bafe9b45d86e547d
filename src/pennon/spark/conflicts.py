"""Operations that are done again where another writer stood in the way of their commit.

What a commit can mend by itself, other rows of the same fragments above all, costs no second job.  For
anything else the operation is planned and run anew on the newest version, a few times: then the
`RetryableConflict` goes to the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Final, TypeVar

from pennon.errors import ArgumentError
from pennon.ops.retry import with_retries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pennon.scan.snapshot import Snapshot

R = TypeVar("R")

RETRIES: Final = "spark.pennon.conflictRetries"
"""The session's setting: how often a job is run again.  0: not unasked."""
DEFAULT_RETRIES: Final = 3
_HOWEVER_LONG: Final = timedelta(days=365)


def with_conflict_retries(
    spark: SparkSession, execute: Callable[[Snapshot], R], snapshot: Snapshot
) -> R:
    """Return what ``execute`` gives for a version, and after conflicts for the newest one.

    Raises the `RetryableConflict` of the last attempt, ArgumentError for a setting that is no number.
    """
    text = str(spark.conf.get(RETRIES, str(DEFAULT_RETRIES)))
    if not text.isdecimal():
        message = f"{RETRIES} is a number, 0 or more, not {text!r}"
        raise ArgumentError(message)
    return with_retries(execute, snapshot, int(text), _HOWEVER_LONG)
