"""Blob columns: large values that lie out of line, and the descriptions that say where.

A table's schema has such a column as what a writer gives it; its data files, and scans, have it as
a struct that describes each value::

    version 1    large_binary with metadata        position, size
    version 2    extension lance.blob.v2            kind, position, size, blob_id, blob_uri

Version 1 is for files up to 2.1, version 2 for those from 2.2 on.

Source: ledger F-24, F-89, F-90.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from pennon.core.fast_dataclass import dataclass
from pennon.core.units import KIB, MIB
from pennon.errors import InvalidSchemaError
from pennon.schema.blob_parts import (
    BLOB_PARTS,
    DEDICATED_THRESHOLD,
    INLINE_THRESHOLD,
    PACK_THRESHOLD,
)
from pennon.schema.check import BLOB, is_blob, is_blob_v2
from pennon.schema.field import UNASSIGNED, Field, Schema
from pennon.schema.types import BLOB_V2, EXTENSION_NAME

THRESHOLDS: Final = {
    INLINE_THRESHOLD: (64 * KIB, 0),
    DEDICATED_THRESHOLD: (4 * MIB, 1),
    PACK_THRESHOLD: (1024 * MIB, 1),
}
"""Metadata of a column: what it is by default, and the least that it may be, in bytes."""
_NUMBER: Final = re.compile(r"[0-9]{1,20}", re.ASCII)
NULL_POSITION: Final = 1
"""The position in a description of version 1 that, with size 0, stands for NULL."""
_PACKED: Final = "lance-encoding:packed"
_DESCRIPTION_V1: Final = (("position", "uint64"), ("size", "uint64"))
DESCRIPTION_V2: Final = (
    ("kind", "uint8"),
    *_DESCRIPTION_V1,
    ("blob_id", "uint32"),
    ("blob_uri", "string"),
)
"""The parts of a description of version 2, and their logical types."""
_PREPARED: Final = (*DESCRIPTION_V2, ("data", "large_binary"))


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
        parts = _parts(_DESCRIPTION_V1)
        return replace(field, logical_type="struct", children=parts)
    return field.with_children(describe)


def _parts(kinds: Iterable[tuple[str, str]], *, nullable: bool = True) -> tuple[Field, ...]:
    """Return fields of these names and logical types, without ids."""
    return tuple(Field(name, UNASSIGNED, kind, nullable=nullable) for name, kind in kinds)


def describe_v2(field: Field) -> Field:
    """Return a column of blobs of version 2 as its description: a packed struct, in one column."""
    metadata = {BLOB: b"true", _PACKED: b"true"}
    parts = _parts(DESCRIPTION_V2, nullable=False)
    return replace(field, logical_type="struct", metadata=metadata, children=parts)


def describe_v1(field: Field) -> Field:
    """Return a column of blobs as its description of version 1."""
    parts = _parts(_DESCRIPTION_V1)
    return replace(field, logical_type="struct", metadata={BLOB: b"true"}, children=parts)


def is_description_v2(field: Field) -> bool:
    """Tell whether a field is what `describe_v2` makes of a blob column."""
    return is_description(field) and len(field.children) == len(DESCRIPTION_V2)


def prepare_v2(field: Field) -> Field:
    """Return a column of blobs of version 2 as a file's writer takes it: described, with inline bytes."""
    metadata = {BLOB: b"true", _PACKED: b"true"}
    parts = _parts(_PREPARED)
    return replace(field, logical_type="struct", metadata=metadata, children=parts)


def upgraded(field: Field) -> Field:
    """Return a field with its blob columns of version 1 as those of version 2, as files of 2.2 have them.

    They get the two parts that pylance gives them; ids are to be given anew.  Source: ledger F-402.
    """
    if is_blob(field) and field.logical_type == "large_binary":
        kept = {key: value for key, value in field.metadata.items() if key != BLOB}
        parts = _parts(BLOB_PARTS[:2])
        metadata = {**kept, EXTENSION_NAME: BLOB_V2}
        return replace(field, logical_type="struct", metadata=metadata, children=parts)
    return field.with_children(upgraded)


def whole_v2(field: Field) -> Field:
    """Return a column of blobs of version 2 with all the parts that a writer may fill in."""
    parts = _parts(BLOB_PARTS)
    return replace(field, children=parts)


def with_blobs_v2(field: Field, change: Callable[[Field], Field]) -> Field:
    """Return a field with the blob columns of version 2 in it changed; itself if it has none."""
    if is_blob_v2(field):
        return change(field)
    return field.with_children(lambda child: with_blobs_v2(child, change))


def has_blobs_v2(schema: Schema) -> bool:
    """Tell whether a table's schema has a blob column of version 2, at any depth."""
    return any(map(holds_blobs_v2, schema.fields))


def holds_blobs_v2(field: Field) -> bool:
    """Tell whether a field is a blob column of version 2, or has one in it."""
    if field.metadata and is_blob_v2(field):
        return True
    return bool(field.children) and any(map(holds_blobs_v2, field.children))


def described_v2(schema: Schema) -> Schema:
    """Return a schema with blobs of version 2 as their descriptions; bytes of version 1 stay."""
    if not has_blobs_v2(schema):
        return schema
    return replace(schema, fields=tuple([with_blobs_v2(f, describe_v2) for f in schema.fields]))


def bytes_v2(field: Field) -> Field:
    """Return a column of blobs of version 2 as a column of their bytes."""
    kept = {key: value for key, value in field.metadata.items() if key != EXTENSION_NAME}
    return replace(field, logical_type="large_binary", metadata=kept, children=())


def blobs_as_bytes(schema: Schema) -> Schema:
    """Return a schema with the blobs of version 2 as bytes."""
    if not has_blobs_v2(schema):
        return schema
    return replace(schema, fields=tuple([with_blobs_v2(f, bytes_v2) for f in schema.fields]))


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The sizes in bytes that decide where blobs of a column are stored.

    More than ``dedicated``: in a file of their own; else more than ``inline``: in one that has up to
    ``pack`` bytes; else in the data file.

    Source: ledger F-400.
    """

    inline: int
    dedicated: int
    pack: int

    @classmethod
    def of(cls, field: Field) -> Thresholds:
        """Return those of a column.  Raises InvalidSchemaError for metadata that is no size."""
        return cls(*(_threshold(field, key) for key in THRESHOLDS))


def _threshold(field: Field, key: str) -> int:
    default, least = THRESHOLDS[key]
    given = field.metadata.get(key)
    if given is None:
        return default
    text = given.decode(errors="replace")
    if not _NUMBER.fullmatch(text) or not least <= int(text) < 1 << 64:
        wanted = "a positive" if least else "a non-negative"
        message = f"column {field.name!r} has {key}={text!r}, which must be {wanted} 64-bit integer"
        raise InvalidSchemaError(message)
    return int(text)


def other_threshold(table: Field, data: Field) -> str | None:
    """Return what data says of thresholds that is not so in the table; None if it says nothing such."""
    for key in THRESHOLDS:
        if key in data.metadata:
            theirs, mine = _threshold(data, key), _threshold(table, key)
            if theirs != mine:
                return f"{key} is {mine}, and not {theirs}, which no append can change"
    return None
