"""What obstore says, in Pennon's own errors, and never with a key in it.

An obstore error quotes the URL of its request, and a signed URL is a credential.  So messages lose
the queries of their URLs and every value of the storage options, and the original error is not
chained to ours.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pennon.errors import (
    AlreadyExistsError,
    Breadcrumb,
    LanceError,
    NotFoundError,
    StoreError,
    UnsupportedError,
)
from pennon.io.patience import BrokenAnswerError

T = TypeVar("T")
_URL_SECRETS = re.compile(r"(?<=://)[^/@\s]*@|\?[^\s)\"']*")
_MESSAGE_LENGTH = 500
_process_of_runtime: list[int] = []


@dataclass(frozen=True, slots=True)
class Calls:
    """Makes calls to obstore, and translates their failures; ``secrets`` are masked."""

    secrets: tuple[str, ...] = ()

    def call(self, path: str, action: Callable[[], T]) -> T:
        """Return ``action()``; raises one of Pennon's errors, located at ``path``."""
        refuse_after_fork()
        from obstore.exceptions import BaseError  # noqa: PLC0415 - loaded when needed

        try:
            return action()
        except LanceError:
            raise
        except (BaseError, OSError, ValueError, NotImplementedError) as error:
            failure = translate(error, path, self.secrets)
        # Outside of the handler, so that the original is not the context of ours.
        raise failure


def refuse_after_fork() -> None:
    """Raise StoreError in a process that was forked from one which had used obstore.

    obstore runs its I/O on threads, and threads do not survive a fork: a call would wait for ever.
    """
    process = os.getpid()
    if not _process_of_runtime:
        _process_of_runtime.append(process)
    if _process_of_runtime[0] != process:
        message = (
            "this process was forked after its parent had used a remote store, and such stores do"
            " not survive a fork; start processes by 'spawn' or 'forkserver'"
        )
        raise StoreError(message)


def translate(error: Exception, path: str, secrets: Sequence[str]) -> LanceError:
    """Return Pennon's error for one of obstore's (or for the builtin that it raises)."""
    place = Breadcrumb(path)
    kind = type(error).__name__
    if kind == "NotFoundError" or isinstance(error, FileNotFoundError):
        return NotFoundError("there is no such object", where=place)
    if kind in {"AlreadyExistsError", "PreconditionError"}:
        return AlreadyExistsError("the name is taken", where=place)
    if kind == "GenericError" and _broke_off(str(error)):
        return BrokenAnswerError(masked(str(error), secrets), where=place)
    unsupported = kind == "NotSupportedError" or isinstance(error, NotImplementedError)
    ours = UnsupportedError if unsupported else StoreError
    return ours(masked(str(error), secrets), where=place)


def _broke_off(text: str) -> bool:
    """Tell whether the body of an answer broke off: obstore does not say it by a type.

    It says how often it asked again, where it did or could have.
    """
    return "HttpError {" in text and "RetryError" not in text


def masked(text: str, secrets: Sequence[str]) -> str:
    """Return the first line of a message without what must stay secret."""
    text = _URL_SECRETS.sub("", text.split("\n", 1)[0])
    for secret in secrets:
        text = text.replace(secret, "***")
    return text[:_MESSAGE_LENGTH]
