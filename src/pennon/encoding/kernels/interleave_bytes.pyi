"""Full-zip pages: control words, sizes and values, put together."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Bytes: TypeAlias = npt.NDArray[np.uint8]
Levels: TypeAlias = npt.NDArray[np.uint16]

def interleave(
    rep: Levels,
    definition: Levels,
    bits_def: int,
    word_width: int,
    row_level: int,
    max_visible: int,
    data: Bytes,
    value_width: int,
    offsets: Int64Array | None,
    size_width: int,
) -> tuple[Bytes, Int64Array]:
    """Return a control word, size and value for each level, and where each row begins (and the end).

    ``rep`` and ``definition`` are empty where there are no such levels.  Values have
    ``value_width`` bytes each, or (``size_width`` 4 or 8) lie at ``offsets``; NULLs of those take
    nothing.  Raises ValueError if there is not one value for each visible level.
    """
