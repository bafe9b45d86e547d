"""Positions that rise within a page, to Arrow offsets and validity.

Files of version 0.1 store one position more than there are rows: row i has the bytes, or the items,
from position i to position i + 1.  Some rows of a page are a *run*: n rows, n + 1 positions.

>>> run of rows 0..3 at byte 100: "ab", "", "c"   ->   stored 100, 102, 102, 103
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Bytes: TypeAlias = npt.NDArray[np.uint8]

def decode_positions(
    stored: npt.NDArray[np.int32 | np.int64],
    counts: Int64Array,
    pages: Int64Array,
    limits: Int64Array,
    mark_empty: bool,
    wide: bool,
) -> tuple[npt.NDArray[np.int32 | np.int64], Bytes | None, Int64Array, Int64Array]:
    """Return the rows + 1 offsets of all runs, from 0 on, a validity bitmap, and what runs cover.

    ``stored`` holds the positions of run after run, ``counts[i] + 1`` of them for run i, which
    belongs to page ``pages[i]`` and must not reach beyond ``limits[i]``.  Offsets are int64 if
    ``wide``, else int32.  With ``mark_empty``, rows of no length are NULL; the bitmap is None if
    there are none.  The last two results are the first and the last position of each run.

    Raises FormatError if there are too few positions, or one falls, also from one run to the next
    of the same page, or lies beyond the limit; OverflowError if 32 bits do not reach; ValueError
    if the arrays differ in length.
    """
