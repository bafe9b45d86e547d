"""The bytes of sets of rows in index files.

==============  ==========================================================================
address set     u32 n; n times: u32 high, u32 size, so many bytes of 32-bit Roaring
treemap         u64 n; n times: u32 high, 32-bit Roaring
==============  ==========================================================================

The high halves are fragment ids, or the upper halves of stable row ids.  A size of 0 in an address set
stands for all rows of the fragment.  Source: reference index-scalar, 2.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.index.kernels.rows.roaring_ranges import parse_sets
from pennon.index.row_set import Numbers, RowSet
from pennon.table.kernels.roaring import serialize_sets

_ADDRESS_SET: Final = 1
_TREEMAP: Final = 2


def parse_address_sets(sets: Iterable[bytes]) -> RowSet:
    """Return the union of serialized address sets; raises FormatError."""
    return _union(list(sets), _ADDRESS_SET)


def parse_treemap(data: bytes) -> RowSet:
    """Return the rows of a treemap; raises FormatError."""
    return _union([data], _TREEMAP)


def serialize_address_sets(rows: Numbers, borders: Int64Array) -> pa.LargeBinaryArray:
    """Return an address set for the rows between any two borders, which ascend."""
    return _serialized(rows, borders, _ADDRESS_SET)


def serialize_treemaps(rows: Numbers, borders: Int64Array) -> pa.LargeBinaryArray:
    """Return a treemap for the rows between any two borders, which ascend."""
    return _serialized(rows, borders, _TREEMAP)


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


def _union(sets: Sequence[bytes], form: int) -> RowSet:
    borders = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    return RowSet(*parse_sets(sets[0] if len(sets) == 1 else b"".join(sets), borders, form))
