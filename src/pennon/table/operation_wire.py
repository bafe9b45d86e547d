"""Operations as messages of transaction.proto, both ways.

For each operation there are a parser, which takes its message, and a serializer, which fills in a
message that already holds what Pennon does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from pennon.core.units import DatasetVersion, FieldId, FragmentId
from pennon.errors import FormatError
from pennon.proto import transaction_pb2
from pennon.schema.field import Schema
from pennon.schema.wire import parse_fields, serialize_fields
from pennon.table.config_wire import parse_update_config, serialize_update_config
from pennon.table.fragment import Fragment
from pennon.table.fragment_wire import (
    parse_base_path,
    parse_file,
    parse_fragment,
    serialize_base_path,
    serialize_file,
    serialize_fragment,
)
from pennon.table.indices_wire import parse_index, parse_uuid, serialize_index, serialize_uuid
from pennon.table.message_wire import parse_message, serialize_message, unknown_fields
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


def parse_operation(message: _Proto) -> Operation:
    """Return the operation in a transaction; raises FormatError."""
    name = message.WhichOneof("operation")
    if name is None:
        return Other("")
    body = getattr(message, name)
    parse = _PARSERS.get(name)
    return Other(name, serialize_message(body)) if parse is None else parse(body)


def serialize_operation(operation: Operation, message: _Proto) -> None:
    """Put an operation into the message of its transaction."""
    name = operation_name(operation)
    if not name:
        return
    body = getattr(message, name)
    body.SetInParent()
    if isinstance(operation, Other):
        body.MergeFromString(operation.message)
        return
    body.MergeFrom(parse_message(type(body), operation.unknown))
    _, serialize = _WIRE[type(operation)]
    serialize(operation, body)


def _parse_append(message: _Proto.Append) -> Append:
    return Append(_fragments(message.fragments), unknown_fields(message))


def _serialize_append(it: Append, message: _Proto.Append) -> None:
    message.fragments.extend(map(serialize_fragment, it.fragments))


def _parse_overwrite(message: _Proto.Overwrite) -> Overwrite:
    schema, wire = _parse_schema(message.schema, message.schema_metadata)
    return Overwrite(
        _fragments(message.fragments),
        schema,
        dict(message.config_upsert_values),
        tuple(map(parse_base_path, message.initial_bases)),
        wire,
        unknown_fields(message),
    )


def _serialize_overwrite(it: Overwrite, message: _Proto.Overwrite) -> None:
    message.fragments.extend(map(serialize_fragment, it.fragments))
    _put_schema(it, message)
    message.config_upsert_values.update(it.config_upserts)
    message.initial_bases.extend(map(serialize_base_path, it.base_paths))


def _parse_delete(message: _Proto.Delete) -> Delete:
    return Delete(
        _fragments(message.updated_fragments),
        _fragment_ids(message.deleted_fragment_ids),
        message.predicate,
        unknown_fields(message),
    )


def _serialize_delete(it: Delete, message: _Proto.Delete) -> None:
    message.updated_fragments.extend(map(serialize_fragment, it.updated))
    message.deleted_fragment_ids.extend(it.deleted_ids)
    message.predicate = it.predicate


def _parse_update(message: _Proto.Update) -> Update:
    mode = int(message.update_mode)
    if mode not in list(UpdateMode):
        text = f"updates of mode {mode} are not known"
        raise FormatError(text)
    return Update(
        _fragment_ids(message.removed_fragment_ids),
        _fragments(message.updated_fragments),
        _fragments(message.new_fragments),
        _field_ids(message.fields_modified),
        _field_ids(message.fields_for_preserving_frag_bitmap),
        UpdateMode(mode),
        {FragmentId(k): v for k, v in message.updated_fragment_offsets.items()},
        _with_mem_wal(message),
    )


def _with_mem_wal(message: _Proto.Update) -> bytes:
    """Return what is not known of an update, and what it does to logs in memory."""
    rest = parse_message(_Proto.Update, unknown_fields(message))
    if message.HasField("mem_wal_to_merge"):
        rest.mem_wal_to_merge.CopyFrom(message.mem_wal_to_merge)
    return serialize_message(rest)


def _serialize_update(it: Update, message: _Proto.Update) -> None:
    message.removed_fragment_ids.extend(it.removed_ids)
    message.updated_fragments.extend(map(serialize_fragment, it.updated))
    message.new_fragments.extend(map(serialize_fragment, it.new))
    message.fields_modified.extend(it.fields_modified)
    message.fields_for_preserving_frag_bitmap.extend(it.fields_preserved)
    if it.mode is UpdateMode.REWRITE_COLUMNS:
        message.update_mode = _Proto.REWRITE_COLUMNS
    for number, offsets in it.updated_offsets.items():
        message.updated_fragment_offsets[number] = offsets


def _parse_merge(message: _Proto.Merge) -> Merge:
    schema, wire = _parse_schema(message.schema, message.schema_metadata)
    keeps = message.preserves_nullability
    return Merge(_fragments(message.fragments), schema, wire, keeps, unknown_fields(message))


def _serialize_merge(it: Merge, message: _Proto.Merge) -> None:
    message.fragments.extend(map(serialize_fragment, it.fragments))
    _put_schema(it, message)


def _parse_project(message: _Proto.Project) -> Project:
    schema, wire = _parse_schema(message.schema, {})
    return Project(schema, wire, message.preserves_nullability, unknown_fields(message))


def _serialize_project(it: Project, message: _Proto.Project) -> None:
    _put_schema(it, message)


def _parse_rewrite(message: _Proto.Rewrite) -> Rewrite:
    groups = [_parse_group(group) for group in message.groups]
    if message.old_fragments or message.new_fragments:
        groups.insert(
            0, RewriteGroup(_fragments(message.old_fragments), _fragments(message.new_fragments))
        )
    indices = tuple(map(_parse_rewritten_index, message.rewritten_indices))
    return Rewrite(tuple(groups), indices, unknown_fields(message))


def _parse_group(message: _Proto.Rewrite.RewriteGroup) -> RewriteGroup:
    old, new = _fragments(message.old_fragments), _fragments(message.new_fragments)
    return RewriteGroup(old, new, unknown_fields(message))


def _parse_rewritten_index(message: _Proto.Rewrite.RewrittenIndex) -> RewrittenIndex:
    return RewrittenIndex(
        parse_uuid(message.old_id),
        parse_uuid(message.new_id),
        message.new_index_details.type_url,
        message.new_index_details.value,
        message.new_index_version,
        unknown_fields(message),
    )


def _serialize_rewrite(it: Rewrite, message: _Proto.Rewrite) -> None:
    for group in it.groups:
        made = message.groups.add()
        made.MergeFromString(group.unknown)
        made.old_fragments.extend(map(serialize_fragment, group.old))
        made.new_fragments.extend(map(serialize_fragment, group.new))
    for index in it.rewritten_indices:
        wire = message.rewritten_indices.add()
        wire.MergeFromString(index.unknown)
        wire.old_id.CopyFrom(serialize_uuid(index.old_id))
        wire.new_id.CopyFrom(serialize_uuid(index.new_id))
        if index.details_url or index.details:
            wire.new_index_details.type_url = index.details_url
            wire.new_index_details.value = index.details
        wire.new_index_version = index.index_version


def _parse_reserve(message: _Proto.ReserveFragments) -> ReserveFragments:
    return ReserveFragments(message.num_fragments, unknown_fields(message))


def _serialize_reserve(it: ReserveFragments, message: _Proto.ReserveFragments) -> None:
    message.num_fragments = it.count


def _parse_restore(message: _Proto.Restore) -> Restore:
    return Restore(DatasetVersion(message.version), unknown_fields(message))


def _serialize_restore(it: Restore, message: _Proto.Restore) -> None:
    message.version = it.version


def _parse_create_index(message: _Proto.CreateIndex) -> CreateIndex:
    return CreateIndex(
        tuple(map(parse_index, message.new_indices)),
        tuple(map(parse_index, message.removed_indices)),
        unknown_fields(message),
    )


def _serialize_create_index(it: CreateIndex, message: _Proto.CreateIndex) -> None:
    message.new_indices.extend(map(serialize_index, it.new))
    message.removed_indices.extend(map(serialize_index, it.removed))


def _parse_replacement(message: _Proto.DataReplacement) -> DataReplacement:
    return DataReplacement(
        tuple(
            Replacement(
                FragmentId(group.fragment_id), parse_file(group.new_file), unknown_fields(group)
            )
            for group in message.replacements
        ),
        unknown_fields(message),
    )


def _serialize_replacement(it: DataReplacement, message: _Proto.DataReplacement) -> None:
    for replacement in it.replacements:
        group = message.replacements.add()
        group.MergeFromString(replacement.unknown)
        group.fragment_id = replacement.fragment_id
        group.new_file.CopyFrom(serialize_file(replacement.file))


def _parse_clone(message: _Proto.Clone) -> Clone:
    return Clone(
        message.is_shallow,
        message.ref_name if message.HasField("ref_name") else None,
        DatasetVersion(message.ref_version),
        message.ref_path,
        message.branch_name if message.HasField("branch_name") else None,
        unknown_fields(message),
    )


def _serialize_clone(it: Clone, message: _Proto.Clone) -> None:
    message.is_shallow = it.is_shallow
    message.ref_version = it.ref_version
    message.ref_path = it.ref_path
    if it.ref_name is not None:
        message.ref_name = it.ref_name
    if it.branch_name is not None:
        message.branch_name = it.branch_name


def _parse_bases(message: _Proto.UpdateBases) -> UpdateBases:
    return UpdateBases(tuple(map(parse_base_path, message.new_bases)), unknown_fields(message))


def _serialize_bases(it: UpdateBases, message: _Proto.UpdateBases) -> None:
    message.new_bases.extend(map(serialize_base_path, it.new_bases))


def _fragments(messages: Iterable[Any]) -> tuple[Fragment, ...]:
    return tuple(map(parse_fragment, messages))


def _fragment_ids(numbers: Iterable[int]) -> tuple[FragmentId, ...]:
    return tuple(map(FragmentId, numbers))


def _field_ids(numbers: Iterable[int]) -> tuple[FieldId, ...]:
    return tuple(map(FieldId, numbers))


def _parse_schema(
    fields: Iterable[Any], metadata: Mapping[str, bytes]
) -> tuple[Schema, tuple[bytes, ...]]:
    """Return the schema, and its fields as they were written."""
    messages = list(fields)
    wire = tuple(each.SerializeToString(deterministic=True) for each in messages)
    return parse_fields(messages, dict(metadata)), wire


def _put_schema(it: Overwrite | Merge | Project, message: Any) -> None:
    if it.fields_wire is None:
        message.schema.extend(serialize_fields(it.schema))
    for wire in it.fields_wire or ():
        message.schema.add().MergeFromString(wire)
    if not isinstance(it, Overwrite) and it.preserves_nullability:
        message.preserves_nullability = True
    if not isinstance(it, Project):
        for key, value in it.schema.metadata.items():
            message.schema_metadata[key] = value


_Parse: TypeAlias = Callable[[Any], Operation]
_Serialize: TypeAlias = Callable[[Any, Any], None]
_WIRE: Mapping[type, tuple[_Parse, _Serialize]] = {
    Append: (_parse_append, _serialize_append),
    Overwrite: (_parse_overwrite, _serialize_overwrite),
    Delete: (_parse_delete, _serialize_delete),
    Update: (_parse_update, _serialize_update),
    Merge: (_parse_merge, _serialize_merge),
    Project: (_parse_project, _serialize_project),
    Rewrite: (_parse_rewrite, _serialize_rewrite),
    ReserveFragments: (_parse_reserve, _serialize_reserve),
    Restore: (_parse_restore, _serialize_restore),
    CreateIndex: (_parse_create_index, _serialize_create_index),
    UpdateConfig: (parse_update_config, serialize_update_config),
    DataReplacement: (_parse_replacement, _serialize_replacement),
    Clone: (_parse_clone, _serialize_clone),
    UpdateBases: (_parse_bases, _serialize_bases),
}
_PARSERS = {NAMES[kind]: parse for kind, (parse, _) in _WIRE.items()}
