"""The chunks of mini-block pages: where their buffers lie.

A chunk is a header, then its buffers, each from a multiple of 8 bytes on:

    u16                number of levels
    u16 each           size of the repetition levels and of the definition levels, if there are any
    u16 or u32 each    sizes of the value buffers
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Bytes: TypeAlias = npt.NDArray[np.uint8]

def split_chunks(
    data: Bytes,
    positions: Int64Array,
    chunk_sizes: Int64Array,
    level_buffers: int,
    value_buffers: int,
    is_large: bool,
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return the number of levels of each chunk, and where its buffers start and how large they are.

    Chunk i is ``data[positions[i] : positions[i] + chunk_sizes[i]]``.  The second and third result
    have the shape (level_buffers + value_buffers, chunks); starts count from the begin of ``data``.

    Raises FormatError if a chunk leaves ``data`` or a buffer leaves its chunk.
    """
