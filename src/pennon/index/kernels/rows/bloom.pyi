"""Values put into a split-block Bloom filter: xxHash64 with seed 0, one bit in each word of one block."""

import numpy as np
import numpy.typing as npt

def xxhash64(data: bytes) -> int:
    """Return the 64-bit xxHash of the bytes of one value, with seed 0."""

def insert_fixed(words: npt.NDArray[np.uint32], data: npt.NDArray[np.uint8], width: int) -> None:
    """Put values of ``width`` bytes, one after the other in ``data``, into a filter.

    ``words`` are its blocks, eight words each.  Raises ValueError for a filter without blocks, and for data
    that is no whole number of values.
    """

def insert_varied(
    words: npt.NDArray[np.uint32],
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int32 | np.int64],
) -> None:
    """Put values that lie in ``data`` between neighbouring offsets into a filter.

    Raises ValueError for a filter without blocks, and for offsets that fall or leave the data.
    """
