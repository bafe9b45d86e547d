"""Operations as messages of transaction.proto, both ways.

`FIELDS` has a row for each field of an operation, and of the parts of one: its name in
`pennon.table.operations`, its name in the message, and how its value is read and put there.  What
Pennon does not know of a message is kept beside them.  To add an operation is to add its rows.

Old writers said some things in other fields (`OLD_FORMS`), which are read, and never written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from pennon.core.units import DatasetVersion, FieldId, FragmentId
from pennon.errors import FormatError
from pennon.proto import transaction_pb2
from pennon.schema.field import Schema
from pennon.schema.wire import parse_fields, serialize_fields
from pennon.table.config_wire import CONFIG, FIELD_METADATA, MAP, SCHEMA_METADATA
from pennon.table.fragment_wire import (
    parse_base_path,
    parse_file,
    parse_fragment,
    serialize_base_path,
    serialize_file,
    serialize_fragment,
)
from pennon.table.indices_wire import (
    parse_index,
    parse_index_file,
    parse_uuid,
    serialize_index,
    serialize_index_file,
    serialize_uuid,
)
from pennon.table.message_wire import (
    PLAIN,
    Converter,
    many,
    one,
    optional,
    parse_message,
    serialize_message,
    unknown_fields,
)
from pennon.table.operations import (
    NAMES,
    Append,
    Clone,
    CreateIndex,
    DataReplacement,
    Delete,
    Merge,
    Operation,
    Other,
    Overwrite,
    Project,
    Replacement,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    RewrittenIndex,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMode,
    operation_name,
)

_Proto = transaction_pb2.Transaction

OLD_FORMS: Mapping[str, frozenset[str]] = {
    "Rewrite": frozenset({"old_fragments", "new_fragments"}),
    "UpdateConfig": frozenset(
        {"upsert_values", "delete_keys", "schema_metadata", "field_metadata"}
    ),
}
"""Fields that the rows of others read, too, by their message."""

KEPT: Mapping[str, frozenset[str]] = {"Update": frozenset({"mem_wal_to_merge"})}
"""Fields that stay as they are, beside what is not known of a message."""


def parse_operation(message: _Proto) -> Operation:
    """Return the operation in a transaction; raises FormatError."""
    name = message.WhichOneof("operation")
    if name is None:
        return Other("")
    body = getattr(message, name)
    kind = _KINDS.get(name)
    if kind is None:
        return Other(name, serialize_message(body))
    operation: Operation = _parse(kind, body)
    return operation


def serialize_operation(operation: Operation, message: _Proto) -> None:
    """Put an operation into the message of its transaction."""
    name = operation_name(operation)
    if not name:
        return
    body = getattr(message, name)
    body.SetInParent()
    if isinstance(operation, Other):
        body.MergeFromString(operation.message)
    else:
        _fill(body, operation)


def _parse(kind: type, message: Message) -> Any:
    values = {row.name: row.way.read(message, row.field) for row in FIELDS[kind]}
    return kind(**values, unknown=_kept(message))


def _fill(message: Message, value: Any) -> None:
    message.MergeFromString(value.unknown)
    for row in FIELDS[type(value)]:
        row.way.put(message, row.field, getattr(value, row.name))


def _kept(message: Message) -> bytes:
    """Return what is not known of a message, and the fields of it that stay as they are."""
    unknown = unknown_fields(message)
    present = [name for name in KEPT.get(message.DESCRIPTOR.name, ()) if message.HasField(name)]
    if not present:
        return unknown
    rest = parse_message(type(message), unknown)
    for name in present:
        getattr(rest, name).CopyFrom(getattr(message, name))
    return serialize_message(rest)


# How a field of a message is read and put


@dataclass(frozen=True, slots=True)
class FieldMapping:
    """A field: its name in the value and in the message."""

    name: str
    field: str
    way: Converter = PLAIN


def _put_parts(message: Any, field: str, values: Sequence[Any]) -> None:
    for value in values:
        _fill(getattr(message, field).add(), value)


def _parts(kind: type) -> Converter:
    return Converter(
        lambda message, field: tuple(_parse(kind, each) for each in getattr(message, field)),
        _put_parts,
    )


def _read_groups(message: _Proto.Rewrite, field: str) -> tuple[RewriteGroup, ...]:
    groups: tuple[RewriteGroup, ...] = _GROUPS.read(message, field)
    if not message.old_fragments and not message.new_fragments:
        return groups
    old, new = (_FRAGMENTS.read(message, name) for name in ("old_fragments", "new_fragments"))
    return (RewriteGroup(old, new), *groups)


def _read_schema(message: Any, field: str) -> Schema:
    metadata = dict(getattr(message, "schema_metadata", {}))
    return parse_fields(list(getattr(message, field)), metadata)


def _put_schema(message: Any, field: str, schema: Schema) -> None:
    """Put the fields, unless they are there as another writer wrote them."""
    fields = getattr(message, field)
    if not fields:
        fields.extend(serialize_fields(schema))
    for key, value in schema.metadata.items() if hasattr(message, "schema_metadata") else ():
        message.schema_metadata[key] = value


def _read_wire(message: Any, field: str) -> tuple[bytes, ...]:
    return tuple(each.SerializeToString(deterministic=True) for each in getattr(message, field))


def _put_wire(message: Any, field: str, wires: Sequence[bytes] | None) -> None:
    for wire in wires or ():
        getattr(message, field).add().MergeFromString(wire)


def _read_mode(message: Any, field: str) -> UpdateMode:
    mode = int(getattr(message, field))
    if mode not in list(UpdateMode):
        text = f"updates of mode {mode} are not known"
        raise FormatError(text)
    return UpdateMode(mode)


def _put_offsets(message: Any, field: str, offsets: Mapping[FragmentId, bytes]) -> None:
    getattr(message, field).update(offsets)


def _put_details(part: str) -> Callable[[Any, str, Any], None]:
    def put(message: Any, field: str, value: Any) -> None:
        if value:
            setattr(getattr(message, field), part, value)

    return put


def _details(part: str) -> Converter:
    """Return how one half of a protobuf Any is read and put."""
    return Converter(
        lambda message, field: getattr(getattr(message, field), part), _put_details(part)
    )


_FRAGMENTS = many(parse_fragment, serialize_fragment)
_FRAGMENT_IDS = many(FragmentId, int)
_FIELD_IDS = many(FieldId, int)
_FILE = one(parse_file, serialize_file)
_INDICES = many(parse_index, serialize_index)
_INDEX_FILES = many(parse_index_file, serialize_index_file)
_UUID = one(parse_uuid, serialize_uuid)
_BASES = many(parse_base_path, serialize_base_path)
_GROUPS = _parts(RewriteGroup)
_SCHEMA = Converter(_read_schema, _put_schema)
_SCHEMA_WIRE = Converter(_read_wire, _put_wire)
_VERSION = Converter(lambda message, field: DatasetVersion(getattr(message, field)), setattr)
_MODE = Converter(_read_mode, lambda message, field, mode: setattr(message, field, mode or 0))
_OFFSETS = Converter(
    lambda message, field: {FragmentId(k): v for k, v in getattr(message, field).items()},
    _put_offsets,
)
_STRINGS = Converter(
    lambda message, field: dict(getattr(message, field)),
    lambda message, field, values: getattr(message, field).update(values),
)

FIELDS: Mapping[type[Any], Sequence[FieldMapping]] = {
    Append: [FieldMapping("fragments", "fragments", _FRAGMENTS)],
    Overwrite: [
        FieldMapping("fragments", "fragments", _FRAGMENTS),
        FieldMapping("fields_wire", "schema", _SCHEMA_WIRE),
        FieldMapping("schema", "schema", _SCHEMA),
        FieldMapping("config_upserts", "config_upsert_values", _STRINGS),
        FieldMapping("base_paths", "initial_bases", _BASES),
    ],
    Delete: [
        FieldMapping("updated", "updated_fragments", _FRAGMENTS),
        FieldMapping("deleted_ids", "deleted_fragment_ids", _FRAGMENT_IDS),
        FieldMapping("predicate", "predicate"),
    ],
    Update: [
        FieldMapping("removed_ids", "removed_fragment_ids", _FRAGMENT_IDS),
        FieldMapping("updated", "updated_fragments", _FRAGMENTS),
        FieldMapping("new", "new_fragments", _FRAGMENTS),
        FieldMapping("fields_modified", "fields_modified", _FIELD_IDS),
        FieldMapping("fields_preserved", "fields_for_preserving_frag_bitmap", _FIELD_IDS),
        FieldMapping("mode", "update_mode", _MODE),
        FieldMapping("updated_offsets", "updated_fragment_offsets", _OFFSETS),
    ],
    Merge: [
        FieldMapping("fragments", "fragments", _FRAGMENTS),
        FieldMapping("fields_wire", "schema", _SCHEMA_WIRE),
        FieldMapping("schema", "schema", _SCHEMA),
        FieldMapping("preserves_nullability", "preserves_nullability"),
    ],
    Project: [
        FieldMapping("fields_wire", "schema", _SCHEMA_WIRE),
        FieldMapping("schema", "schema", _SCHEMA),
        FieldMapping("preserves_nullability", "preserves_nullability"),
    ],
    Rewrite: [
        FieldMapping("groups", "groups", Converter(_read_groups, _put_parts)),
        FieldMapping("rewritten_indices", "rewritten_indices", _parts(RewrittenIndex)),
    ],
    RewriteGroup: [
        FieldMapping("old", "old_fragments", _FRAGMENTS),
        FieldMapping("new", "new_fragments", _FRAGMENTS),
    ],
    RewrittenIndex: [
        FieldMapping("old_id", "old_id", _UUID),
        FieldMapping("new_id", "new_id", _UUID),
        FieldMapping("details_url", "new_index_details", _details("type_url")),
        FieldMapping("details", "new_index_details", _details("value")),
        FieldMapping("index_version", "new_index_version"),
        FieldMapping("new_files", "new_index_files", _INDEX_FILES),
    ],
    ReserveFragments: [FieldMapping("count", "num_fragments")],
    Restore: [FieldMapping("version", "version", _VERSION)],
    CreateIndex: [
        FieldMapping("new", "new_indices", _INDICES),
        FieldMapping("removed", "removed_indices", _INDICES),
    ],
    UpdateConfig: [
        FieldMapping("config", "config_updates", CONFIG),
        FieldMapping("table_metadata", "table_metadata_updates", MAP),
        FieldMapping("schema_metadata", "schema_metadata_updates", SCHEMA_METADATA),
        FieldMapping("fields", "field_metadata_updates", FIELD_METADATA),
    ],
    DataReplacement: [FieldMapping("replacements", "replacements", _parts(Replacement))],
    Replacement: [
        FieldMapping("fragment_id", "fragment_id"),
        FieldMapping("file", "new_file", _FILE),
    ],
    Clone: [
        FieldMapping("is_shallow", "is_shallow"),
        FieldMapping("ref_name", "ref_name", optional(PLAIN)),
        FieldMapping("ref_version", "ref_version", _VERSION),
        FieldMapping("ref_path", "ref_path"),
        FieldMapping("branch_name", "branch_name", optional(PLAIN)),
    ],
    UpdateBases: [FieldMapping("new_bases", "new_bases", _BASES)],
}
_KINDS = {name: kind for kind, name in NAMES.items()}
