"""The messages of a schema's fields when the schema changes: what is not known of them stays."""

from __future__ import annotations

from collections.abc import Sequence

from pennon.proto import file_pb2
from pennon.schema.field import Schema
from pennon.schema.wire import serialize_fields
from pennon.table.fragment_wire import parse_message, serialize_message


def carry_over(old: Sequence[bytes] | None, schema: Schema) -> tuple[bytes, ...] | None:
    """Return the messages of a schema's fields, made of those that had the same ids before.

    None if nothing is known of these.
    """
    if old is None:
        return None
    known = {parse_message(file_pb2.Field, wire).id: wire for wire in old}
    return tuple(_changed(known.get(new.id), new) for new in serialize_fields(schema))


def _changed(old: bytes | None, new: file_pb2.Field) -> bytes:
    if old is None:
        return serialize_message(new)
    message = parse_message(file_pb2.Field, old)
    if (message.name, message.nullable) == (new.name, new.nullable):
        return old
    message.name, message.nullable = new.name, new.nullable
    return serialize_message(message)
