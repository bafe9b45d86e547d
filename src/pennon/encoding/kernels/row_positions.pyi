"""Rows of lists in the chunks of a page: which levels and values are theirs."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

LevelArray: TypeAlias = npt.NDArray[np.uint16]

def place_rows(
    rep: LevelArray,
    definition: LevelArray | None,
    top: int,
    visible_to: int,
    level_counts: Int64Array,
    value_counts: Int64Array,
    first_rows: Int64Array,
    last_rows: Int64Array,
    follows: npt.NDArray[np.uint8],
    starts: Int64Array,
    ends: Int64Array,
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """Return where the levels of the rows ``[starts[i], ends[i])`` start and end, and their values.

    A row begins at each repetition level ``top``; levels up to ``visible_to`` stand for a value.
    In chunk c begin the rows ``[first_rows[c], last_rows[c])``; it has ``level_counts[c]`` levels and
    ``value_counts[c]`` values.  ``follows[c]`` is 0 where the chunk in front of it was left out.
    The ranges of rows are sorted, disjoint and not empty, and all chunks that they lie in are there.

    Raises FormatError if rows, levels or values of the chunks are not as many as that.
    """
