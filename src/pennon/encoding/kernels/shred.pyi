"""Validity bitmaps and offsets to repetition and definition levels, one layer at a time.

The outermost layer comes first.  While layers are added, a definition is a *mark*: 0 where all is
valid so far, else the number of the layer that says why there is no value.  A mark with the bit
0x8000 is closed: no slot of the layers inside belongs to it, because it is a NULL or empty list.
"""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Bytes: TypeAlias = npt.NDArray[np.uint8]
Levels: TypeAlias = npt.NDArray[np.uint16]

def add_items(definition: Levels, validity: Bytes, bit_offset: int, null_mark: int) -> int:
    """Mark, in place, slots that are NULL and were valid so far; return how many.

    Raises ValueError if the bitmap is too short.
    """

def add_lists(
    rep: Levels,
    definition: Levels,
    offsets: npt.NDArray[Any],
    validity: Bytes | None,
    bit_offset: int,
    rep_level: int,
    null_mark: int,
    empty_mark: int,
) -> tuple[Levels, Levels, int, int, int]:
    """Return the levels with a list in each open slot replaced by its items.

    Also returns how many lists are NULL, how many are empty, and how many items lie in lists that
    are not valid.  Raises ValueError if there is not a list for each slot, or offsets fall.
    """

def number_levels(definition: Levels, numbers: Levels) -> None:
    """Put ``numbers[m]`` in the place of each mark m, closed or not.

    Raises ValueError, before one is replaced, if a mark has no number.
    """

def count_levels(definition: Levels, counts: Int64Array, max_visible: int) -> Int64Array:
    """Return how many levels each chunk takes so that it has ``counts[i]`` visible ones.

    Invisible levels go with the visible one behind them, and to the last chunk at the end.
    """

def index_rows(rep: Levels, counts: Int64Array, row_level: int) -> npt.NDArray[np.uint64]:
    """Return, for each chunk of ``counts[i]`` levels, the rows that end in it and what is left over.

    What is left over are the levels of a row that goes on in the next chunk.  Shape (chunks, 2).
    """
