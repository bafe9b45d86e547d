"""Pennon's errors as those of the package ``lance_namespace``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from pennon.catalog.name_errors import NoNamespaceError
from pennon.catalog.rest_client import RestError
from pennon.errors import (
    AlreadyExistsError,
    ArgumentError,
    CommitError,
    LanceError,
    NotFoundError,
    UnsupportedError,
)
from pennon.namespace.models import from_error_code

UNSUPPORTED: Final = 0
NAMESPACE_NOT_FOUND: Final = 1
NAMESPACE_EXISTS: Final = 2
NAMESPACE_NOT_EMPTY: Final = 3
TABLE_NOT_FOUND: Final = 4
TABLE_EXISTS: Final = 5
INVALID: Final = 13
CONCURRENT: Final = 14
INTERNAL: Final = 18
_WORDS: Final = {
    UNSUPPORTED: "Not supported",
    NAMESPACE_NOT_FOUND: "Namespace not found",
    NAMESPACE_EXISTS: "Namespace already exists",
    NAMESPACE_NOT_EMPTY: "Namespace not empty",
    TABLE_NOT_FOUND: "Table not found",
    TABLE_EXISTS: "Table already exists",
    INVALID: "Invalid input",
    CONCURRENT: "Concurrent modification",
}


def failure(code: int, message: str) -> Exception:
    """Return the error of a code of the specification."""
    words = _WORDS.get(code)
    found: Exception = from_error_code(code, f"{words}: {message}" if words else message)
    return found


@contextmanager
def as_failures(*, about_namespace: bool = False) -> Iterator[None]:
    """Raise the package's errors in place of Pennon's; of an operation on tables, or on namespaces."""
    try:
        yield
    except LanceError as error:
        raise failure(_code_of(error, about_namespace=about_namespace), str(error)) from error
    except RestError as error:
        raise failure(error.code, str(error)) from None


def _code_of(error: LanceError, *, about_namespace: bool) -> int:
    if isinstance(error, NoNamespaceError):
        return NAMESPACE_NOT_FOUND
    rules: list[tuple[Any, int]] = [
        (NotFoundError, NAMESPACE_NOT_FOUND if about_namespace else TABLE_NOT_FOUND),
        (AlreadyExistsError, NAMESPACE_EXISTS if about_namespace else TABLE_EXISTS),
        (UnsupportedError, UNSUPPORTED),
        (ArgumentError, INVALID),
        (CommitError, CONCURRENT),
    ]
    return next((code for kind, code in rules if isinstance(error, kind)), INTERNAL)
