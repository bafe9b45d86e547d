"""What a commit does, as a value: pylance's ``LanceOperation`` and ``Transaction``."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from pennon.errors import UnsupportedError
from pennon.later import Unfinished
from pennon.metadata import FragmentMetadata
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.lance_schema import LanceSchema
from pennon.table import transaction as table

LANCE_COMMIT_MESSAGE_KEY = "__lance_commit_message"


def _check_fragments(fragments: Any) -> None:
    """Raise TypeError unless this is a list of FragmentMetadata."""
    if not isinstance(fragments, list):
        message = f"fragments must be a list of FragmentMetadata, got {type(fragments).__name__}"
        raise TypeError(message)
    for fragment in fragments:
        if not isinstance(fragment, FragmentMetadata):
            name = type(fragment).__name__
            message = f"fragments must be a list of FragmentMetadata, but there is a {name} in it"
            raise TypeError(message)


class LanceOperation(metaclass=Unfinished):
    """The operations that a transaction may hold."""

    class BaseOperation:
        """What all operations are."""

    @dataclass
    class Append(BaseOperation):
        """Add the fragments to the table; their ids are given at the commit."""

        fragments: list[FragmentMetadata]

        def __post_init__(self) -> None:
            """Check the fragments."""
            _check_fragments(self.fragments)

    @dataclass
    class Overwrite(BaseOperation):
        """Replace schema and fragments of the table, or make a new one."""

        new_schema: pa.Schema | LanceSchema
        fragments: list[FragmentMetadata]
        initial_bases: list[Any] | None = None

        def __post_init__(self) -> None:
            """Check the fragments."""
            _check_fragments(self.fragments)

    @dataclass
    class Other(BaseOperation):
        """An operation that Pennon reads the name of, but does not make."""

        name: str
        message: bytes = field(default=b"", repr=False)


@dataclass
class Transaction:
    """One commit: an operation, and the version that it was planned against."""

    read_version: int
    operation: LanceOperation.BaseOperation
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    transaction_properties: dict[str, str] | None = field(default_factory=dict)


def to_table_operation(operation: LanceOperation.BaseOperation) -> table.Operation:
    """Return the operation as the table layer has it; raises UnsupportedError for the others."""
    if isinstance(operation, LanceOperation.Append):
        return table.Append(tuple(meta.to_fragment() for meta in operation.fragments))
    if isinstance(operation, LanceOperation.Overwrite):
        if operation.initial_bases:
            message = "base paths are not written yet"
            raise UnsupportedError(message)
        schema = operation.new_schema
        fields = schema.schema if isinstance(schema, LanceSchema) else schema_from_arrow(schema)
        return table.Overwrite(tuple(meta.to_fragment() for meta in operation.fragments), fields)
    message = f"a commit of {type(operation).__name__} is not supported; Append and Overwrite are"
    raise UnsupportedError(message)


def from_table_transaction(transaction: table.Transaction) -> Transaction:
    """Return a transaction as users see it."""
    operation = transaction.operation
    shown: LanceOperation.BaseOperation
    if isinstance(operation, table.Append):
        shown = LanceOperation.Append(
            [FragmentMetadata.from_fragment(fragment) for fragment in operation.fragments]
        )
    elif isinstance(operation, table.Overwrite):
        shown = LanceOperation.Overwrite(
            LanceSchema(operation.schema),
            [FragmentMetadata.from_fragment(fragment) for fragment in operation.fragments],
        )
    else:
        body = operation.message if isinstance(operation, table.Other) else b""
        shown = LanceOperation.Other(table.operation_name(operation), body)
    return Transaction(
        transaction.read_version, shown, transaction.uuid, dict(transaction.properties)
    )


def merge_message(
    message: str | None, properties: Mapping[str, str] | None
) -> dict[str, str] | None:
    """Return the transaction properties with the commit message among them."""
    merged = dict(properties or {})
    if message is not None:
        merged[LANCE_COMMIT_MESSAGE_KEY] = message
    return merged or None
