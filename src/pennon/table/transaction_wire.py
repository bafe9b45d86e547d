"""Transactions as bytes: in a file of their own, and in the manifest of the version that they made.

A transaction file is a plain protobuf message, ``_transactions/{read_version}-{uuid}.txn``; newer
writers put the same message into the manifest file too.
"""

from __future__ import annotations

from pennon.errors import Breadcrumb, FormatError, LanceError, NotFoundError
from pennon.io.store import Opens
from pennon.proto import transaction_pb2
from pennon.table.manifest import Manifest
from pennon.table.message_wire import parse_message, serialize_message, unknown_fields
from pennon.table.naming import transaction_path
from pennon.table.operation_wire import parse_operation, serialize_operation
from pennon.table.transaction import Transaction


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
    """Return the serialized transaction that made a version; None if it was not kept.

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
