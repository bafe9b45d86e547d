"""Which whole numbers are among some others."""

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

def find_among(values: Int64Array, wanted: Int64Array) -> npt.NDArray[np.uint8]:
    """Return a bit for each value, the lowest of each byte first: whether it is one of those wanted."""
