"""Errors of the operating system as Pennon's errors."""

from __future__ import annotations

import os

from pennon.errors import AlreadyExistsError, Breadcrumb, LanceError, NotFoundError, StoreError


class os_errors:  # noqa: N801 - reads like what contextlib makes, and costs less
    """Turn every OSError inside into one of Pennon's; ``path`` is what the reader will see."""

    __slots__ = ("_path", "_verb")

    def __init__(self, verb: str, path: str) -> None:
        self._verb = verb
        self._path = path

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> None:
        """Raise Pennon's error in place of the system's."""
        if error is None:
            return
        if isinstance(error, OSError) and not isinstance(error, LanceError):
            raise translate(error, self._verb, self._path) from error


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
