"""Blobs: large values that lie anywhere in the file, described by where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from pennon.encoding.arrow_buffers import arrow_offsets
from pennon.schema.blob import NULL_POSITION

DESCRIPTION_TYPE: Final = pa.struct(
    [pa.field("position", pa.uint64()), pa.field("size", pa.uint64())]
)


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
