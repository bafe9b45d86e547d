"""Levels in the chunks of a mini-block page: bit-packed to the width of the page's highest level."""

from __future__ import annotations

import numpy as np

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.encoding.kernels.pack import pack_blocks
from pennon.encoding.kernels.shred import count_levels
from pennon.encoding.v2_1.encodings import Encoding, Flat, OutOfLineBitpacking
from pennon.encoding.v2_1.layouts import max_visible
from pennon.encoding.v2_1.page import LevelArray, Levels
from pennon.encoding.v2_1.values import Bytes

LEVEL_BITS = 16


@dataclass(frozen=True, slots=True, eq=False)
class LevelChunks:
    """``sizes[i]`` bytes of ``data`` belong to chunk i."""

    encoding: Encoding
    data: Bytes
    sizes: Int64Array


def levels_per_chunk(levels: Levels, counts: Int64Array) -> Int64Array:
    """Return how many levels go with ``counts[i]`` values; 0 if there are no levels."""
    if levels.definition is not None:
        return count_levels(levels.definition, counts, max_visible(levels.layers))
    return np.zeros(len(counts), np.int64) if levels.rep is None else counts


def chunk_levels(levels: LevelArray, counts: Int64Array) -> LevelChunks:
    """Return the levels in chunks of ``counts[i]``."""
    width = max(1, int(levels.max()).bit_length())
    data, sizes = pack_blocks(levels, counts, width)
    if data.size == levels.nbytes:  # few levels are not packed, and need no message about it
        return LevelChunks(Flat(LEVEL_BITS), data, sizes)
    return LevelChunks(OutOfLineBitpacking(LEVEL_BITS, Flat(width)), data, sizes)
