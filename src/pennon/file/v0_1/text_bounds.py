"""Bounds of text and bytes, at most 64 bytes long (`pennon.file.v0_1.statistics`).

If any value of a page is longer, all such are cut, and the greatest is made greater by one, so that
it stands above everything that it may be the begin of.  Text is cut between characters, after the
greatest was chosen: pylance cuts first, and may miss it (ledger F-206).
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.encoding.arrow_buffers import arrow_offsets, as_bytes
from pennon.file.kernels.extremes import string_extremes

MOST_BYTES: Final = 64
LEAST_CUT: Final = MOST_BYTES - 3
"""A text that is cut keeps so many bytes at least: characters have up to four."""


def text_bounds(array: pa.Array[Any], borders: Int64Array) -> tuple[pa.Array[Any], pa.Array[Any]]:
    """Return the least and the greatest value of each row group, or what stands for them."""
    is_text = pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
    validity = as_bytes(array.buffers()[0]) if array.null_count else None
    data = as_bytes(array.buffers()[2])
    least, greatest, is_long = string_extremes(
        data, arrow_offsets(array), validity, array.offset, borders, MOST_BYTES, is_text
    )
    low, high = (array.take(pa.array(each, mask=each < 0)) for each in (least, greatest))
    if is_long.any():
        low = pa.array([_cut(value) for value in low.to_pylist()], array.type)
        values = zip(high.to_pylist(), is_long.tolist(), strict=True)
        high = pa.array([_above(*each) for each in values], array.type)
    return low, high


def _cut(value: str | bytes | None) -> bytes | None:
    """Return the begin of a value that counts."""
    if isinstance(value, str):
        return cut_text(value.encode())
    return None if value is None else value[:MOST_BYTES]


def _above(value: str | bytes | None, is_cut: bool) -> bytes | None:
    """Return a text above all values; some values are truncated."""
    cut = _cut(value)
    if cut is None or not is_cut:
        return cut
    return next_text(cut) if isinstance(value, str) else next_bytes(cut)


def cut_text(value: bytes, most: int = MOST_BYTES) -> bytes:
    """Return the longest begin of a text that has at most so many bytes of whole characters."""
    if len(value) <= most:
        return value
    end = most
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
