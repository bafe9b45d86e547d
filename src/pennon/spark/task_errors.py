"""Errors that tasks raise, which Spark hands over as text, and jobs that Spark gives up."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from pennon.errors import LanceError

R = TypeVar("R")

_OTHER_ROWS: Final = "stage with indeterminate output"
"""What Spark says where it computed rows again that an executor was lost with, and they were others."""
_ATTEMPTS: Final = 4
_OURS: Final = re.compile(r"pennon\.errors\.(\w+): ([^\n]+)")


@contextmanager
def typed_errors(*kinds: type[LanceError]) -> Iterator[None]:
    """Raise errors of these kinds that tasks raised as what they are; others stay Spark's."""
    try:
        yield
    except Exception as error:  # PySpark's own, or py4j's, as of the broadcast side of a join
        known = {kind.__name__: kind for kind in kinds}
        found = _OURS.search(str(error))
        if found is None or found.group(1) not in known:
            raise
        raise known[found.group(1)](found.group(2)) from error


def begun_anew(job: Callable[[], R]) -> R:
    """Return what a job gives; where Spark gives it up since a source says other rows now, begin anew.

    All rows are computed again then, so that none is lost or doubled; files of the first attempt are orphans.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return job()
        except Exception as error:  # py4j's in classic sessions, PySpark's own over Connect
            if _OTHER_ROWS not in str(error):
                raise
    return job()
