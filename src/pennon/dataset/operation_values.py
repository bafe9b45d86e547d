"""Operations and transactions between pylance's classes and the table layer's values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from pennon.core.units import DatasetVersion, FieldId, FragmentId
from pennon.dataset.metadata import DataFile, FragmentMetadata
from pennon.dataset.operation import Index, LanceOperation, Transaction
from pennon.errors import ArgumentError, UnsupportedError
from pennon.proto import table_pb2
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.field import Schema
from pennon.schema.lance_schema import LanceSchema
from pennon.table import indices as table_indices
from pennon.table import operations as table
from pennon.table.fragment import BasePath, Fragment
from pennon.table.fragment_wire import parse_message, serialize_message
from pennon.table.roaring import serialize_roaring
from pennon.table.transaction import Transaction as TableTransaction

_MODES = {
    "": None,
    "rewrite_rows": table.UpdateMode.REWRITE_ROWS,
    "rewrite_columns": table.UpdateMode.REWRITE_COLUMNS,
}
_MILLISECONDS = 1000


def to_table_operation(operation: LanceOperation.BaseOperation) -> table.Operation:
    """Return the operation as the table layer has it; raises UnsupportedError for the others."""
    convert = _TO_TABLE.get(type(operation))
    if convert is None:
        message = f"a commit of {type(operation).__name__} is not supported"
        raise UnsupportedError(message)
    return convert(operation)


def from_table_operation(operation: table.Operation) -> LanceOperation.BaseOperation:
    """Return an operation as users see it."""
    convert = _FROM_TABLE.get(type(operation))
    if convert is not None:
        return convert(operation)
    body = operation.message if isinstance(operation, table.Other) else b""
    return LanceOperation.Other(table.operation_name(operation), body)


def from_table_transaction(transaction: TableTransaction) -> Transaction:
    """Return a transaction as users see it."""
    return Transaction(
        transaction.read_version,
        from_table_operation(transaction.operation),
        transaction.uuid,
        dict(transaction.properties),
    )


def _to_overwrite(it: LanceOperation.Overwrite) -> table.Overwrite:
    bases = tuple(map(_to_base, it.initial_bases or ()))
    return table.Overwrite(_fragments(it.fragments), _schema(it.new_schema), base_paths=bases)


def _to_base(base: Any) -> BasePath:
    return BasePath(base.id or 0, base.path, base.name, base.is_dataset_root)


def _to_delete(it: LanceOperation.Delete) -> table.Delete:
    return table.Delete(
        _fragments(it.updated_fragments), _ids(it.deleted_fragment_ids), it.predicate
    )


def _from_delete(it: table.Delete) -> LanceOperation.Delete:
    return LanceOperation.Delete(_metadata(it.updated), list(it.deleted_ids), it.predicate)


def _to_update(it: LanceOperation.Update) -> table.Update:
    if it.update_mode not in _MODES:
        known = ", ".join(map(repr, _MODES))
        message = f"there is no update mode {it.update_mode!r}; the modes are {known}"
        raise ArgumentError(message)
    offsets = it.updated_fragment_offsets or {}
    return table.Update(
        _ids(it.removed_fragment_ids),
        _fragments(it.updated_fragments),
        _fragments(it.new_fragments),
        _fields(it.fields_modified),
        _fields(it.fields_for_preserving_frag_bitmap),
        _MODES[it.update_mode],
        {FragmentId(number): bytes(bitmap) for number, bitmap in offsets.items()},
    )


def from_update(it: table.Update, *, adds_keys: bool = False) -> LanceOperation.Update:
    """Return an update as users see it."""
    mode = it.mode or table.UpdateMode.REWRITE_ROWS
    return LanceOperation.Update(
        list(it.removed_ids),
        _metadata(it.updated),
        _metadata(it.new),
        list(it.fields_modified),
        list(it.fields_preserved),
        mode.name.lower(),
        {int(k): v for k, v in it.updated_offsets.items()} or None,
        adds_keys,
    )


def _to_merge(it: LanceOperation.Merge) -> table.Merge:
    return table.Merge(
        _fragments(it.fragments),
        _schema(it.schema),
        preserves_nullability=it.preserves_nullability,
    )


def _from_merge(it: table.Merge) -> LanceOperation.Merge:
    schema = LanceSchema(it.schema)
    return LanceOperation.Merge(_metadata(it.fragments), schema, it.preserves_nullability)


def _to_project(it: LanceOperation.Project) -> table.Project:
    return table.Project(_schema(it.schema), preserves_nullability=it.preserves_nullability)


def _from_project(it: table.Project) -> LanceOperation.Project:
    return LanceOperation.Project(LanceSchema(it.schema), it.preserves_nullability)


def _to_clone(it: LanceOperation.Clone) -> table.Clone:
    version = DatasetVersion(it.ref_version)
    return table.Clone(it.is_shallow, it.ref_name, version, it.ref_path, it.branch_name)


def _from_clone(it: table.Clone) -> LanceOperation.Clone:
    return LanceOperation.Clone(
        it.is_shallow, it.ref_name, it.ref_version, it.ref_path, it.branch_name
    )


def _to_rewrite(it: LanceOperation.Rewrite) -> table.Rewrite:
    groups = tuple(
        table.RewriteGroup(_fragments(group.old_fragments), _fragments(group.new_fragments))
        for group in it.groups
    )
    indices = tuple(
        table.RewrittenIndex(
            index.old_id,
            index.new_id,
            index.new_details_type_url,
            bytes(index.new_details_value),
            index.new_index_version,
        )
        for index in it.rewritten_indices
    )
    return table.Rewrite(groups, indices)


def _from_rewrite(it: table.Rewrite) -> LanceOperation.Rewrite:
    groups = [
        LanceOperation.RewriteGroup(_metadata(group.old), _metadata(group.new))
        for group in it.groups
    ]
    indices = [
        LanceOperation.RewrittenIndex(
            index.old_id, index.new_id, index.details_url, index.details, index.index_version
        )
        for index in it.rewritten_indices
    ]
    return LanceOperation.Rewrite(groups, indices)


def _to_replacement(it: LanceOperation.DataReplacement) -> table.DataReplacement:
    return table.DataReplacement(
        tuple(
            table.Replacement(FragmentId(group.fragment_id), group.new_file.to_ref())
            for group in it.replacements
        )
    )


def _from_replacement(it: table.DataReplacement) -> LanceOperation.DataReplacement:
    return LanceOperation.DataReplacement(
        [
            LanceOperation.DataReplacementGroup(each.fragment_id, DataFile.from_ref(each.file))
            for each in it.replacements
        ]
    )


def _to_config(it: LanceOperation.UpdateConfig) -> table.UpdateConfig:
    fields = it.field_metadata_updates or {}
    return table.UpdateConfig(
        _to_map(it.config_updates),
        _to_map(it.table_metadata_updates),
        _to_map(it.schema_metadata_updates),
        {
            FieldId(number): table.MapUpdate(dict(each.updates), each.replace)
            for number, each in fields.items()
        },
    )


def _to_map(it: LanceOperation.UpdateMap | None) -> table.MapUpdate | None:
    return None if it is None else table.MapUpdate(dict(it.updates), it.replace)


def _from_config(it: table.UpdateConfig) -> LanceOperation.UpdateConfig:
    fields = {
        int(number): LanceOperation.UpdateMap(dict(each.entries), each.replace)
        for number, each in it.fields.items()
    }
    return LanceOperation.UpdateConfig(
        _from_map(it.config),
        _from_map(it.table_metadata),
        _from_map(it.schema_metadata),
        fields or None,
    )


def _from_map(it: table.MapUpdate | None) -> LanceOperation.UpdateMap | None:
    return None if it is None else LanceOperation.UpdateMap(dict(it.entries), it.replace)


def _to_indices(it: LanceOperation.CreateIndex) -> table.CreateIndex:
    new, removed = map(_to_index, it.new_indices), map(_to_index, it.removed_indices)
    return table.CreateIndex(tuple(new), tuple(removed))


def _to_index(index: Index) -> table_indices.Index:
    if index.files and not index.wire:
        text = "an index that lists its files must come from a transaction that was read"
        raise UnsupportedError(text)
    message = parse_message(table_pb2.IndexMetadata, index.wire)
    message.uuid.CopyFrom(table_indices.serialize_uuid(index.uuid))
    message.name, message.dataset_version = index.name, index.dataset_version
    message.fields[:] = index.fields
    message.fragment_bitmap = serialize_roaring(np.array(sorted(index.fragment_ids), np.uint32))
    message.index_version = index.index_version
    if index.created_at is not None:
        message.created_at = round(index.created_at.timestamp() * _MILLISECONDS)
    if index.base_id is not None:
        message.base_id = index.base_id
    if index.index_details is not None:
        message.index_details.type_url, message.index_details.value = index.index_details
    return table_indices.parse_index(message)


def _from_indices(it: table.CreateIndex) -> LanceOperation.CreateIndex:
    return LanceOperation.CreateIndex(
        list(map(from_index, it.new)), list(map(from_index, it.removed))
    )


def from_index(index: table_indices.Index) -> Index:
    """Return an index as users see it."""
    message = table_indices.serialize_index(index)
    details = message.index_details
    created = message.created_at / _MILLISECONDS if message.HasField("created_at") else None
    return Index(
        index.uuid,
        index.name,
        list(index.field_ids),
        index.dataset_version,
        set(index.fragment_ids or ()),
        message.index_version,
        None if created is None else datetime.fromtimestamp(created, UTC),
        message.base_id if message.HasField("base_id") else None,
        index_details=(details.type_url, details.value)
        if message.HasField("index_details")
        else None,
        wire=serialize_message(message),
    )


def _fragments(metadata: Iterable[FragmentMetadata]) -> tuple[Fragment, ...]:
    return tuple(each.to_fragment() for each in metadata)


def _metadata(fragments: Iterable[Fragment]) -> list[FragmentMetadata]:
    return [FragmentMetadata.from_fragment(fragment) for fragment in fragments]


def _ids(numbers: Iterable[int]) -> tuple[FragmentId, ...]:
    return tuple(map(FragmentId, numbers))


def _fields(numbers: Iterable[int]) -> tuple[FieldId, ...]:
    return tuple(map(FieldId, numbers))


def _schema(schema: LanceSchema | pa.Schema) -> Schema:
    return schema.schema if isinstance(schema, LanceSchema) else schema_from_arrow(schema)


_TO_TABLE: Mapping[type, Callable[[Any], table.Operation]] = {
    LanceOperation.Append: lambda it: table.Append(_fragments(it.fragments)),
    LanceOperation.Overwrite: _to_overwrite,
    LanceOperation.Delete: _to_delete,
    LanceOperation.Update: _to_update,
    LanceOperation.Merge: _to_merge,
    LanceOperation.Project: _to_project,
    LanceOperation.Restore: lambda it: table.Restore(DatasetVersion(it.version)),
    LanceOperation.Clone: _to_clone,
    LanceOperation.Rewrite: _to_rewrite,
    LanceOperation.CreateIndex: _to_indices,
    LanceOperation.DataReplacement: _to_replacement,
    LanceOperation.UpdateConfig: _to_config,
}
_FROM_TABLE: Mapping[type, Callable[[Any], LanceOperation.BaseOperation]] = {
    table.Append: lambda it: LanceOperation.Append(_metadata(it.fragments)),
    table.Overwrite: lambda it: LanceOperation.Overwrite(
        LanceSchema(it.schema), _metadata(it.fragments)
    ),
    table.Delete: _from_delete,
    table.Update: from_update,
    table.Merge: _from_merge,
    table.Project: _from_project,
    table.Restore: lambda it: LanceOperation.Restore(it.version),
    table.Clone: _from_clone,
    table.Rewrite: _from_rewrite,
    table.CreateIndex: _from_indices,
    table.DataReplacement: _from_replacement,
    table.UpdateConfig: _from_config,
}
