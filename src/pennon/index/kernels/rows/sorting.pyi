"""The order of values: unsigned words and strings of bytes, equal ones in the order in which they stand."""

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

def order_words(keys: npt.NDArray[np.uint64], least: int) -> Int64Array:
    """Return the places of words in ascending order, counted from ``least`` on, which comes first."""

def order_strings(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int32 | np.int64]
) -> Int64Array:
    """Return the places of strings, byte by byte in ascending order; string i has the bytes between offsets i, i + 1.

    Raises ValueError for offsets that fall or leave the data.
    """

def places_of_strings(
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int32 | np.int64],
    others: npt.NDArray[np.uint8],
    borders: npt.NDArray[np.int32 | np.int64],
    behind: bool,
) -> Int64Array:
    """Return how many strings, which ascend, come before each of others; ``behind``: or are equal to it.

    The others lie between ``borders``, which are of the type of ``offsets``.  Raises ValueError for offsets that
    fall or leave the data, as far as they are looked at.
    """
