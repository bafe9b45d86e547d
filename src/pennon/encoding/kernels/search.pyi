"""Which strings have a text in them."""

import numpy as np
import numpy.typing as npt

from pennon.encoding.kernels.extremes import Bytes

def find_in_strings(data: Bytes, offsets: npt.NDArray[np.int32 | np.int64], wanted: Bytes) -> Bytes:
    """Return a bitmap of the strings that have ``wanted`` in them.

    Raises ValueError if ``wanted`` is empty, or offsets fall or leave the data.
    """
