"""Doing an operation again when another writer came in between.

What a commit cannot mend by itself, a row that two writers changed above all, is a
`RetryableConflict`: on the newest version the operation finds other rows, and may succeed.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final, TypeVar

from pennon.core.loggers import COMMIT
from pennon.core.telemetry import OPERATION_RETRIES, count
from pennon.errors import ArgumentError, RetryableConflict
from pennon.scan.snapshot import Snapshot
from pennon.table.versions import read_manifest

R = TypeVar("R")

CONFLICT_RETRIES: Final = 10
RETRY_TIMEOUT: Final = timedelta(seconds=30)
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 2.0


def with_retries(
    execute: Callable[[Snapshot], R],
    snapshot: Snapshot,
    conflict_retries: int = CONFLICT_RETRIES,
    retry_timeout: timedelta = RETRY_TIMEOUT,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> R:
    """Return what ``execute`` gives for a version: the snapshot's, and after conflicts the newest.

    There are ``1 + conflict_retries`` attempts, and none begins once ``retry_timeout`` has passed,
    but the first always does.  Raises the `RetryableConflict` of the last one.
    """
    if conflict_retries < 0:
        message = f"conflict_retries must be 0 or more, got {conflict_retries}"
        raise ArgumentError(message)
    deadline = clock() + retry_timeout.total_seconds()
    for attempt in range(conflict_retries + 1):
        try:
            return execute(snapshot)
        except RetryableConflict as error:
            last = error
        longest = min(_FIRST_PAUSE * 2**attempt, _LONGEST_PAUSE)
        pause = random.uniform(0, longest)  # noqa: S311 - writers that meet are to drift apart
        if attempt == conflict_retries or clock() + pause > deadline:
            break
        COMMIT.info(
            "%s: attempt %d met a conflict, again: %s", snapshot.store.uri, attempt + 1, last
        )
        count(OPERATION_RETRIES)
        sleep(pause)
        snapshot = newest(snapshot)
    last.message += f" (given up after {attempt + 1} attempts)"
    raise last


def newest(snapshot: Snapshot) -> Snapshot:
    """Return the newest version of the same table; caches are shared."""
    return snapshot.at(read_manifest(snapshot.store))
