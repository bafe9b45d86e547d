"""JSON columns: users see text, files hold JSONB, a binary form of the same value.

::

    value       u32 header | ...        big-endian, as everything here; header: kind | count
                0x20000000 a scalar: one entry, then its bytes
                0x80000000 an array of count items: an entry each, then their bytes
                0x40000000 an object of count members: entries of all keys, entries of all values,
                           bytes of all keys, bytes of all values; keys sorted by their bytes
    entry       u32 kind | number of bytes
                0x00000000 null       0x10000000 string (UTF-8)    0x20000000 number
                0x30000000 false      0x40000000 true              0x50000000 array or object
    number      u8: 0x00 zero | 0x10 NaN | 0x20 infinity | 0x30 -infinity
                    0x40 integer | 0x50 unsigned integer (1, 2, 4 or 8 bytes follow) | 0x60 float64

    [1, true]   80000002 | 20000002 40000000 | 50 01

Numbers lose how they were written (``1E5`` comes back as ``100000.0``), objects the order of keys.

Source: ledger F-36 (pylance 14.0.2, logical type ``json``, 27 values compared byte by byte).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from math import isfinite
from typing import Any, Final

import pyarrow as pa

from pennon.errors import ArgumentError, FormatError, UnsupportedError

MAX_DEPTH: Final = 128
_ARRAY, _OBJECT, _SCALAR = 0x80000000, 0x40000000, 0x20000000
_KIND: Final = 0x70000000
_COUNT: Final = 0x0FFFFFFF
_HEADER_KIND: Final = 0xE0000000
_NULL, _STRING, _NUMBER, _FALSE, _TRUE, _CONTAINER = (number << 28 for number in range(6))
_CONSTANTS: Final = {_NULL: "null", _FALSE: "false", _TRUE: "true"}
_U32: Final = struct.Struct(">I")
_SIZES: Final = (1, 2, 4, 8)


def json_text(stored: pa.Array) -> pa.Array:
    """Return JSON text (strings) for an array of JSONB (large binary); NULL stays NULL.

    Raises FormatError if a value is damaged.
    """
    values = [None if value is None else decode_jsonb(value) for value in stored.to_pylist()]
    return pa.array(values, pa.string())


def json_stored(text: pa.Array) -> pa.Array:
    """Return JSONB (large binary) for an array of JSON text; raises ArgumentError if it is none."""
    values = [None if value is None else encode_jsonb(value) for value in text.to_pylist()]
    return pa.array(values, pa.large_binary())


def decode_jsonb(data: bytes) -> str:
    """Return the JSON text of one value, without spaces."""
    try:
        return _value(data, 0, len(data), 0)
    except (struct.error, UnicodeDecodeError) as error:
        message = f"damaged JSON value: {error}"
        raise FormatError(message) from error


def _value(data: bytes, start: int, end: int, depth: int) -> str:
    """Return the text of the value in ``data[start:end]``."""
    if depth > MAX_DEPTH:
        message = f"JSON nested deeper than {MAX_DEPTH}"
        raise FormatError(message)
    (header,) = _U32.unpack_from(data, start)
    kind, count = header & _HEADER_KIND, header & _COUNT
    if kind == _SCALAR:
        return _entries(data, start + 4, end, 1, depth)[0]
    if kind == _ARRAY:
        return f"[{','.join(_entries(data, start + 4, end, count, depth))}]"
    if kind == _OBJECT:
        texts = _entries(data, start + 4, end, 2 * count, depth)
        members = zip(texts[:count], texts[count:], strict=True)
        return "{" + ",".join(f"{key}:{value}" for key, value in members) + "}"
    message = f"JSON value with header {header:#x}"
    raise FormatError(message)


def _entries(data: bytes, start: int, end: int, count: int, depth: int) -> list[str]:
    """Return the texts of ``count`` entries, whose bytes follow the last of them."""
    at = start + 4 * count
    if at > end:
        message = f"JSON value with {count} entries in {end - start} bytes"
        raise FormatError(message)
    texts = []
    for (entry,) in _U32.iter_unpack(data[start:at]):
        after = at + (entry & _COUNT)
        if after > end:
            message = "JSON value that leaves its bytes"
            raise FormatError(message)
        texts.append(_entry(data, entry & _KIND, at, after, depth))
        at = after
    return texts


def _entry(data: bytes, kind: int, start: int, end: int, depth: int) -> str:
    if kind in _CONSTANTS:
        return _CONSTANTS[kind]
    if kind == _STRING:
        return json.dumps(data[start:end].decode(), ensure_ascii=False)
    if kind == _NUMBER:
        return _number(data[start:end])
    if kind == _CONTAINER:
        return _value(data, start, end, depth + 1)
    message = f"JSON entry of kind {kind:#x}"
    raise FormatError(message)


def _number(data: bytes) -> str:
    kind, rest = data[:1], data[1:]
    if kind == b"\x00" and not rest:
        return "0"
    if kind == b"\x40" and len(rest) in _SIZES:
        return str(int.from_bytes(rest, "big", signed=True))
    if kind == b"\x50" and len(rest) in _SIZES:
        return str(int.from_bytes(rest, "big"))
    if kind == b"\x60" and len(rest) == 8:
        return _float_text(struct.unpack(">d", rest)[0])
    if kind in (b"\x10", b"\x20", b"\x30") and not rest:
        return "null"  # JSON has no way to write NaN and the infinities
    message = f"JSON number of kind {kind.hex()} in {len(data)} bytes"
    raise UnsupportedError(message) if kind == b"\x70" else FormatError(message)


def _float_text(value: float) -> str:
    """Return the shortest text that reads back as ``value``, exponents without leading zero."""
    if not isfinite(value):
        return "null"
    return repr(value).replace("e-0", "e-")


def encode_jsonb(text: str) -> bytes:
    """Return the JSONB bytes of JSON text.  Raises ArgumentError if it is no JSON."""
    try:
        return _encode(json.loads(text), 0)
    except (ValueError, RecursionError) as error:
        message = f"not JSON: {error}"
        raise ArgumentError(message) from error


def _encode(value: Any, depth: int) -> bytes:
    if depth > MAX_DEPTH:
        message = f"nested deeper than {MAX_DEPTH}"
        raise ValueError(message)
    if isinstance(value, list):
        return _U32.pack(_ARRAY | len(value)) + _packed([_item(one, depth) for one in value])
    if isinstance(value, dict):
        pairs = sorted((key.encode(), member) for key, member in value.items())
        keys = [(_STRING, key) for key, _ in pairs]
        return _U32.pack(_OBJECT | len(pairs)) + _packed(
            keys + [_item(member, depth) for _, member in pairs]
        )
    return _U32.pack(_SCALAR) + _packed([_item(value, depth)])


def _packed(entries: Sequence[tuple[int, bytes]]) -> bytes:
    heads = b"".join(_U32.pack(kind | len(data)) for kind, data in entries)
    return heads + b"".join(data for _, data in entries)


def _item(value: Any, depth: int) -> tuple[int, bytes]:
    if value is None:
        return _NULL, b""
    if isinstance(value, bool):
        return (_TRUE if value else _FALSE), b""
    if isinstance(value, str):
        return _STRING, value.encode()
    if isinstance(value, int | float):
        return _NUMBER, _encode_number(value)
    return _CONTAINER, _encode(value, depth + 1)


def _encode_number(value: float) -> bytes:
    """Return the shortest form; whole numbers beyond 64 bits become floats, as in pylance."""
    if isinstance(value, int):
        if value == 0:
            return b"\x00"
        if value < 0 and value >= -(1 << 63):
            size = next(size for size in _SIZES if value >= -(1 << (8 * size - 1)))
            return b"\x40" + value.to_bytes(size, "big", signed=True)
        if 0 < value < 1 << 64:
            size = next(size for size in _SIZES if value < 1 << (8 * size))
            return b"\x50" + value.to_bytes(size, "big")
        if abs(value) >= 1 << 1023:
            message = "number beyond float64"
            raise ValueError(message)
    return b"\x60" + struct.pack(">d", float(value))
