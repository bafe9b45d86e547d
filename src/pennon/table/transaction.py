"""Transactions: what a commit changed, as a value that other writers can judge.

A transaction file is a plain protobuf message, ``_transactions/{read_version}-{uuid}.txn``; newer
writers put the same message into the manifest file too.  A transaction says which version it was
made on (``read_version``; 0 makes a new table) and one operation.

Append and Overwrite are values here.  Of the operations that Pennon does not make, the name and the
bytes are kept: the name is what `pennon.table.rebase` judges.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from pennon.errors import Breadcrumb, FormatError, LanceError, NotFoundError
from pennon.io.store import Opens
from pennon.proto import transaction_pb2
from pennon.schema.field import Schema
from pennon.schema.wire import parse_fields, serialize_fields
from pennon.table.manifest import BasePath, Fragment, Manifest
from pennon.table.messages import (
    parse_base_path,
    parse_fragment,
    parse_message,
    serialize_base_path,
    serialize_fragment,
    serialize_message,
    unknown_fields,
)
from pennon.table.naming import transaction_name, transaction_path


@dataclass(frozen=True, slots=True)
class Append:
    """New fragments at the end; their ids are given at commit."""

    fragments: tuple[Fragment, ...]


@dataclass(frozen=True, slots=True)
class Overwrite:
    """A new schema and new fragments in place of all there was, or a new table.

    ``fields_wire`` holds the schema's fields as another writer wrote them.
    """

    fragments: tuple[Fragment, ...]
    schema: Schema
    config_upserts: Mapping[str, str] = field(default_factory=dict)
    base_paths: tuple[BasePath, ...] = ()
    fields_wire: tuple[bytes, ...] | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Other:
    """An operation that Pennon does not make, by its name in transaction.proto.

    ``name`` is empty where the operation is newer than Pennon.  ``message`` is the operation's own
    message, serialized.
    """

    name: str
    message: bytes = field(default=b"", repr=False)


Operation: TypeAlias = Append | Overwrite | Other


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


def operation_name(operation: Operation) -> str:
    """Return the operation's name in transaction.proto, e.g. ``append``; empty if unknown."""
    match operation:
        case Append():
            return "append"
        case Overwrite():
            return "overwrite"
        case Other(name=name):
            return name


def parse_transaction(data: bytes) -> Transaction:
    """Return the transaction in a transaction file; raises FormatError."""
    message = parse_message(transaction_pb2.Transaction, data)
    return Transaction(
        read_version=message.read_version,
        operation=_parse_operation(message),
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
    match transaction.operation:
        case Append(fragments=fragments):
            message.append.SetInParent()
            message.append.fragments.extend(serialize_fragment(f) for f in fragments)
        case Overwrite() as overwrite:
            message.overwrite.CopyFrom(_serialize_overwrite(overwrite))
        case Other(name=name, message=body) if name:
            operation = getattr(message, name)
            operation.SetInParent()
            operation.MergeFromString(body)
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


def _parse_operation(message: transaction_pb2.Transaction) -> Operation:
    name = message.WhichOneof("operation")
    if name == "append":
        return Append(tuple(parse_fragment(f) for f in message.append.fragments))
    if name == "overwrite":
        return _parse_overwrite(message.overwrite)
    if name is None:
        return Other("")
    body: bytes = getattr(message, name).SerializeToString(deterministic=True)
    return Other(name, body)


def _parse_overwrite(message: transaction_pb2.Transaction.Overwrite) -> Overwrite:
    schema = parse_fields(list(message.schema), dict(message.schema_metadata))
    return Overwrite(
        fragments=tuple(parse_fragment(f) for f in message.fragments),
        schema=schema,
        config_upserts=dict(message.config_upsert_values),
        base_paths=tuple(parse_base_path(base) for base in message.initial_bases),
        fields_wire=tuple(f.SerializeToString(deterministic=True) for f in message.schema),
    )


def _serialize_overwrite(overwrite: Overwrite) -> transaction_pb2.Transaction.Overwrite:
    message = transaction_pb2.Transaction.Overwrite()
    message.fragments.extend(serialize_fragment(f) for f in overwrite.fragments)
    if overwrite.fields_wire is None:
        message.schema.extend(serialize_fields(overwrite.schema))
    for wire in overwrite.fields_wire or ():
        message.schema.add().MergeFromString(wire)
    for key, value in overwrite.schema.metadata.items():
        message.schema_metadata[key] = value
    message.config_upsert_values.update(overwrite.config_upserts)
    message.initial_bases.extend(serialize_base_path(base) for base in overwrite.base_paths)
    return message


def config_keys(operation: Operation) -> frozenset[str]:
    """Return the keys of the table's config that an operation sets or deletes."""
    if isinstance(operation, Overwrite):
        return frozenset(operation.config_upserts)
    if isinstance(operation, Other) and operation.name == "update_config":
        message = parse_message(transaction_pb2.Transaction.UpdateConfig, operation.message)
        entries = (entry.key for entry in message.config_updates.update_entries)
        return frozenset((*entries, *message.upsert_values, *message.delete_keys))
    return frozenset()


def check_uuid(value: str) -> str:
    """Return a transaction's uuid if it can be part of a file name; raises FormatError."""
    try:
        return str(uuid.UUID(value))
    except ValueError as error:
        message = f"{value!r} is no uuid"
        raise FormatError(message) from error
