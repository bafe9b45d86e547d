"""Lance schema to Arrow schema and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

import pyarrow as pa

from pennon.core.units import FieldId
from pennon.errors import ArgumentError, Breadcrumb, LanceError
from pennon.schema.extension import JSON_STORED, extension_metadata, restore_extension
from pennon.schema.field import Field, Schema
from pennon.schema.types import (
    EXTENSION_METADATA,
    EXTENSION_NAME,
    MAX_NESTING,
    arrow_type,
    logical_type,
    storage_type,
)


def schema_from_arrow(s: pa.Schema, first_id: int = 0) -> Schema:
    """Return the Lance schema of ``s`` with field ids ``first_id``, + 1, ... depth first.

    Raises UnsupportedError, with the column's path, for a type that no file version holds.
    """
    ids = count(first_id)
    return Schema(tuple(_from_arrow(f, ids, ()) for f in s), _text_keys(s.metadata))


def _from_arrow(f: pa.Field[Any], ids: Iterator[int], path: tuple[str, ...]) -> Field:
    """Return one field and, below it, its children."""
    path = (*path, f.name)
    if len(path) > MAX_NESTING:
        message = f"column {path[0]!r} is nested deeper than {MAX_NESTING} levels"
        raise ArgumentError(message)
    metadata = _text_keys(f.metadata)
    if isinstance(f.type, pa.BaseExtensionType):
        metadata |= extension_metadata(f.type)
    field_id = FieldId(next(ids))
    logical = _logical_type_of(f, metadata, path)
    children = tuple(_from_arrow(child, ids, path) for child in child_fields(f.type))
    return Field(f.name, field_id, logical, f.nullable, metadata, children)


def _logical_type_of(f: pa.Field[Any], metadata: Mapping[str, bytes], path: tuple[str, ...]) -> str:
    """Return the logical type of a field; JSON is known by the extension name, too."""
    if metadata.get(EXTENSION_NAME) == JSON_STORED.encode():
        return "json"
    try:
        return logical_type(f.type)
    except LanceError as error:
        raise error.located(Breadcrumb(column=".".join(path))) from None


def child_fields(t: pa.DataType) -> list[pa.Field[Any]]:
    """Return the Arrow fields that are fields of the Lance schema below one of type ``t``."""
    t = storage_type(t)
    if pa.types.is_struct(t):
        return list(t.fields)
    if pa.types.is_list(t) or pa.types.is_large_list(t):
        return [t.value_field]
    if pa.types.is_fixed_size_list(t) and pa.types.is_struct(storage_type(t.value_type)):
        return [t.value_field]
    if pa.types.is_map(t):
        return [pa.field("entries", pa.struct([t.key_field, t.item_field]), nullable=False)]
    return []


def schema_to_arrow(s: Schema) -> pa.Schema:
    """Return the Arrow schema that users see; raises FormatError for an unknown logical type."""
    return pa.schema([field_to_arrow(f) for f in s.fields], metadata=arrow_metadata(s.metadata))


def field_to_arrow(f: Field) -> pa.Field[Any]:
    """Return the Arrow field that users see: extension types restored where registered."""
    stored = storage_field(f)
    return stored if f.arrow is not None else restore_extension(_shown(f))


def storage_field(f: Field) -> pa.Field[Any]:
    """Return the field as it is stored: storage types with metadata, JSON as large binary.

    Where nothing in it is of an extension type, it is made once.
    """
    if f.arrow is not None:
        return f.arrow
    children = [storage_field(child) for child in f.children]
    made = _to_arrow(f, children, pa.large_binary())
    if not _is_extension(f) and all(child.arrow is not None for child in f.children):
        object.__setattr__(f, "arrow", made)
    return made


def _shown(f: Field) -> pa.Field[Any]:
    """Return the field with JSON as text, and the metadata that tell of extension types."""
    return _to_arrow(f, [_shown(child) for child in f.children], pa.string())


def _to_arrow(f: Field, children: list[pa.Field[Any]], json: pa.DataType) -> pa.Field[Any]:
    """Return one Arrow field of its children; ``json`` is the type that stands for JSON."""
    try:
        t = json if f.logical_type == "json" else arrow_type(f.logical_type, children)
    except LanceError as error:
        raise error.located(Breadcrumb(column=f.name)) from None
    metadata = f.metadata
    if f.logical_type == "json" and json == pa.string():
        metadata = {**metadata, EXTENSION_NAME: b"arrow.json", EXTENSION_METADATA: b""}
    nullable = f.nullable or f.logical_type == "null"
    return pa.field(f.name, t, nullable=nullable, metadata=arrow_metadata(metadata))


def _is_extension(f: Field) -> bool:
    """Say whether a field is of an extension type itself."""
    logical = f.logical_type
    is_named = EXTENSION_NAME in f.metadata
    return is_named or logical == "json" or logical.startswith("fixed_size_list:lance.")


def _text_keys(metadata: Mapping[bytes, bytes] | None) -> dict[str, bytes]:
    """Return Arrow metadata with the keys as text."""
    return {key.decode(errors="replace"): value for key, value in (metadata or {}).items()}


def arrow_metadata(metadata: Mapping[str, bytes]) -> dict[bytes | str, bytes | str] | None:
    """Return the metadata as pyarrow takes it; Arrow knows no empty metadata, only none."""
    return {key.encode(): value for key, value in metadata.items()} if metadata else None
