"""Transactions: what a commit changed, as a value that other writers can judge.

A transaction says which version it was made on (``read_version``; 0 makes a new table) and one
operation (`pennon.table.operations`).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import field

from pennon.core.fast_dataclass import dataclass
from pennon.errors import FormatError
from pennon.table.naming import transaction_name
from pennon.table.operations import Operation


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
