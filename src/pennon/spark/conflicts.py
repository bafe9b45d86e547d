"""Operations that are done again where another writer stood in the way of their commit.

What a commit can mend by itself, other rows of the same fragments above all, costs no second job.  For
anything else the operation is planned and run anew on the newest version, a few times: then the
`RetryableConflict` goes to the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Final, TypeVar

from pennon.errors import AlreadyCommittedError, ArgumentError
from pennon.ops.retry import with_retries
from pennon.spark.types import ROW_ADDRESS, ROW_ID

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pennon.scan.snapshot import Snapshot
    from pennon.table.transaction import AppVersion

R = TypeVar("R")

RETRIES: Final = "spark.pennon.conflictRetries"
"""The session's setting: how often a job is run again.  0: not unasked."""
DEFAULT_RETRIES: Final = 3
_HOWEVER_LONG: Final = timedelta(days=365)


def with_conflict_retries(
    spark: SparkSession,
    execute: Callable[[Snapshot], R],
    snapshot: Snapshot,
    system_columns: Iterable[str] = (),
) -> R:
    """Return what ``execute`` gives for a version, and after conflicts for the newest one.

    ``system_columns`` are those of ``_rowid`` and ``_rowaddr`` that it names: addresses are other rows' in another
    version, so it is done once then.  Raises the `RetryableConflict` of the last attempt, ArgumentError for a setting that is no number.
    """
    text = str(spark.conf.get(RETRIES, str(DEFAULT_RETRIES)))
    if not text.isdecimal():
        message = f"{RETRIES} is a number, 0 or more, not {text!r}"
        raise ArgumentError(message)
    if are_addresses(snapshot, system_columns):
        return execute(snapshot)
    return with_retries(execute, snapshot, int(text), _HOWEVER_LONG)


def once(app: AppVersion | None, snapshot: Snapshot, change: Callable[[], R], nothing: R) -> R:
    """Return what a change gives; ``nothing`` if an application has committed this batch, or a later one."""
    if app is None:
        return change()
    if app.is_in(snapshot.manifest.config):
        return nothing
    try:
        return change()
    except AlreadyCommittedError:
        return nothing


def are_addresses(snapshot: Snapshot, system_columns: Iterable[str]) -> bool:
    """Return whether some of ``_rowid`` and ``_rowaddr`` are addresses: row ids are, unless they are stable."""
    names = set(system_columns)
    return ROW_ADDRESS in names or (ROW_ID in names and not snapshot.manifest.has_stable_row_ids)
