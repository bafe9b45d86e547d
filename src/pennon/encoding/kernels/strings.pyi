"""Byte strings of mini-block chunks: pick items."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Bytes: TypeAlias = npt.NDArray[np.uint8]

def pick_strings(
    data: Bytes,
    starts: Int64Array,
    sizes: Int64Array,
    counts: Int64Array,
    offset_width: int,
    item_starts: Int64Array,
    item_ends: Int64Array,
) -> tuple[npt.NDArray[np.int32 | np.int64], Bytes]:
    """Return offsets (from 0 on, int32 if they fit) and bytes of the items that are asked for.

    Chunk i has ``counts[i]`` strings: counts[i] + 1 offsets of 4 or 8 bytes, which count from the
    begin of the chunk, then the bytes.  Items are numbered through all chunks, and
    ``[item_starts[j], item_ends[j])`` are sorted, disjoint ranges of them.

    Raises FormatError if a chunk leaves ``data``, or offsets fall or leave their chunk.
    """
