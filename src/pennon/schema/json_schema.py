"""Arrow schemas as JSON values, in the words that Lance has for types: names of ``lance.schema``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import pyarrow as pa

from pennon.errors import FormatError, UnsupportedError
from pennon.schema.extension import extension_metadata
from pennon.schema.types import EXTENSION_NAME, arrow_type, logical_type

_DEEPEST: Final = 100
"""So deep may fields lie within fields: a text that is deeper is no schema."""


def schema_to_json(schema: pa.Schema) -> dict[str, Any]:
    """Return an Arrow schema as a JSON value: fields with name, type, nullability and metadata.

    Extension types are their storage, with the name among the metadata of the field.  Raises UnsupportedError
    for types that Lance's JSON has no word for: maps, and those that no file holds.

    >>> import pyarrow as pa
    >>> from pennon.schema import schema_to_json
    >>> schema_to_json(pa.schema([("id", pa.int64())]))
    {'fields': [{'name': 'id', 'type': {'type': 'int64'}, 'nullable': True}]}
    """
    found: dict[str, Any] = {"fields": [_field(each) for each in schema]}
    if schema.metadata:
        found["metadata"] = _texts(schema.metadata)
    return found


def json_to_schema(schema_json: Mapping[str, Any]) -> pa.Schema:
    """Return the Arrow schema that a JSON value of `schema_to_json` describes.

    Raises FormatError (a ValueError) if it describes none.

    >>> from pennon.schema import json_to_schema
    >>> json_to_schema({"fields": [{"name": "id", "type": {"type": "int64"}, "nullable": True}]})
    id: int64
    """
    fields = _fields_of(schema_json, 0)
    return pa.schema(fields, _metadata(schema_json))


# --- to JSON --------------------------------------------------------------------------------------


def _field(field: pa.Field[Any]) -> dict[str, Any]:
    kind = field.type
    metadata = dict(field.metadata or {})
    if isinstance(kind, pa.BaseExtensionType):
        parts = extension_metadata(kind) | {EXTENSION_NAME: kind.extension_name.encode()}
        metadata |= {key.encode(): value for key, value in parts.items()}
    found = {"name": field.name, "type": _type(kind), "nullable": field.nullable}
    return {**found, "metadata": _texts(metadata)} if metadata else found


def _type(kind: pa.DataType) -> dict[str, Any]:
    types: Any = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _type(kind.storage_type)
    if types.is_map(kind):
        message = f"a schema as JSON has no maps: {kind}"
        raise UnsupportedError(message)
    if types.is_fixed_size_binary(kind):
        return {"type": "fixed_size_binary", "length": kind.byte_width}
    found: dict[str, Any] = {"type": logical_type(kind).partition(".struct")[0]}
    if types.is_struct(kind):
        found["fields"] = [_field(each) for each in kind.fields]
    if types.is_fixed_size_list(kind):
        found = {"type": "fixed_size_list", "length": kind.list_size}
    if types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind):
        found["fields"] = [_field(kind.value_field)]
    return found


def _texts(metadata: Mapping[bytes, bytes]) -> dict[str, str]:
    pairs = metadata.items()
    return {k.decode(errors="replace"): v.decode(errors="replace") for k, v in pairs}


# --- from JSON ------------------------------------------------------------------------------------


def _fields_of(found: Any, depth: int) -> list[pa.Field[Any]]:
    fields = found.get("fields") if isinstance(found, Mapping) else None
    if not isinstance(fields, Iterable) or isinstance(fields, (str, bytes, Mapping)):
        message = f"a schema as JSON has a list of fields, got {str(found)[:80]!r}"
        raise FormatError(message)
    if depth > _DEEPEST:
        message = f"fields lie within fields more than {_DEEPEST} deep"
        raise FormatError(message)
    return [_parse_field(each, depth) for each in fields]


def _parse_field(found: Any, depth: int) -> pa.Field[Any]:
    if not isinstance(found, Mapping) or not isinstance(found.get("name"), str):
        message = f"a field as JSON has a name, a type and whether it is nullable, got {str(found)[:80]!r}"
        raise FormatError(message)
    kind = found.get("type")
    if not isinstance(kind, Mapping) or not isinstance(kind.get("type"), str):
        message = f"the field {found['name']!r} as JSON has no type"
        raise FormatError(message)
    nullable = found.get("nullable") is not False
    return pa.field(found["name"], _parse_type(kind, depth), nullable, _metadata(found))


def _parse_type(kind: Mapping[str, Any], depth: int) -> pa.DataType:
    name = kind["type"]
    if name in ("fixed_size_list", "fixed_size_binary"):
        length = kind.get("length")
        if type(length) is not int or not 0 <= length < 1 << 31:
            message = f"the type {name} has a length of 0 or more, got {length!r}"
            raise FormatError(message)
        if name == "fixed_size_binary":
            return pa.binary(length)
        return pa.list_(_only(_fields_of(kind, depth + 1), name), length)
    if name in ("list", "large_list"):
        child = _only(_fields_of(kind, depth + 1), name)
        return pa.list_(child) if name == "list" else pa.large_list(child)
    return arrow_type(name, _fields_of(kind, depth + 1) if name == "struct" else ())


def _only(fields: list[pa.Field[Any]], name: str) -> pa.Field[Any]:
    if len(fields) != 1:
        message = f"the type {name} has one field, got {len(fields)}"
        raise FormatError(message)
    return fields[0]


def _metadata(found: Mapping[str, Any]) -> dict[str, str] | None:
    metadata = found.get("metadata")
    if metadata is None:
        return None
    if not isinstance(metadata, Mapping):
        message = f"metadata as JSON is an object of texts, got {str(metadata)[:80]!r}"
        raise FormatError(message)
    return {str(key): str(value) for key, value in metadata.items()}
