"""Errors that say whose fault it is, and where.

======================  =====================================================================
the bytes'              `FormatError` (they break the format), `TooLargeError` (they ask for
                        more than a reader may hold)
ours                    `UnsupportedError` (valid, but not read or not written by Pennon)
the caller's            `ArgumentError`, `SchemaMismatchError`, `InvalidSchemaError`,
                        `NoDataError`, `OutOfRangeError`, `MatchError`, `NotFoundError`,
                        `AlreadyExistsError`
the store's             `StoreError`
another writer's        `CommitError` and the classes below it
======================  =====================================================================

Every class is also the builtin that pylance's users catch today (`ValueError`, `OSError`, ...).
Errors pickle, because Spark carries them from executors to the driver.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self


def printable(text: str) -> str:
    """Return text whose control characters are escaped, as `repr` does it.

    Names come from files and tables.  As they are, they could clear a terminal, turn its text around,
    or make a second line of a log.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


@dataclass(frozen=True, slots=True)
class Breadcrumb:
    """The place in a file where something was wrong; unknown parts are None."""

    file: str | None = None
    column: str | None = None
    page: int | None = None
    byte_range: tuple[int, int] | None = None

    def __str__(self) -> str:
        """Return e.g. ``column 'a', page 3, bytes 128..192, file data/x.lance``."""
        parts = []
        if self.column is not None:
            parts.append(f"column {self.column!r}")
        if self.page is not None:
            parts.append(f"page {self.page}")
        if self.byte_range is not None:
            parts.append(f"bytes {self.byte_range[0]}..{self.byte_range[1]}")
        if self.file is not None:
            parts.append(f"file {self.file}")
        return ", ".join(parts)


class LanceError(Exception):
    """Base of every error that Pennon raises on purpose."""

    def __init__(self, message: str, *, where: Breadcrumb | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where or Breadcrumb()

    def located(self, where: Breadcrumb) -> Self:
        """Fill in the parts of the breadcrumb that are not known yet, and return the error itself.

        The innermost frame knows the bytes, the outer ones the page, the column and the file: each
        adds what it knows while the error passes through.
        """
        known = {f.name: getattr(where, f.name) for f in fields(where)}
        mine = {k: v for k, v in known.items() if getattr(self.where, k) is None}
        self.where = replace(self.where, **mine)
        return self

    def __str__(self) -> str:
        """Return the message and, in brackets, the place, both without control characters."""
        place = str(self.where)
        return printable(f"{self.message} [{place}]" if place else self.message)


class FormatError(LanceError, ValueError, OSError):
    """The bytes break the format (pylance raises OSError here)."""


class TooLargeError(FormatError):
    """A length in the file asks for more memory than the file can justify."""


class UnsupportedError(LanceError, NotImplementedError):
    """Valid, but Pennon does not read or write it; the message says which version or tool does."""


class ArgumentError(LanceError, ValueError):
    """The caller asked for something that makes no sense; the message says what would."""


class UnknownOptionError(ArgumentError, TypeError):
    """An option that there is not; the message has the nearest that there is (Python raises TypeError here)."""


class ExpressionError(ArgumentError, OSError):
    """SQL that is none, or not for these columns (pylance raises ValueError here, or OSError)."""


class SchemaMismatchError(ArgumentError, OSError):
    """Data does not fit the table's schema (pylance raises OSError here)."""


class InvalidSchemaError(ArgumentError, OSError):
    """A schema that no table can have (pylance raises OSError here)."""


class NoDataError(ArgumentError, OSError):
    """There is nothing to write (pylance raises OSError here)."""


class OutOfRangeError(ArgumentError, OSError):
    """A row that the table does not have was asked for (pylance raises OSError here)."""


class MatchError(ArgumentError, OSError):
    """Rows of a merge match that must not, or in more than one way (pylance raises OSError here)."""


class NoColumnError(ArgumentError, KeyError):
    """A column that the table does not have (pylance raises KeyError where an index is made)."""


class ColumnTypeError(ArgumentError, TypeError):
    """A column of a type that can not have an index of that kind (pylance raises TypeError here)."""


class NoSuchIndexError(ArgumentError, RuntimeError):
    """An index of vectors that there is not: of such codes, or of such a column (pylance raises RuntimeError here)."""


class NoTokenizerError(UnsupportedError, ArgumentError, OSError):
    """A tokenizer that Pennon does not have (pylance raises ValueError without its model, OSError for a bad one)."""


class NotFoundError(LanceError, FileNotFoundError, ValueError):
    """A table, version, fragment or file is not there (pylance raises ValueError for tables)."""


class IndexNotFoundError(NotFoundError, RuntimeError, KeyError):
    """There is no index of that name (pylance raises RuntimeError or KeyError here)."""


class AlreadyExistsError(LanceError, FileExistsError):
    """Create-if-absent found something under the name."""


class IndexExistsError(AlreadyExistsError, RuntimeError):
    """There is an index of that name (pylance raises RuntimeError here)."""


class UntrustedPathError(ArgumentError, OSError):
    """A table names files outside of its root, in a place that the caller did not say to trust."""


class InvalidRefError(ArgumentError, OSError):
    """A name that no tag or branch can have (pylance raises OSError here)."""


class RefExistsError(AlreadyExistsError, ValueError):
    """There is a tag or branch of that name (pylance raises ValueError here)."""


class TaggedVersionsError(ArgumentError, OSError):
    """Clean-up would take away versions that have tags."""


class StoreError(LanceError, OSError):
    """The object store or file system failed."""


class CannotListError(UnsupportedError, StoreError):
    """The store does not tell which objects it has: a plain web server."""


class CommitError(LanceError, OSError):
    """A commit did not happen."""


class AlreadyCommittedError(CommitError):
    """An application has committed this version of its work, or a later one: the table has these rows already."""


class ConflictError(CommitError):
    """Another writer's transaction, held in ``other``, stands in the way.

    ``other`` is that transaction serialized (transaction.proto), or None when it could not be read.
    ``retryable`` tells whether running the whole operation again can succeed.
    """

    retryable = True

    def __init__(
        self,
        message: str = "",
        retryable: bool | None = None,
        *,
        where: Breadcrumb | None = None,
        other: bytes | None = None,
    ) -> None:
        super().__init__(message, where=where)
        self.other = other
        if retryable is not None:
            self.retryable = retryable


class RetryableConflict(ConflictError):  # noqa: N818 - the field's own word
    """Running the whole operation again on the newest version can succeed."""

    retryable = True


class IncompatibleConflict(ConflictError):  # noqa: N818 - the field's own word
    """The operation no longer makes sense on the newest version."""

    retryable = False


class CommitStateUnknown(CommitError):  # noqa: N818 - the field's own word
    """The store did not say whether the commit landed; nothing was deleted."""


class InterpreterEndError(LanceError, RuntimeError):
    """A table was to be opened, read or changed when Python had ended so far that it imports nothing (pylance panics)."""


class DataLossWarning(UserWarning):
    """The chosen file version cannot hold what was written; the message counts what is lost."""


class UnreadRowsWarning(UserWarning):
    """Rows that belong to a table and that Pennon does not read."""
