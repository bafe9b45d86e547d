"""Logical types: the strings that name a field's type in a Lance schema.

    int32                         timestamp:us:UTC          fixed_size_list:float:768
    dict:string:int32:false       timestamp:us:-            fixed_size_list:fixed_size_list:int8:2:3
    decimal:128:10:2              fixed_size_binary:16      list, large_list.struct, struct, map

A list, large list, map or struct says nothing about its children: they are fields of their own
(`pennon.schema.field`).  A fixed-size list of primitives says everything in the string; one of
structs has its item as a child field.

Source: ledger F-31 to F-38, checked against pylance's manifests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from pennon.errors import FormatError, UnsupportedError

MAX_NESTING = 64
"""Deepest nesting of types that a schema may have; deeper ones come from damage or malice."""

BFLOAT16 = "lance.bfloat16"
EXTENSION_NAME = "ARROW:extension:name"
EXTENSION_METADATA = "ARROW:extension:metadata"
BLOB_V2 = b"lance.blob.v2"
"""The extension name of blob columns of version 2."""

_PLAIN: dict[str, pa.DataType] = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "uint8": pa.uint8(),
    "int16": pa.int16(),
    "uint16": pa.uint16(),
    "int32": pa.int32(),
    "uint32": pa.uint32(),
    "int64": pa.int64(),
    "uint64": pa.uint64(),
    "halffloat": pa.float16(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "large_string": pa.large_string(),
    "large_binary": pa.large_binary(),
    "date32:day": pa.date32(),
    "date64:ms": pa.date64(),
    **{f"time32:{unit}": pa.time32(unit) for unit in ("s", "ms")},
    **{f"time64:{unit}": pa.time64(unit) for unit in ("us", "ns")},
    **{f"duration:{unit}": pa.duration(unit) for unit in ("s", "ms", "us", "ns")},
}
_PLAIN_NAMES = {arrow: logical for logical, arrow in _PLAIN.items()}
_PLAIN_NAMES[pa.string_view()] = "string"
_PLAIN_NAMES[pa.binary_view()] = "binary"

_LISTS = ("list", "list.struct", "large_list", "large_list.struct")
NESTED = frozenset((*_LISTS, "struct", "map"))
"""The logical types whose children are fields."""

Child: TypeAlias = "pa.Field[Any]"

# pyarrow's stubs want the parameters of these as literals; here they come from a file.
_MAP: Any = pa.map_
_TIMESTAMP: Any = pa.timestamp
_DICTIONARY: Any = pa.dictionary


def logical_type(t: pa.DataType) -> str:
    """Return the logical type of an Arrow type; views become their plain twins.

    An extension type has the logical type of its storage, except JSON, which has its own.
    Raises UnsupportedError for types that no file version holds.
    """
    if isinstance(t, pa.BaseExtensionType):
        return "json" if t.extension_name == "arrow.json" else logical_type(t.storage_type)
    plain = _PLAIN_NAMES.get(t)
    if plain is not None:
        return plain
    if pa.types.is_nested(t) or pa.types.is_dictionary(t):
        return _nested_name(t)
    return _parametric_name(t)


def _parametric_name(t: pa.DataType) -> str:
    """Return the logical type of a decimal, timestamp or fixed-size binary."""
    if pa.types.is_decimal128(t) or pa.types.is_decimal256(t):
        return f"decimal:{t.bit_width}:{t.precision}:{t.scale}"
    if pa.types.is_timestamp(t):
        return f"timestamp:{t.unit}:{t.tz or '-'}"
    if pa.types.is_fixed_size_binary(t):
        return f"fixed_size_binary:{t.byte_width}"
    raise _not_held(t)


def _nested_name(t: pa.DataType) -> str:
    """Return the logical type of a type that is made of others."""
    if pa.types.is_struct(t):
        return "struct"
    if pa.types.is_map(t):
        return _map_name(t)
    if pa.types.is_list(t) or pa.types.is_large_list(t):
        kind = "list" if pa.types.is_list(t) else "large_list"
        return f"{kind}.struct" if pa.types.is_struct(storage_type(t.value_type)) else kind
    if pa.types.is_fixed_size_list(t):
        return f"fixed_size_list:{_item_name(t)}:{t.list_size}"
    if pa.types.is_dictionary(t):
        return f"dict:{_value_name(t)}:{logical_type(t.index_type)}:false"
    raise _not_held(t)


def _map_name(t: pa.MapType[Any, Any, Any]) -> str:
    """Return the logical type of a map, which does not say whether the keys are sorted."""
    if t.keys_sorted:
        message = (
            f"type {t} has no logical type: no version of the format keeps that keys are sorted; "
            "cast it to a map without keys_sorted"
        )
        raise UnsupportedError(message)
    return "map"


def _item_name(t: pa.FixedSizeListType[Any, Any]) -> str:
    """Return the logical type of a fixed-size list's items; bfloat16 goes by its extension name."""
    item = t.value_field
    given = (item.metadata or {}).get(EXTENSION_NAME.encode(), b"").decode(errors="replace")
    if BFLOAT16 in (given, getattr(item.type, "extension_name", None)):
        return BFLOAT16
    name = logical_type(item.type)
    if (name in NESTED and name != "struct") or name.startswith("fixed_size_list:struct:"):
        raise _not_held(t)
    return name


def _value_name(t: pa.DictionaryType[Any, Any]) -> str:
    """Return the logical type of a dictionary's values, which must be a plain one.

    The string separates value and index type by a colon, so a value type with a colon in its own
    name does not survive; pylance refuses those too.
    """
    value = logical_type(t.value_type)
    if ":" in value or value in NESTED or value == "json":
        raise _not_held(t)
    return value


def _not_held(t: pa.DataType) -> UnsupportedError:
    return UnsupportedError(f"type {t} has no logical type: no version of the format holds it")


def storage_type(t: pa.DataType) -> pa.DataType:
    """Return the type that an extension type is stored as; any other type is itself."""
    while isinstance(t, pa.BaseExtensionType):
        t = t.storage_type
    return t


def is_plain_type(logical: str) -> bool:
    """Return whether a logical type has neither parameters nor children."""
    return logical in _PLAIN


def arrow_type(logical: str, children: Sequence[Child] = ()) -> pa.DataType:
    """Return the Arrow type of a logical type; ``children`` are those of a nested one.

    ``json`` is the large binary that it is stored as (JSONB); `pennon.schema.arrow` shows it to the
    user as text.  Raises FormatError for a string that is none of the logical types, or whose
    number of children is wrong.
    """
    plain = _PLAIN.get(logical)
    if plain is not None:
        return plain
    if logical.count("fixed_size_list:") + logical.count("dict:") > MAX_NESTING:
        message = "logical type is nested too deep"
        raise FormatError(message)
    if logical == "json":
        return pa.large_binary()
    if logical in NESTED:
        return _nested_type(logical, children)
    head, _, rest = logical.partition(":")
    parse = _PARSERS.get(head)
    if parse is None:
        raise _unknown(logical)
    return parse(rest, children)


def _nested_type(logical: str, children: Sequence[Child]) -> pa.DataType:
    """Return the type of a list, large list, struct or map."""
    if logical == "struct":
        return pa.struct(children)
    if len(children) != 1:
        message = f"logical type {logical!r} has {len(children)} children instead of 1"
        raise FormatError(message)
    (child,) = children
    if logical == "map":
        return _map_type(child)
    return pa.list_(child) if logical.startswith("list") else pa.large_list(child)


def _map_type(entries: Child) -> pa.DataType:
    """Return the map type whose entries are ``entries``: a struct of a key and a value."""
    if not pa.types.is_struct(entries.type) or entries.type.num_fields != 2:
        message = f"the entries of a map have type {entries.type}, not a struct of two fields"
        raise FormatError(message)
    key, value = entries.type.fields
    made: pa.DataType = _MAP(key.with_nullable(False), value)  # noqa: FBT003 - pyarrow's signature
    return made


def _parse_decimal(rest: str, _: Sequence[Child]) -> pa.DataType:
    match = re.fullmatch(r"(128|256):([0-9]{1,2}):(-?[0-9]{1,3})", rest)
    limit = {"128": 38, "256": 76}
    if match is None:
        raise _unknown(f"decimal:{rest}")
    bits, precision, scale = match[1], int(match[2]), int(match[3])
    if not 1 <= precision <= limit[bits] or not -128 <= scale <= 127:
        raise _unknown(f"decimal:{rest}")
    make = pa.decimal128 if bits == "128" else pa.decimal256
    return make(precision, scale)


def _parse_timestamp(rest: str, _: Sequence[Child]) -> pa.DataType:
    unit, colon, zone = rest.partition(":")
    if unit not in ("s", "ms", "us", "ns") or not colon or not zone:
        raise _unknown(f"timestamp:{rest}")
    made: pa.DataType = _TIMESTAMP(unit, None if zone == "-" else zone)
    return made


def _parse_fixed_size_binary(rest: str, _: Sequence[Child]) -> pa.DataType:
    return pa.binary(_size(rest, f"fixed_size_binary:{rest}"))


def _parse_fixed_size_list(rest: str, children: Sequence[Child]) -> pa.DataType:
    inner, _, size = rest.rpartition(":")
    dimension = _size(size, f"fixed_size_list:{rest}")
    if inner == BFLOAT16:
        metadata = {EXTENSION_NAME: BFLOAT16, EXTENSION_METADATA: ""}
        return pa.list_(pa.field("item", pa.binary(2), metadata=metadata), dimension)
    if inner == "struct" and len(children) == 1:
        return pa.list_(children[0], dimension)
    if inner in NESTED:
        raise _unknown(f"fixed_size_list:{rest}")
    return pa.list_(pa.field("item", arrow_type(inner)), dimension)


def _parse_dictionary(rest: str, _: Sequence[Child]) -> pa.DataType:
    parts = rest.rsplit(":", 2)
    if len(parts) != 3 or parts[0] in NESTED or parts[2] not in ("false", "true"):
        raise _unknown(f"dict:{rest}")
    index = _PLAIN.get(parts[1], pa.null())
    if not pa.types.is_integer(index):
        raise _unknown(f"dict:{rest}")
    ordered = parts[2] == "true"
    made: pa.DataType = _DICTIONARY(index, arrow_type(parts[0]), ordered=ordered)
    return made


_PARSERS: dict[str, Callable[[str, Sequence[Child]], pa.DataType]] = {
    "decimal": _parse_decimal,
    "timestamp": _parse_timestamp,
    "fixed_size_binary": _parse_fixed_size_binary,
    "fixed_size_list": _parse_fixed_size_list,
    "dict": _parse_dictionary,
}


_DIGITS = re.compile(r"[0-9]{1,10}")


def _size(digits: str, logical: str) -> int:
    """Parse a width or dimension: an int32 that is not negative."""
    if _DIGITS.fullmatch(digits) is None or int(digits) >= 1 << 31:
        raise _unknown(logical)
    return int(digits)


def _unknown(logical: str) -> FormatError:
    shown = logical if len(logical) <= 80 else logical[:77] + "..."
    return FormatError(f"unknown logical type {shown!r}")
