"""Mini-block chunks: cut byte strings, put the buffers of all chunks together."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Bytes: TypeAlias = npt.NDArray[np.uint8]

def cut_strings(
    offsets: npt.NDArray[Any], width: int, aim_bytes: int, most_items: int
) -> Int64Array:
    """Return how many strings each chunk takes: powers of two, the last one what is left.

    A chunk and its offsets of ``width`` bytes take at most ``aim_bytes``, or it has one string.
    """

def write_strings(
    data: Bytes, offsets: npt.NDArray[Any], counts: Int64Array, width: int
) -> tuple[Bytes, Int64Array]:
    """Return chunks of offsets (from the chunk's begin) and bytes, and their sizes in bytes.

    A chunk is filled up to a multiple of ``width`` with 0x48.  Raises ValueError if the chunks do
    not divide the strings, or offsets fall or leave the data.
    """

def put_together(
    level_counts: Int64Array,
    log_counts: Bytes,
    buffers: Sequence[Bytes],
    sizes: Any,
    level_buffers: int,
    is_large: bool,
) -> tuple[Bytes, npt.NDArray[np.uint16] | npt.NDArray[np.uint32]] | None:
    """Return all chunks in one buffer, and their metadata words; None if a chunk is too large.

    A chunk is the number of levels and the size of each buffer (16 bits each), then the buffers,
    each filled up to 8 bytes with 0xFE.  ``sizes[b][i]`` is the size of buffer b in chunk i.
    Where ``is_large``, the sizes behind those of the ``level_buffers`` have 32 bits, and so have
    the words.  Raises ValueError if the sizes do not divide the buffers.
    """
