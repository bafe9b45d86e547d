"""Errors of obstore as Pennon's errors, without any key in their texts.

An obstore error quotes the URL of its request, and a signed URL is a credential.  So messages lose
the queries of their URLs and every value of the storage options, and the original error is not
chained to ours.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TypeVar

from pennon.core.fast_dataclass import dataclass
from pennon.core.telemetry import RETRYABLE, THROTTLES, count
from pennon.errors import (
    AlreadyExistsError,
    Breadcrumb,
    LanceError,
    NotFoundError,
    StoreError,
    UnsupportedError,
)
from pennon.io.retry_reads import BrokenAnswerError

T = TypeVar("T")
_URL_SECRETS = re.compile(r"(?<=://)[^/@\s]*@|\?[^\s)\"']*")
_XML_CODE = re.compile(r"<Code>([^<]+)</Code>")
_XML_MESSAGE = re.compile(r"<Message>([^<]+)</Message>")
_RETRIED = re.compile(r"\b(408|429|5\d\d) [A-Z]")
_NO_HTTP = "builder error"
"""All that the client says where an endpoint is one of http and the options do not allow it."""
_MESSAGE_LENGTH = 500


@dataclass(frozen=True, slots=True)
class Calls:
    """Makes calls to obstore, and translates their failures; ``secrets`` are masked.

    What obstore gave in ``process`` works there alone: an upload does not go on after a fork.
    """

    secrets: tuple[str, ...] = ()
    process: int = field(default_factory=os.getpid)

    def call(self, path: str, action: Callable[[], T]) -> T:
        """Return ``action()``; raises one of Pennon's errors, located at ``path``."""
        if self.process != os.getpid():
            message = "this was begun before a fork, and goes on only where it was begun"
            raise StoreError(message, where=Breadcrumb(path))
        from obstore.exceptions import BaseError  # noqa: PLC0415 - saves obstore

        try:
            return action()
        except LanceError:
            raise
        except (BaseError, OSError, ValueError, NotImplementedError) as error:
            failure = translate(error, path, self.secrets)
        # Outside of the handler, so that the original is not the context of ours.
        raise failure


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
    _count_refusal(str(error))
    unsupported = kind == "NotSupportedError" or isinstance(error, NotImplementedError)
    ours = UnsupportedError if unsupported else StoreError
    return ours(masked(str(error), secrets), where=place)


def _count_refusal(text: str) -> None:
    """Count a status that was answered until the retries were used up."""
    status = _RETRIED.search(text)
    if status is not None:
        count(RETRYABLE, status=status.group(1))
        if status.group(1) in {"429", "503"}:
            count(THROTTLES, status=status.group(1))


def _broke_off(text: str) -> bool:
    """Tell whether the body of an answer broke off: obstore does not say it by a type.

    It says how often it asked again, where it did or could have.
    """
    return "HttpError {" in text and "RetryError" not in text


def masked(text: str, secrets: Sequence[str]) -> str:
    """Return the first line of a message without what must stay secret.

    What a store says in XML behind it stays, as its code and message.
    """
    said = _XML_CODE.search(text), _XML_MESSAGE.search(text)
    text = text.split("\n", 1)[0].partition("<?xml")[0].partition("<Error>")[0].rstrip()
    text = " ".join([text, *(found.group(1) for found in said if found is not None)])
    if _NO_HTTP in text:
        text = f"{text}; an endpoint of http needs the storage option allow_http='true'"
    text = _URL_SECRETS.sub("", text)
    for secret in secrets:
        text = text.replace(secret, "***")
    return text[:_MESSAGE_LENGTH]
