"""Transactions: what a commit changed, as a value that other writers can judge.

A transaction file is a plain protobuf message, ``_transactions/{read_version}-{uuid}.txn``; newer
writers put the same message into the manifest file too.  A transaction says which version it was
made on (``read_version``; 0 makes a new table) and one operation (`pennon.table.operations`).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import field

from pennon.core.fast_dataclass import dataclass
from pennon.errors import Breadcrumb, FormatError, LanceError, NotFoundError
from pennon.io.store import Opens
from pennon.proto import transaction_pb2
from pennon.table.fragment_wire import parse_message, serialize_message, unknown_fields
from pennon.table.manifest import Manifest
from pennon.table.naming import transaction_name, transaction_path
from pennon.table.operation_wire import parse_operation, serialize_operation
from pennon.table.operations import Append as Append
from pennon.table.operations import Operation as Operation
from pennon.table.operations import Other as Other
from pennon.table.operations import Overwrite as Overwrite
from pennon.table.operations import operation_name as operation_name


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


def parse_transaction(data: bytes) -> Transaction:
    """Return the transaction in a transaction file; raises FormatError."""
    message = parse_message(transaction_pb2.Transaction, data)
    return Transaction(
        read_version=message.read_version,
        operation=parse_operation(message),
        uuid=message.uuid,
        properties=dict(message.transaction_properties),
        tag=message.tag,
        unknown=unknown_fields(message),
    )


def serialize_transaction(transaction: Transaction) -> bytes:
    """Return the bytes of a transaction file; equal transactions give equal bytes."""
    message = parse_message(transaction_pb2.Transaction, transaction.unknown)
    message.read_version = transaction.read_version
    message.uuid = transaction.uuid
    message.tag = transaction.tag
    message.transaction_properties.update(transaction.properties)
    serialize_operation(transaction.operation, message)
    return serialize_message(message)


def read_transaction(store: Opens, manifest: Manifest) -> bytes | None:
    """Return the serialized transaction that made a version; None if nobody kept it.

    It lies in the manifest file, or in a file of its own.
    """
    if manifest.transaction is not None or manifest.transaction_file is None:
        return manifest.transaction
    path = transaction_path(manifest.transaction_file)
    try:
        buffer = store.read_whole(path)
    except NotFoundError:
        return None
    except LanceError as error:
        raise error.located(Breadcrumb(file=path)) from error.__cause__
    data: bytes = buffer.to_pybytes()
    return data


def find_transaction(store: Opens, manifest: Manifest) -> Transaction | None:
    """Return the transaction that made a version; raises FormatError, which names the file."""
    data = read_transaction(store, manifest)
    try:
        return None if data is None else parse_transaction(data)
    except FormatError as error:
        raise error.located(Breadcrumb(file=_place(manifest))) from error.__cause__


def _place(manifest: Manifest) -> str:
    """Return where the transaction that made a version lies."""
    if manifest.transaction is not None or manifest.transaction_file is None:
        return f"the manifest of version {manifest.version}"
    return transaction_path(manifest.transaction_file)


def check_uuid(value: str) -> str:
    """Return a transaction's uuid if it can be part of a file name; raises FormatError."""
    try:
        return str(uuid.UUID(value))
    except ValueError as error:
        message = f"{value!r} is no uuid"
        raise FormatError(message) from error
