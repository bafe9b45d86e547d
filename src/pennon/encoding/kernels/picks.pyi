"""A few rows of a mini-block page: pick their levels and values."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.ranges import Int64Array

LevelArray: TypeAlias = npt.NDArray[np.uint16]

def pick_rows(
    recipe: tuple[int, ...],
    data: npt.NDArray[np.uint8],
    chunks: Int64Array,
    positions: Int64Array,
    offsets: Int64Array,
    first_values: Int64Array,
    first_rows: Int64Array,
    starts: Int64Array,
    ends: Int64Array,
) -> tuple[
    LevelArray | None,
    LevelArray | None,
    npt.NDArray[np.uint8],
    npt.NDArray[np.int32 | np.int64] | None,
    int,
]:
    """Return the rows ``[starts[i], ends[i])``, sorted and disjoint, of a mini-block page.

    ``recipe``: kind, bits and width of the repetition levels, of the definition levels and of the
    values; whether sizes of value buffers have 4 bytes; the level that begins a row (0 without
    lists); the highest definition level with a value.  Kinds: 0 nothing, 1 whole bytes, 2 bits,
    3 packed with the width in front of each block, 4 packed to ``width``, 5 byte strings with offsets
    of so many bits.

    ``data[positions[i]:]`` is chunk ``chunks[i]``; all chunks of the rows are there.  The other
    tables are those of the page's `ChunkIndex`.

    The results: repetition and definition levels (None if there are none), the bytes of the values,
    offsets into these from 0 on (of byte strings), and the number of values.

    Raises FormatError if a buffer leaves its chunk, a value its buffer, or the levels do not stand
    for the rows and values of their chunk; ValueError if the arguments do not fit together.
    """
