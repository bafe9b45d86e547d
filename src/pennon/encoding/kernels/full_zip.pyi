"""Full-zip pages: control words, sizes and values, taken apart."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Bytes: TypeAlias = npt.NDArray[np.uint8]
LevelArray: TypeAlias = npt.NDArray[np.uint16]

def unzip(
    data: Bytes,
    word_width: int,
    bits_def: int,
    visible_to: int,
    value_width: int,
    size_width: int,
) -> tuple[LevelArray, LevelArray, Int64Array, Bytes]:
    """Return repetition levels, definition levels, offsets and bytes of whole entries.

    An entry is a control word of ``word_width`` bytes (0, 1, 2 or 4), whose lower ``bits_def`` bits
    are the definition level and whose upper ones the repetition level; then, if the definition level
    is at most ``visible_to``,

    - ``size_width`` 0: a value of ``value_width`` bytes;
    - else, if the level is 0: its size in ``size_width`` bytes, and the value.

    Offsets (of the visible entries, from 0 on) are empty for values of one width.
    Raises FormatError if the last entry is cut off.
    """

def place_sized(
    data: Bytes, starts: Int64Array, ends: Int64Array, size_width: int, entries: int
) -> tuple[Int64Array, Int64Array]:
    """Find the values of entries without levels, which lie in the ranges ``[starts[i], ends[i])``.

    Returns where each value starts and ends.  Raises FormatError if the ranges leave the data, or are
    not just ``entries`` entries; ValueError if the arguments do not fit together.
    """
