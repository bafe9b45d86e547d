"""The size of what an LZ4 block holds."""

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

def decoded_size(block: npt.NDArray[np.uint8]) -> int:
    """Return how many bytes an LZ4 block (no frame) decompresses to, from its lengths alone.

    pyarrow decompresses a block into a buffer of a given size and does not say how much it filled.
    Raises ValueError if the lengths do not end where the block ends.
    """

def inflate_blocks(
    data: npt.NDArray[np.uint8],
    starts: Int64Array,
    ends: Int64Array,
    sizes: Int64Array,
    target: npt.NDArray[np.uint8],
) -> None:
    """Decompress the blocks ``data[starts[i]:ends[i]]``, which hold ``sizes[i]`` bytes, one by one.

    Raises FormatError if a block is damaged or holds more or fewer bytes, ValueError if all of them
    do not fill the target.
    """
