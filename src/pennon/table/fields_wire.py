"""The messages of a schema's fields when the schema changes: what is not known of them stays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from pennon.core.units import FieldId
from pennon.proto import file_pb2
from pennon.schema.field import Schema
from pennon.schema.wire import serialize_fields
from pennon.table.message_wire import parse_message, serialize_message

Change: TypeAlias = Callable[[Mapping[str, bytes]], Mapping[str, bytes]]
"""Makes the new metadata of a field from the old."""


def carry_over(old: Sequence[bytes] | None, schema: Schema) -> tuple[bytes, ...] | None:
    """Return the messages of a schema's fields, made of those that had the same ids before.

    None if nothing is known of these.
    """
    if old is None:
        return None
    known = {parse_message(file_pb2.Field, wire).id: wire for wire in old}
    return tuple(_changed(known.get(new.id), new) for new in serialize_fields(schema))


def with_metadata(
    old: Sequence[bytes] | None, schema: Schema, changes: Mapping[FieldId, Change]
) -> tuple[bytes, ...]:
    """Return the messages of a schema's fields with changed metadata in some of them."""
    messages = tuple(map(serialize_message, serialize_fields(schema))) if old is None else old
    return tuple(_with_metadata(wire, changes) for wire in messages)


def _with_metadata(wire: bytes, changes: Mapping[FieldId, Change]) -> bytes:
    message = parse_message(file_pb2.Field, wire)
    change = changes.get(FieldId(message.id))
    if change is None:
        return wire
    metadata = change(dict(message.metadata))
    message.ClearField("metadata")
    message.metadata.update(metadata)
    return serialize_message(message)


def _changed(old: bytes | None, new: file_pb2.Field) -> bytes:
    if old is None:
        return serialize_message(new)
    message = parse_message(file_pb2.Field, old)
    if (message.name, message.nullable) == (new.name, new.nullable):
        return old
    message.name, message.nullable = new.name, new.nullable
    return serialize_message(message)
