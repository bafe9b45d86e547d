"""A long field of a message of protobuf, found where it lies: to parse it would copy it more than once."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import pyarrow as pa

Data: TypeAlias = bytes | memoryview | pa.Buffer
"""A message."""

_VARINT: Final = 0
_BYTES: Final = 2
_FIXED: Final = {1: 8, 5: 4}
"""How many bytes a value of such a wire type has."""
_MOST_BITS: Final = 63


def cut_out(data: Data, number: int) -> tuple[bytes, memoryview | None]:
    """Return a message without its field of bytes of a number, and that field; parts of one field are not cut out.

    What is damaged stays whole, for whoever parses the rest to say so.
    """
    whole: Any = memoryview(data).cast("B")
    found: list[tuple[int, int, int]] = []
    at, size_bytes = 0, len(whole)
    while 0 <= at < size_bytes:
        begin = at
        tag, at = _varint(whole, at)
        wire = tag & 7
        if wire in _FIXED:
            at += _FIXED[wire]
            continue
        value, at = _varint(whole, at)
        if wire == _BYTES:
            start, at = at, at + value
            if tag >> 3 == number:
                found.append((begin, start, at))
        elif wire != _VARINT:
            break
    if at != size_bytes or len(found) != 1:
        return bytes(whole), None
    begin, start, end = found[0]
    return bytes(whole[:begin]) + bytes(whole[end:]), whole[start:end]


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """Return a number, and where it ends: behind everything if it is damaged."""
    value, shift, size_bytes = 0, 0, len(data)
    while at < size_bytes and shift < _MOST_BITS:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
    return 0, size_bytes + 1
