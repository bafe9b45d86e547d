"""Transactions: what a commit changed, as a value that other writers can judge.

A transaction says which version it was made on (``read_version``; 0 makes a new table) and one
operation (`pennon.table.operations`).

An application may number its batches.  The commit of a batch says the application and the number in its properties, and
the manifest that it makes keeps them in the table's config, as ``pennon.txn.{application} = {number}``.  So a batch that
is run again is known by one look at the newest manifest, whatever was committed since: every writer takes the config over
from the version before.  No race is left, for a commit builds on the manifest that it looked at.  A restored version has
the config of its time, as it has the rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import field
from typing import Final

from pennon.core.fast_dataclass import dataclass
from pennon.errors import AlreadyCommittedError, ArgumentError, FormatError
from pennon.table.naming import transaction_name
from pennon.table.operations import Operation

_CONFIG: Final = "pennon.txn."
_APP, _VERSION = "pennon.txn.app", "pennon.txn.version"
_MOST_VERSION: Final = 2**63 - 1


def _new_uuid() -> str:
    return str(uuid.uuid4())


@dataclass(frozen=True, slots=True)
class Transaction:
    """One commit, asked for or done."""

    read_version: int
    operation: Operation
    uuid: str = field(default_factory=_new_uuid)
    properties: Mapping[str, str] = field(default_factory=dict)
    tag: str = ""
    unknown: bytes = field(default=b"", repr=False)

    @property
    def file_name(self) -> str:
        """Return the name of the transaction's file."""
        return transaction_name(self.read_version, self.uuid)


def check_uuid(value: str) -> str:
    """Return a transaction's uuid if it can be part of a file name; raises FormatError."""
    try:
        return str(uuid.UUID(value))
    except ValueError as error:
        message = f"{value!r} is no uuid"
        raise FormatError(message) from error


@dataclass(frozen=True, slots=True)
class AppVersion:
    """The number that an application gives to what it commits; later numbers are larger."""

    app: str
    version: int

    def __post_init__(self) -> None:
        """Raise ArgumentError for an application without a name, or a number that is none."""
        if not self.app:
            message = "an application that numbers its commits needs a name"
            raise ArgumentError(message)
        if not 0 <= self.version <= _MOST_VERSION:
            message = f"application {self.app!r}: a commit is numbered from 0 to {_MOST_VERSION}, not {self.version}"
            raise ArgumentError(message)

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> AppVersion | None:
        """Return what the properties of a transaction say; None if they say nothing."""
        app, version = properties.get(_APP), properties.get(_VERSION, "")
        return cls(app, int(version)) if app and version.isdecimal() else None

    def properties(self) -> dict[str, str]:
        """Return the properties of the transaction that commits it."""
        return {_APP: self.app, _VERSION: str(self.version)}

    def is_in(self, config: Mapping[str, str]) -> bool:
        """Tell whether the config of a version has this number, or a later one of the application."""
        last = config.get(_CONFIG + self.app, "")
        return last.isdecimal() and int(last) >= self.version

    def added_to(self, config: Mapping[str, str]) -> dict[str, str]:
        """Return the config of the version that commits it; raises AlreadyCommittedError if `is_in` is true."""
        if self.is_in(config):
            message = (
                f"application {self.app!r} has committed its version {config[_CONFIG + self.app]} already: version "
                f"{self.version} is not committed again"
            )
            raise AlreadyCommittedError(message)
        return {**config, _CONFIG + self.app: str(self.version)}


def apps_of(config: Mapping[str, str]) -> dict[str, str]:
    """Return the applications that numbered what they committed to a table, each with its last number."""
    return {k.removeprefix(_CONFIG): v for k, v in config.items() if k.startswith(_CONFIG)}


def app_version(app: str | None, version: int | None) -> AppVersion | None:
    """Return what a caller says of its application, None for nothing.

    Raises ArgumentError if only one of the two is said, or one makes no sense.
    """
    if app is None and version is None:
        return None
    if app is None or version is None:
        message = "an application and the number of its batch go together: give both, or none"
        raise ArgumentError(message)
    return AppVersion(app, version)
