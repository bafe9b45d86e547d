"""Bitmaps brought to bit 0, and values under NULLs brought to zero."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Bytes: TypeAlias = npt.NDArray[np.uint8]

def copy_bits(bitmap: Bytes, bit_offset: int, count: int) -> Bytes:
    """Return ``count`` bits from ``bit_offset`` on as a bitmap of its own; bits behind are 0.

    Raises ValueError if the bitmap is too short.
    """

def zero_nulls(values: Bytes, validity: Bytes, rows: int, width: int) -> Bytes:
    """Return the values, ``width`` bytes a row, with those of NULL rows set to zero.

    What lies under a NULL in an Arrow array is anybody's guess; equal data shall make equal files.
    """
