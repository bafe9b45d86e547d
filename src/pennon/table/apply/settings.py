"""Operations that touch no row: config and metadata, base paths, indices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from pennon.core.units import FieldId
from pennon.errors import ArgumentError
from pennon.schema.field import Field, Schema
from pennon.table.apply.context import ApplyContext
from pennon.table.fields_wire import with_metadata
from pennon.table.fragment import BasePath
from pennon.table.indices import check_index_name
from pennon.table.indices_wire import parse_indices, serialize_indices
from pennon.table.manifest import Manifest
from pennon.table.operations import CreateIndex, MapUpdate, UpdateBases, UpdateConfig


def update_config(head: Manifest, operation: UpdateConfig, around: ApplyContext) -> Manifest:
    """Change config, and metadata of the table, the schema and of fields.

    Raises ArgumentError for a field that is not there.
    """
    known = {field.id for field in head.schema.walk()}
    missing = sorted(set(operation.fields) - known)
    if missing:
        message = f"the schema has no field with id {missing[0]}"
        raise ArgumentError(message)
    metadata = _updated_bytes(head.schema.metadata, operation.schema_metadata)
    fields = tuple(_with_metadata(field, operation.fields) for field in head.schema.fields)
    return replace(
        head,
        schema=Schema(fields, metadata),
        fields_wire=_updated_wire(head, operation) if operation.fields else head.fields_wire,
        fragments=around.completed(head),
        config=updated(head.config, operation.config),
        table_metadata=updated(head.table_metadata, operation.table_metadata),
    )


def updated(old: Mapping[str, str], update: MapUpdate | None) -> Mapping[str, str]:
    """Return a map with changes made."""
    if update is None:
        return old
    merged = {**({} if update.replace else old), **update.entries}
    return {key: value for key, value in merged.items() if value is not None}


def _updated_bytes(old: Mapping[str, bytes], update: MapUpdate | None) -> Mapping[str, bytes]:
    if update is None:
        return old
    kept = {} if update.replace else {k: v for k, v in old.items() if k not in update.entries}
    new = {k: v.encode() for k, v in update.entries.items() if v is not None}
    return {**kept, **new}


def _with_metadata(field: Field, updates: Mapping[FieldId, MapUpdate]) -> Field:
    children = tuple(_with_metadata(child, updates) for child in field.children)
    metadata = _updated_bytes(field.metadata, updates.get(field.id))
    return replace(field, children=children, metadata=metadata)


def _updated_wire(head: Manifest, operation: UpdateConfig) -> tuple[bytes, ...]:
    """Return the messages of the fields, with their new metadata."""
    changes = {
        number: partial(_updated_bytes, update=update)
        for number, update in operation.fields.items()
    }
    return with_metadata(head.fields_wire, head.schema, changes)


def create_index(head: Manifest, operation: CreateIndex, around: ApplyContext) -> Manifest:
    """Take indices away, and add others, which replace those of the same name.

    Raises ArgumentError for a name that is reserved.
    """
    for index in operation.new:
        check_index_name(index.name, index.type_name)
    names = {index.name for index in operation.new}
    gone = {index.uuid for index in operation.removed}
    kept = [
        index
        for index in parse_indices(head.indices)
        if index.name not in names and index.uuid not in gone
    ]
    indices = serialize_indices([*kept, *operation.new])
    return replace(head, fragments=around.completed(head), indices=indices)


def update_bases(head: Manifest, operation: UpdateBases, around: ApplyContext) -> Manifest:
    """Add roots for files; raises ArgumentError if one is there already."""
    bases = with_new_bases(head.base_paths, operation.new_bases)
    return replace(head, fragments=around.completed(head), base_paths=bases)


def with_new_bases(old: Iterable[BasePath], new: Iterable[BasePath]) -> tuple[BasePath, ...]:
    """Return base paths and further ones; each with id 0 gets the next id.

    Raises ArgumentError if an id, a name or a path is there already.
    """
    bases = list(old)
    for each in new:
        last = max((base.id for base in bases), default=0)
        base = replace(each, id=last + 1) if each.id == 0 else each
        _check_new(base, bases)
        bases.append(base)
    return tuple(bases)


def _check_new(new: BasePath, bases: list[BasePath]) -> None:
    for base in bases:
        same_name = new.name is not None and new.name == base.name
        if same_name or new.path == base.path or new.id == base.id:
            message = f"base path {new} clashes with {base}"
            raise ArgumentError(message)
