"""Operations as messages: no field of either side is forgotten."""

from __future__ import annotations

import dataclasses

import pytest
from google.protobuf.descriptor import Descriptor

from pennon.proto import transaction_pb2
from pennon.table.operation_wire import FIELDS, KEPT, OLD_FORMS
from pennon.table.operations import NAMES, Replacement, RewriteGroup, RewrittenIndex

MESSAGE = transaction_pb2.Transaction
OPERATIONS = MESSAGE.DESCRIPTOR.oneofs_by_name["operation"].fields
BESIDE = {
    ("Overwrite", "schema_metadata"): "a part of the schema",
    ("Merge", "schema_metadata"): "a part of the schema",
}
"""Fields that are read and put with another."""


def messages() -> dict[type, Descriptor]:
    """Return the message of each class that has rows."""
    operations = {it.name: it.message_type for it in OPERATIONS if it.message_type is not None}
    parts = {
        RewriteGroup: MESSAGE.Rewrite.RewriteGroup.DESCRIPTOR,
        RewrittenIndex: MESSAGE.Rewrite.RewrittenIndex.DESCRIPTOR,
        Replacement: MESSAGE.DataReplacementGroup.DESCRIPTOR,
    }
    return {kind: operations[name] for kind, name in NAMES.items()} | parts


def test_operation_messages_have_field_mappings() -> None:
    assert FIELDS.keys() == messages().keys()
    assert {field.name for field in OPERATIONS} - set(NAMES.values()) == {"update_mem_wal_state"}


@pytest.mark.parametrize("kind", FIELDS, ids=lambda kind: kind.__name__)
def test_operation_message_fields_have_a_mapping(kind: type) -> None:
    message = messages()[kind]
    fields = {field.name for field in message.fields}
    beside = {field for name, field in BESIDE if name == message.name}
    others = beside | KEPT.get(message.name, set()) | OLD_FORMS.get(message.name, set())
    assert others <= fields
    assert {row.field for row in FIELDS[kind]} == fields - others
    values = [field.name for field in dataclasses.fields(kind)]
    assert sorted(row.name for row in FIELDS[kind]) == sorted(
        set(values) - {"unknown", "deferred"}
    )  # in no message
