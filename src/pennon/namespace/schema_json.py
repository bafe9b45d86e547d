"""Arrow schemas as the JSON of the REST specification."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.types as kinds

_NAMES: Final = {
    "string": "utf8",
    "large_string": "large_utf8",
    "halffloat": "float16",
    "float": "float32",
    "double": "float64",
    "bool": "bool",
    "date32[day]": "date32",
    "date64[ms]": "date64",
}
"""The names of types that Arrow's text calls otherwise."""


def schema_to_json(schema: pa.Schema) -> dict[str, Any]:
    """Return a schema as the specification's JsonArrowSchema."""
    found: dict[str, Any] = {"fields": [_field(each) for each in schema]}
    if schema.metadata:
        found["metadata"] = _texts(schema.metadata)
    return found


def _field(field: pa.Field) -> dict[str, Any]:
    found = {"name": field.name, "nullable": field.nullable, "type": _type(field.type)}
    if field.metadata:
        found["metadata"] = _texts(field.metadata)
    return found


def _type(kind: pa.DataType) -> dict[str, Any]:
    if isinstance(kind, pa.BaseExtensionType):
        return _type(kind.storage_type)
    if kinds.is_struct(kind):
        return {"type": "struct", "fields": [_field(each) for each in kind]}
    if kinds.is_fixed_size_list(kind):
        fields = [_field(kind.value_field)]
        return {"type": "fixed_size_list", "fields": fields, "length": kind.list_size}
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        name = "large_list" if kinds.is_large_list(kind) else "list"
        return {"type": name, "fields": [_field(kind.value_field)]}
    if kinds.is_fixed_size_binary(kind):
        return {"type": "fixed_size_binary", "length": kind.byte_width}
    text = str(kind)
    return {"type": _NAMES.get(text, text)}


def _texts(metadata: Any) -> dict[str, str]:
    return {
        key.decode(errors="replace"): value.decode(errors="replace")
        for key, value in metadata.items()
    }
