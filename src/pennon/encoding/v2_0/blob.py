"""Blob columns: large values lie anywhere in the file; pages say where.

A page is a packed struct (position, size), 16 bytes a row.  Positions are absolute in the file.

    an empty value  position 0, size 0
    NULL            position 1, size 0

A scan returns these descriptions; the bytes are fetched by whoever wants them.

Source: measured (pylance 14.0.2, field metadata ``lance-encoding:blob``).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from pennon.encoding.v2_0.binary import arrow_offsets
from pennon.encoding.v2_0.encodings import Blob, ColumnEncoding
from pennon.encoding.v2_0.zone import without_zones

DESCRIPTION_TYPE: Final = pa.struct(
    [pa.field("position", pa.uint64()), pa.field("size", pa.uint64())]
)
NULL_POSITION: Final = 1


def is_blob(encoding: ColumnEncoding) -> bool:
    """Tell whether a column's pages describe values that lie elsewhere."""
    return isinstance(without_zones(encoding), Blob)


def encode_blobs(
    array: pa.Array, position: int, alignment: int
) -> tuple[pa.Array, list[pa.Buffer]]:
    """Return the descriptions of large binaries, and the values to write from ``position`` on.

    The writer writes the values in this order, each at the next multiple of ``alignment``.
    """
    offsets, data = arrow_offsets(array), array.buffers()[2]
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    sizes = np.where(valid, np.diff(offsets), 0).astype(np.int64)
    padded = -(-sizes // alignment) * alignment
    positions = position + padded.cumsum() - padded
    positions = np.where(sizes > 0, positions, np.where(valid, 0, NULL_POSITION))
    columns = [pa.array(column.astype(np.uint64)) for column in (positions, sizes)]
    values = [data.slice(offsets[row], sizes[row]) for row in np.flatnonzero(sizes)]
    return pa.StructArray.from_arrays(columns, fields=list(DESCRIPTION_TYPE)), values
