"""The bytes of sets of rows in index files.

==============  ==========================================================================
address set     u32 n; n times: u32 high, u32 size, so many bytes of 32-bit Roaring
treemap         u64 n; n times: u32 high, 32-bit Roaring
==============  ==========================================================================

The high halves are fragment ids, or the upper halves of stable row ids.  A size of 0 in an address set
stands for all rows of the fragment.  Source: reference index-scalar, 2.1.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.encoding.kernels.roaring import serialize_sets
from pennon.errors import FormatError
from pennon.index.row_set import NONE, Numbers, RowSet
from pennon.table.roaring import Offsets, parse_roaring_ranges


def parse_address_sets(sets: Iterable[bytes]) -> RowSet:
    """Return the union of serialized address sets; raises FormatError."""
    return _union(part for data in sets for part in _address_parts(data))


def parse_treemap(data: bytes) -> RowSet:
    """Return the rows of a treemap; raises FormatError."""
    return _union(_treemap_parts(data))


def serialize_address_sets(rows: Numbers, borders: Int64Array) -> pa.LargeBinaryArray:
    """Return an address set for the rows between any two borders, which ascend."""
    return _serialized(rows, borders, form=1)


def serialize_treemaps(rows: Numbers, borders: Int64Array) -> pa.LargeBinaryArray:
    """Return a treemap for the rows between any two borders, which ascend."""
    return _serialized(rows, borders, form=2)


def serialize_address_set(rows: Numbers) -> bytes:
    """Return the address set of rows, which ascend."""
    found: bytes = serialize_address_sets(rows, np.array([0, len(rows)]))[0].as_py()
    return found


def serialize_treemap(rows: Numbers) -> bytes:
    """Return the treemap of rows, which ascend."""
    found: bytes = serialize_treemaps(rows, np.array([0, len(rows)]))[0].as_py()
    return found


def _serialized(rows: Numbers, borders: Int64Array, form: int) -> pa.LargeBinaryArray:
    data, offsets = serialize_sets(rows, borders, form, with_runs=True)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def _union(parts: Iterable[tuple[int, Offsets, Offsets]]) -> RowSet:
    starts: list[Numbers] = []
    lasts: list[Numbers] = []
    for high, firsts, ends in parts:
        shift = np.uint64(high << 32)
        starts.append(firsts.astype(np.uint64) | shift)
        lasts.append(ends.astype(np.uint64) | shift)
    if not starts:
        return NONE
    return RowSet.of_ranges(np.concatenate(starts), np.concatenate(lasts))


def _address_parts(data: bytes) -> Iterator[tuple[int, Offsets, Offsets]]:
    (count,) = struct.unpack("<I", _taken(data, 0, 4))
    position = 4
    for _ in range(count):
        high, size = struct.unpack("<II", _taken(data, position, 8))
        body = _taken(data, position + 8, size)
        position += 8 + size
        if size:
            yield high, *parse_roaring_ranges(body)[:2]
        else:
            yield high, np.zeros(1, np.uint32), np.full(1, 0xFFFFFFFF, np.uint32)


def _treemap_parts(data: bytes) -> Iterator[tuple[int, Offsets, Offsets]]:
    (count,) = struct.unpack("<Q", _taken(data, 0, 8))
    position = 8
    for _ in range(count):
        (high,) = struct.unpack("<I", _taken(data, position, 4))
        firsts, lasts, size = parse_roaring_ranges(data[position + 4 :])
        position += 4 + size
        yield high, firsts, lasts


def _taken(data: bytes, position: int, size: int) -> bytes:
    if position + size > len(data):
        message = f"a set of rows of {len(data)} bytes is cut off"
        raise FormatError(message)
    return data[position : position + size]
