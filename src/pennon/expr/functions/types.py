"""Functions of types, and those that make structs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from pennon.expr.cast import Datum, cast
from pennon.expr.rowwise import Entry, as_arrays, count_of

MOST_ITEMS: Final = 1 << 16
_UNITS: Final = {"Second": "s", "Millisecond": "ms", "Microsecond": "us", "Nanosecond": "ns"}
_SHORT_UNITS: Final = {"s": "s", "ms": "ms", "us": "µs", "ns": "ns"}
_NAMED: Final[Mapping[str, pa.DataType]] = {
    "Null": pa.null(),
    "Boolean": pa.bool_(),
    **{f"Int{bits}": pa.type_for_alias(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"UInt{bits}": pa.type_for_alias(f"uint{bits}") for bits in (8, 16, 32, 64)},
    "Float16": pa.float16(),
    "Float32": pa.float32(),
    "Float64": pa.float64(),
    "Utf8": pa.string(),
    "LargeUtf8": pa.large_string(),
    "Utf8View": pa.string(),
    "Binary": pa.binary(),
    "LargeBinary": pa.large_binary(),
    "BinaryView": pa.binary(),
    "Date32": pa.date32(),
    "Date64": pa.date64(),
}
"""Types by the names that the reference has for them.  Views become what they view."""
_NAMES: Final = {kind: name for name, kind in _NAMED.items() if "View" not in name}


def parse_type(text: str) -> pa.DataType:
    """Return the type of a name such as ``Timestamp(Microsecond, Some("UTC"))``.

    Raises ArrowInvalid for names that are not known.
    """
    named = _NAMED.get(text.strip())
    if named is not None:
        return named
    found = re.fullmatch(r"\s*(\w+)\((.*)\)\s*", text, re.DOTALL)
    make = _MADE.get(found.group(1)) if found else None
    if found is None or make is None:
        message = f"there is no type {text[:60]!r}; there are {', '.join([*_NAMED, *_MADE])}"
        raise pa.ArrowInvalid(message)
    try:
        return make([each.strip() for each in found.group(2).split(",", 1)])
    except (KeyError, ValueError, IndexError) as error:
        message = f"there is no type {text[:60]!r}: {error}"
        raise pa.ArrowInvalid(message) from error


def _timestamp(words: Sequence[str]) -> pa.DataType:
    zone = re.fullmatch(r'None|Some\("(.*)"\)', words[1])
    if zone is None:
        message = f"{words[1]} is no zone"
        raise ValueError(message)
    return pa.timestamp(_UNITS[words[0]], zone.group(1))


def _time(words: Sequence[str]) -> pa.DataType:
    unit = _UNITS[words[0]]
    return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)


def _fixed_size_list(words: Sequence[str]) -> pa.DataType:
    """Return the type of lists of so many items, which come first; a NULL takes room for all."""
    items = int(words[0])
    if not 0 < items <= MOST_ITEMS:
        message = f"lists have 1 to {MOST_ITEMS} items"
        raise ValueError(message)
    return pa.list_(parse_type(words[1]), items)


_MADE: Final[Mapping[str, Callable[[list[str]], pa.DataType]]] = {
    "Timestamp": _timestamp,
    "Time32": _time,
    "Time64": _time,
    "Duration": lambda words: pa.duration(_UNITS[words[0]]),
    "Decimal128": lambda words: pa.decimal128(int(words[0]), int(words[1])),
    "Decimal256": lambda words: pa.decimal256(int(words[0]), int(words[1])),
    "FixedSizeBinary": lambda words: pa.binary(int(words[0])),
    "List": lambda words: pa.list_(parse_type(",".join(words))),
    "LargeList": lambda words: pa.large_list(parse_type(",".join(words))),
    "FixedSizeList": _fixed_size_list,
}


def name_of(kind: pa.DataType) -> str:
    """Return the reference's name for a type.  Raises ArrowInvalid for those that differ by release."""
    known = _NAMES.get(kind)
    if known is not None:
        return str(known)
    if t.is_timestamp(kind):
        zone = f', "{kind.tz}"' if kind.tz else ""
        return f"Timestamp({_SHORT_UNITS[kind.unit]}{zone})"
    if t.is_decimal(kind):
        return f"Decimal{kind.bit_width}({kind.precision}, {kind.scale})"
    if t.is_list(kind):
        return f"List({name_of(kind.value_type)})"
    if t.is_large_list(kind):
        return f"LargeList({name_of(kind.value_type)})"
    if t.is_duration(kind):
        return f"Duration({_SHORT_UNITS[kind.unit]})"
    if t.is_struct(kind):
        fields = [f'"{field.name}": {name_of(field.type)}' for field in kind]
        return f"Struct({', '.join(fields)})"
    message = f"{kind} has no name"
    raise pa.ArrowInvalid(message)


def _type_name(values: Datum) -> Datum:
    return pa.scalar(name_of(values.type))


def _cast(values: Datum, name: Datum) -> Datum:
    if not isinstance(name, pa.StringScalar) or not name.is_valid:
        message = "the type must be a literal"
        raise pa.ArrowInvalid(message)
    return cast(values, parse_type(name.as_py()))


# --- structs --------------------------------------------------------------------------------------


def _struct_of(names: Sequence[str], values: Sequence[Datum]) -> Datum:
    if len(set(names)) < len(names):
        message = "the fields of a struct have different names"
        raise pa.ArrowInvalid(message)
    found = pa.StructArray.from_arrays(as_arrays(values), list(names))
    return found if count_of(values) is not None else found[0]


def _struct(*values: Datum) -> Datum:
    """Return structs whose fields are ``c0``, ``c1`` and so on."""
    return _struct_of([f"c{number}" for number in range(len(values))], values)


def _named_struct(*words: Datum) -> Datum:
    """Return structs, of a name and a value for each field."""
    names = [each.as_py() if isinstance(each, pa.StringScalar) else None for each in words[::2]]
    if len(words) % 2 or not all(isinstance(name, str) for name in names):
        message = "named_struct takes a literal name before each value"
        raise pa.ArrowInvalid(message)
    return _struct_of([str(name) for name in names], words[1::2])


def _field(values: Datum, name: Datum) -> Datum:
    if not t.is_struct(values.type) or not isinstance(name, pa.StringScalar):
        message = f"{values.type} has no fields"
        raise pa.ArrowInvalid(message)
    names = [field.name for field in values.type]
    if name.as_py() not in names:
        message = f"there is no field {name.as_py()!r}; there are {', '.join(names)}"
        raise pa.ArrowInvalid(message)
    return pc.struct_field(values, [name.as_py()])


_STRUCT: Entry = (_struct, 1, None)

TYPES: Final[Mapping[str, Entry]] = {
    "arrow_cast": (_cast, 2, 2),
    "arrow_typeof": (_type_name, 1, 1),
    "struct": _STRUCT,
    "row": _STRUCT,
    "named_struct": (_named_struct, 2, None),
    "get_field": (_field, 2, 2),
}
