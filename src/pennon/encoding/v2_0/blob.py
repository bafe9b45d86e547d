"""Blob columns: large values lie anywhere in the file; pages say where.

A page is a packed struct (position, size), 16 bytes a row.  Positions are absolute in the file.

    an empty value  position 0, size 0
    NULL            position 1, size 0

A scan returns these descriptions; the bytes are fetched by whoever wants them.

Source: ledger F-18, F-24.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from pennon.encoding.v2_0.binary import arrow_offsets
from pennon.encoding.v2_0.encodings import Blob, ColumnEncoding
from pennon.encoding.v2_0.zone import without_zones
from pennon.schema.blob import NULL_POSITION

DESCRIPTION_TYPE: Final = pa.struct(
    [pa.field("position", pa.uint64()), pa.field("size", pa.uint64())]
)


def is_blob(encoding: ColumnEncoding) -> bool:
    """Tell whether a column's pages describe values that lie elsewhere."""
    return isinstance(without_zones(encoding), Blob)


def encode_blobs(array: pa.Array, write: Callable[[pa.Buffer], int]) -> pa.StructArray:
    """Write large binaries, each by itself, and return their descriptions.

    ``write`` writes a value to the file and returns the position that it got.
    """
    offsets, data = arrow_offsets(array), array.buffers()[2]
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    sizes = np.where(valid, np.diff(offsets), 0).astype(np.uint64)
    positions = np.where(valid, 0, NULL_POSITION).astype(np.uint64)
    for row in np.flatnonzero(sizes):
        positions[row] = write(data.slice(int(offsets[row]), int(sizes[row])))
    columns = [pa.array(positions), pa.array(sizes)]
    return pa.StructArray.from_arrays(columns, fields=list(DESCRIPTION_TYPE))
