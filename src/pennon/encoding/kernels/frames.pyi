"""Zstandard frames that hold nothing compressed: what cannot be compressed is stored as it is.

Source: RFC 8878, section 3.1.
"""

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

def stored_sizes(data: npt.NDArray[np.uint8], starts: Int64Array, ends: Int64Array) -> Int64Array:
    """Return how many bytes the frame in each ``data[starts[i]:ends[i]]`` holds.

    It is -1 unless there is one frame, without a checksum, of stored blocks and runs of one byte: the
    codec knows more.  Raises ValueError if a range leaves the data.
    """

def copy_stored(
    data: npt.NDArray[np.uint8],
    starts: Int64Array,
    ends: Int64Array,
    target: npt.NDArray[np.uint8],
    places: Int64Array,
    sizes: Int64Array,
) -> None:
    """Write the ``sizes[i]`` bytes that frame i holds to ``target[places[i]:]``.

    Raises ValueError if it holds more or fewer, or a place is outside the target.
    """
