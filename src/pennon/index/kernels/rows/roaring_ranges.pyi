"""The union of sets of numbers that are Roaring bitmaps, as ranges."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Numbers: TypeAlias = npt.NDArray[np.uint64]

def parse_sets(
    data: npt.NDArray[np.uint8] | bytes, borders: Int64Array, form: int
) -> tuple[Numbers, Numbers]:
    """Return the first and the last number of each range of the union of sets, ascending; no two ranges touch.

    Set i lies between borders i and i + 1 of the bytes.  ``form``: 1, address sets (u32 count; u32 high half,
    u32 size, bitmap; a size of 0 stands for all numbers of that half); 2, treemaps (u64 count; u32 high half,
    bitmap).  A range takes some bytes of the sets, so memory is bounded by these, whatever they say.

    Raises FormatError for bytes that are no sets, ValueError for borders that fall or leave the data.
    """
