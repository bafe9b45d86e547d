"""Maps, and the marked lists of entries that stand for them in files that have no maps.

Files of version 2.2 have maps.  Before, a ``map<string, bigint>`` of Spark is stored as

    list<entries: struct<key: string not null, value: int64> not null>

and its field carries the metadata ``pennon:logical-type`` = ``map``.  To every other reader of Lance
it is a list of structs.  The mark stands at the list's own field, so maps in structs, in lists (at
the item), and in keys and values of maps each have theirs.
A mark is believed where it can be true: on a list of structs of two fields, where neither the
struct nor its first field is ever NULL.  Elsewhere the column is what its type says.

The fields of both forms are the same but for the logical type and the mark, and keep their ids.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pat

from pennon.errors import Breadcrumb, InvalidSchemaError
from pennon.schema.arrow import storage_field
from pennon.schema.field import Field, Schema
from pennon.schema.version import Ability, FileVersion

MARK: Final = "pennon:logical-type"
MAP: Final = "map"


def map_storage_field(name: str, key: pa.Field[Any], value: pa.Field[Any]) -> pa.Field[Any]:
    """Return the field, with its mark, in which a map of these keys and values is stored."""
    pair = [key.with_name("key").with_nullable(nullable=False), value.with_name("value")]
    entries = pa.field("entries", pa.struct(pair), nullable=False)
    return pa.field(name, pa.list_(entries), metadata={MARK: MAP})


def map_entries(field: pa.Field[Any]) -> tuple[pa.Field[Any], pa.Field[Any]] | None:
    """Return the fields of key and value if the column is a map, by type or by mark, else None."""
    if pat.is_map(field.type):
        return field.type.key_field, field.type.item_field
    if (field.metadata or {}).get(MARK.encode()) != MAP.encode():
        return None
    if not pat.is_list(field.type) and not pat.is_large_list(field.type):
        return None
    entries = field.type.value_field
    if entries.nullable or not pat.is_struct(entries.type) or entries.type.num_fields != 2:
        return None
    key, value = entries.type.field(0), entries.type.field(1)
    return None if key.nullable else (key, value)


def check_maps(schema: Schema) -> None:
    """Raise InvalidSchemaError unless every map has a key, never NULL, and a value.

    Not even the schema of a table with another map can be read.

    Source: ledger F-391.
    """
    for field in schema.walk():
        if field.logical_type != MAP:
            continue
        parts = [child.children for child in field.children if not child.nullable]
        if not parts or len(parts[0]) != 2 or parts[0][0].nullable:
            message = f"map {field.name!r} needs a key that is never NULL, and a value"
            raise InvalidSchemaError(message, where=Breadcrumb(column=field.name))


def with_maps_of(schema: Schema, version: FileVersion) -> Schema:
    """Return a schema with its maps, and what is marked as such, as files of a version have them."""
    fields = tuple(_with_maps(field, real=version.holds(Ability.MAPS)) for field in schema.fields)
    return schema if fields == schema.fields else replace(schema, fields=fields)


def _with_maps(field: Field, *, real: bool) -> Field:
    field = field.with_children(lambda child: _with_maps(child, real=real))
    if real and field.logical_type != MAP and _is_marked(field):
        metadata = {key: value for key, value in field.metadata.items() if key != MARK}
        return replace(field, logical_type=MAP, metadata=metadata)
    if not real and field.logical_type == MAP:
        metadata = {**field.metadata, MARK: MAP.encode()}
        return replace(field, logical_type="list.struct", metadata=metadata)
    return field


def _is_marked(field: Field) -> bool:
    return MARK in field.metadata and map_entries(storage_field(field)) is not None


def converted_maps(array: Any, kind: pa.DataType) -> pa.Array[Any]:
    """Return values as a type that differs in what is a map, and what a list of entries, alone."""
    if array.type.equals(kind):
        return array
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if isinstance(kind, pa.BaseExtensionType):
        return kind.wrap_array(converted_maps(array, kind.storage_type))
    if pat.is_struct(kind):
        children = [converted_maps(array.field(n), child.type) for n, child in enumerate(kind)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    if pat.is_map(kind):
        item = pa.struct([kind.key_field, kind.item_field])
        if pat.is_large_list(array.type):
            array = array.cast(pa.list_(array.type.value_field))
    else:
        item = kind.value_type
    buffers = array.buffers()[: 1 if pat.is_fixed_size_list(kind) else 2]
    items = converted_maps(array.values, item)
    return pa.Array.from_buffers(kind, len(array), buffers, offset=array.offset, children=[items])
