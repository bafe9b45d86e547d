"""Checksums."""

import numpy as np
import numpy.typing as npt

def crc32c(data: npt.NDArray[np.uint8]) -> int:
    """Return the CRC-32C (Castagnoli) of some bytes."""
