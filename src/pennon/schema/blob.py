"""Blob columns: large values that lie out of line, and the descriptions that say where.

A table's schema has such a column as what a writer gives it; its data files, and scans, have it as
a struct that describes each value::

    version 1    large_binary with metadata        position, size
    version 2    extension lance.blob.v2            kind, position, size, blob_id, blob_uri

Version 1 is for files up to 2.1, version 2 for those from 2.2 on.

Source: ledger F-24, F-89, F-90.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pennon.schema.check import BLOB, is_blob
from pennon.schema.field import UNASSIGNED, Field, Schema
from pennon.schema.types import EXTENSION_NAME

BLOB_V2: Final = b"lance.blob.v2"
NULL_POSITION: Final = 1
"""The position in a description of version 1 that, with size 0, stands for NULL."""
_PACKED: Final = "lance-encoding:packed"
_DESCRIPTION_V1: Final = (("position", "uint64"), ("size", "uint64"))
_DESCRIPTION_V2: Final = (
    ("kind", "uint8"),
    *_DESCRIPTION_V1,
    ("blob_id", "uint32"),
    ("blob_uri", "string"),
)


def is_blob_v2(field: Field) -> bool:
    """Tell whether a field holds blobs of version 2, as a table's schema has them."""
    return field.metadata.get(EXTENSION_NAME) == BLOB_V2


def is_description(field: Field) -> bool:
    """Tell whether a field is what `describe` makes of a blob column."""
    return field.logical_type == "struct" and is_blob(field)


def has_blobs(schema: Schema) -> bool:
    """Tell whether a table's schema has a blob column, at any depth."""
    return any(map(_has_blobs, schema.fields))


def _has_blobs(field: Field) -> bool:
    if field.metadata and (is_blob(field) or is_blob_v2(field)):
        return True
    return bool(field.children) and any(map(_has_blobs, field.children))


def describe_blobs(schema: Schema) -> Schema:
    """Return the schema that scans show: blob columns as their descriptions."""
    if not has_blobs(schema):
        return schema
    return replace(schema, fields=tuple(map(describe, schema.fields)))


def describe(field: Field) -> Field:
    """Return a field with the blob columns in it as their descriptions; ids stay."""
    if is_blob_v2(field):
        return describe_v2(field)
    if is_blob(field) and not is_description(field):
        parts = tuple(Field(name, UNASSIGNED, kind) for name, kind in _DESCRIPTION_V1)
        return replace(field, logical_type="struct", children=parts)
    if not field.children:
        return field
    return replace(field, children=tuple(map(describe, field.children)))


def describe_v2(field: Field) -> Field:
    """Return a column of blobs of version 2 as its description: a packed struct, in one column."""
    metadata = {BLOB: b"true", _PACKED: b"true"}
    parts = tuple(Field(name, UNASSIGNED, kind, nullable=False) for name, kind in _DESCRIPTION_V2)
    return replace(field, logical_type="struct", metadata=metadata, children=parts)
