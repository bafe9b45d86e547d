"""Bounds of text and bytes, at most 64 bytes long (`pennon.file.v0_1.statistics`).

If any value of a page is longer, all such are cut, and the greatest is made greater by one, so that
it stands above everything that it may be the begin of.  Text is cut between characters.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.encoding.v2_0.binary import arrow_offsets
from pennon.ranges import Int64Array

MOST_BYTES: Final = 64


def text_bounds(array: pa.Array[Any], borders: Int64Array) -> tuple[pa.Array[Any], pa.Array[Any]]:
    """Return the least and the greatest value of each row group, or what stands for them."""
    lengths = np.diff(arrow_offsets(array))
    is_text = pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
    least, greatest = [], []
    for start, end in pairwise(borders.tolist()):
        part = array.slice(start, end - start)
        if int(lengths[start:end].max(initial=0)) > MOST_BYTES:
            low, high = _cut_bounds(part, is_text=is_text)
        else:
            both = pc.min_max(part)
            low, high = both["min"].as_py(), both["max"].as_py()
        least.append(low)
        greatest.append(high)
    return pa.array(least, array.type), pa.array(greatest, array.type)


def _cut_bounds(part: pa.Array[Any], *, is_text: bool) -> tuple[Any, Any]:
    """Return the bounds of values of which some may be too long."""
    kind = pa.large_binary() if pa.types.is_large_string(part.type) else pa.binary()
    held = (part.cast(kind) if is_text else part).drop_null()
    lengths = pc.binary_length(held)
    cut = [
        cut_text(value) if is_text else value[:MOST_BYTES] if len(value) > MOST_BYTES else value
        for value in held.to_pylist()
    ]
    if not cut:
        return None, None
    least, greatest = min(cut), max(cut)
    above: bytes | None = greatest
    if (pc.max(lengths).as_py() or 0) > MOST_BYTES:
        above = next_text(greatest) if is_text else next_bytes(greatest)
    if not is_text:
        return least, above
    return least.decode(), None if above is None else above.decode()


def cut_text(value: bytes) -> bytes:
    """Return the longest begin of a text that has at most 64 bytes of whole characters."""
    if len(value) <= MOST_BYTES:
        return value
    end = MOST_BYTES
    while value[end] & 0xC0 == 0x80:
        end -= 1
    return value[:end]


def next_bytes(value: bytes) -> bytes | None:
    """Return the next byte string of the same length, None if there is none."""
    number = int.from_bytes(value, "big") + 1
    return None if number >> 8 * len(value) else number.to_bytes(len(value), "big")


def next_text(value: bytes) -> bytes | None:
    """Return a text of the same length that is greater, None if no byte can be raised.

    The last byte that can be is, by as little as leaves it UTF-8; those behind it stay.
    """
    for at in range(len(value) - 1, -1, -1):
        for byte in range(value[at] + 1, 256):
            raised = value[:at] + bytes([byte]) + value[at + 1 :]
            try:
                raised.decode()
            except UnicodeDecodeError:
                continue
            return raised
    return None
