"""What the operating system says, in Pennon's own errors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from pennon.errors import (
    AlreadyExistsError,
    Breadcrumb,
    LanceError,
    NotFoundError,
    StoreError,
)


@contextmanager
def os_errors(verb: str, path: str) -> Iterator[None]:
    """Turn every OSError inside into one of Pennon's; ``path`` is what the reader will see."""
    try:
        yield
    except OSError as error:
        if isinstance(error, LanceError):
            raise
        raise translate(error, verb, path) from error


def translate(error: OSError, verb: str, path: str) -> LanceError:
    """Return Pennon's error for one of the system's."""
    place = Breadcrumb(path)
    is_missing = isinstance(error, FileNotFoundError)
    if is_missing or (verb == "open" and isinstance(error, NotADirectoryError)):
        return NotFoundError("there is no such file", where=place)
    if isinstance(error, FileExistsError):
        return AlreadyExistsError("the name is taken", where=place)
    reason = os.strerror(error.errno) if error.errno else str(error)
    return StoreError(f"cannot {verb}: {reason}", where=place)
