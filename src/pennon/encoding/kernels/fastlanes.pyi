"""Bit-packing in FastLanes order, whole chunks of 1024 values."""

from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Bytes: TypeAlias = npt.NDArray[np.uint8]

Words = TypeVar(
    "Words",
    npt.NDArray[np.uint8],
    npt.NDArray[np.uint16],
    npt.NDArray[np.uint32],
    npt.NDArray[np.uint64],
)

def unpack(packed: Words, bit_width: int, values: Words) -> None:
    """Unpack chunks of 1024 values that share one bit width; both arrays have words of T bits.

    A chunk is a grid of 1024 / T lanes.  Read down a lane, its words are one string of bits, least
    significant first, and row r of the lane is bits ``[r * bit_width, (r + 1) * bit_width)`` of it.
    Row r of lane l is value ``16 * order[r // 8] + 128 * (r % 8) + l`` of the chunk, with order
    0 4 2 6 1 5 3 7.  Raises ValueError if ``packed`` is not exactly the chunks of ``values``.
    """

def unpack_inline(
    data: Bytes, starts: Int64Array, sizes: Int64Array, counts: Int64Array, values: Words
) -> None:
    """Unpack chunks of blocks that each begin with their own bit width, in one word.

    Chunk i is ``data[starts[i] : starts[i] + sizes[i]]``: a word that says the bit width (0 to T),
    the packed 1024 values, and so on until there are ``counts[i]`` values.  Fills ``values`` with
    those of all chunks.  Raises FormatError if a chunk leaves ``data`` or has too few bytes.
    """

def unpack_blocks(
    data: Bytes,
    starts: Int64Array,
    sizes: Int64Array,
    counts: Int64Array,
    bit_width: int,
    values: Words,
) -> None:
    """Unpack chunks of blocks that all have one bit width.

    The last block of a chunk may be less than 1024 values; then it is packed like the others (and
    filled up), or plain words, whichever its size says.  Raises FormatError as `unpack_inline` does.
    """
