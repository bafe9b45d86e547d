"""The messages of fields when a schema changes."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from pennon.core.units import FieldId
from pennon.proto import file_pb2
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.field import Schema
from pennon.schema.wire import serialize_fields
from pennon.table.fields_wire import carry_over

SCHEMA = schema_from_arrow(pa.schema([("a", pa.int64()), ("s", pa.struct([("x", pa.int8())]))]))
UNKNOWN = bytes([0xF8, 0x07, 0x2A])  # field 127: 42


def _wire() -> tuple[bytes, ...]:
    return tuple(each.SerializeToString() + UNKNOWN for each in serialize_fields(SCHEMA))


def test_unknown_field_bytes_are_carried_over() -> None:
    first, second = SCHEMA.fields
    (child,) = second.children
    renamed = replace(second, children=(replace(child, name="y", nullable=False),))
    new = replace(first, id=FieldId(child.id + 1), name="new")
    wire = carry_over(_wire(), Schema((first, renamed, new)))
    assert wire is not None
    assert wire[:2] == _wire()[:2]
    changed = file_pb2.Field.FromString(wire[2])
    assert (changed.name, changed.nullable, changed.parent_id) == ("y", False, second.id)
    assert changed.SerializeToString().endswith(UNKNOWN)
    assert file_pb2.Field.FromString(wire[3]).name == "new"
    assert not wire[3].endswith(UNKNOWN)


def test_dropped_field_messages_are_removed() -> None:
    assert carry_over(_wire(), Schema(SCHEMA.fields[:1])) == _wire()[:1]
    assert carry_over(None, SCHEMA) is None
