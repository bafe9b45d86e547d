"""The size of what an LZ4 block holds."""

import numpy as np
import numpy.typing as npt

def decoded_size(block: npt.NDArray[np.uint8]) -> int:
    """Return how many bytes an LZ4 block (no frame) decompresses to, from its lengths alone.

    pyarrow decompresses a block into a buffer of a given size and does not say how much it filled.
    Raises ValueError if the lengths do not end where the block ends.
    """
