"""Indices of several pages to the items that they name."""

from typing import Any

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

def look_up(
    dictionaries: list[npt.NDArray[np.unsignedinteger[Any]]],
    ends: Int64Array,
    indices: npt.NDArray[np.unsignedinteger[Any]],
    found: npt.NDArray[np.unsignedinteger[Any]],
) -> int:
    """Fill ``found`` with items, and return how many indices name none; these give 0.

    The indices of page i are those up to ``ends[i]``, and name items of ``dictionaries[i]``, which has words as wide
    as those of ``found``.  Raises ValueError if the arguments do not fit together.
    """
