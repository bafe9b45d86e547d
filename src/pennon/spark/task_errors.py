"""Errors of our own that tasks raise: Spark hands them over as text, and callers want them typed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.errors import PySparkException

from pennon.errors import LanceError

_OURS: Final = re.compile(r"pennon\.errors\.(\w+): ([^\n]+)")


@contextmanager
def typed_errors(*kinds: type[LanceError]) -> Iterator[None]:
    """Raise errors of these kinds that tasks raised as what they are; others stay Spark's."""
    try:
        yield
    except PySparkException as error:
        known = {kind.__name__: kind for kind in kinds}
        found = _OURS.search(str(error))
        if found is None or found.group(1) not in known:
            raise
        raise known[found.group(1)](found.group(2)) from error
