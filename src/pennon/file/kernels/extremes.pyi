"""The least and the greatest string of each group."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Bytes: TypeAlias = npt.NDArray[np.uint8]

def string_extremes(
    data: Bytes,
    offsets: npt.NDArray[np.int32 | np.int64],
    validity: Bytes | None,
    bit_offset: int,
    borders: Int64Array,
    most: int,
    is_text: bool,
) -> tuple[Int64Array, Int64Array, Bytes]:
    """Return the numbers of the least and the greatest string of each group, -1 if it has none.

    Group g has the strings ``[borders[g], borders[g + 1])``, except those whose bit of ``validity``,
    counted from ``bit_offset``, is 0.  For the least, only the first ``most`` bytes of a string
    count, those of whole characters if it ``is_text``; the third result tells whether a group has
    longer ones.

    Raises ValueError if groups leave the strings, offsets fall or leave the data, or the bitmap is
    too short.
    """
