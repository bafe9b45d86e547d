"""Which strings have a text in them, or are it."""

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array
from pennon.file.kernels.extremes import Bytes

def find_equal_strings(
    data: Bytes, offsets: npt.NDArray[np.int32 | np.int64], wanted: Bytes
) -> Int64Array:
    """Return the numbers of the strings that are ``wanted``; raises as `find_in_strings` does."""

def find_in_strings(data: Bytes, offsets: npt.NDArray[np.int32 | np.int64], wanted: Bytes) -> Bytes:
    """Return a bitmap of the strings that have ``wanted`` in them.

    Raises ValueError if ``wanted`` is empty, or offsets fall or leave the data.
    """
