"""Pack values into FastLanes order; `pennon.encoding.kernels.fastlanes` says what that is."""

from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Bytes: TypeAlias = npt.NDArray[np.uint8]

Words = TypeVar("Words", bound=npt.NDArray[Any])

def block_widths(values: Words) -> Bytes:
    """Return how many bits the largest value of each block of 1024 has; the last may be shorter."""

def pack_inline(values: Words, widths: Bytes) -> tuple[Bytes, Int64Array]:
    """Return blocks that each begin with their bit width, in one word, and the sizes in bytes.

    ``widths`` are those of `block_widths`, or wider.  The last block is filled up with zeros.
    Raises ValueError if a width is none of the word's, or there is not one for each block.
    """

def pack_blocks(values: Words, counts: Int64Array, bit_width: int) -> tuple[Bytes, Int64Array]:
    """Return chunks of ``counts[i]`` values in blocks of one bit width, and their sizes in bytes.

    The last block of a chunk is packed only if that is smaller than its plain words.
    Raises ValueError if the chunks do not divide the values, or the width is none of the word's.
    """
