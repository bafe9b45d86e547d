"""A few rows of mini-block pages: pick their levels and values."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array
from pennon.encoding.kernels.chunk_lookup import ChunkTable

LevelArray: TypeAlias = npt.NDArray[np.uint16]

class PickCode:
    """How the values of a page are encoded."""

    def __init__(
        self,
        recipe: tuple[int, ...],
        symbols: npt.NDArray[np.uint64] | None = None,
        lengths: npt.NDArray[np.uint8] | None = None,
    ) -> None:
        """Keep a recipe.

        ``recipe``: kind, bits and width of the repetition levels, of the definition levels and of the
        values; whether sizes of value buffers have 4 bytes; the level that begins a row (0 without
        lists); the highest definition level with a value.  Kinds: 0 nothing, 1 whole bytes, 2 bits,
        3 packed with the width in front of each block, 4 packed to ``width``, 5 byte strings with
        offsets of so many bits; of levels also 6 runs with lengths of ``width`` bytes, 7 nothing but 0.  With ``symbols`` and their ``lengths`` (256 of each; 0: no symbol)
        the strings are FSST codes.

        Raises ValueError if there is no such kind, FormatError if a symbol is too long.
        """

def pick_pieces(
    tables: list[ChunkTable],
    codes: list[PickCode],
    files: Int64Array,
    cuts: Int64Array,
    starts: Int64Array,
    ends: Int64Array,
    pages: Int64Array,
    chunks: Int64Array,
    positions: Int64Array,
    data: list[npt.NDArray[np.uint8]],
    origins: list[int],
    lent: npt.NDArray[np.uint8] | None = None,
) -> tuple[
    LevelArray | None,
    LevelArray | None,
    npt.NDArray[np.uint8],
    npt.NDArray[np.int32 | np.int64] | None,
    int,
]:
    """Return rows of several pages, one after the other.

    ``tables``, ``files``, ``cuts``, ``starts`` and ``ends`` are those of
    `pennon.encoding.kernels.chunk_lookup.find_pieces`.  Chunk ``chunks[i]`` of page ``pages[i]`` in file f is
    ``data[f][positions[i] - origins[f]:]``.  The values go to ``lent`` where that is given, as it may be of rows
    that are one value of whole bytes each; it has just the room that they take.

    The results: repetition and definition levels (None if there are none), the bytes of the values,
    offsets into these from 0 on (of byte strings), and the number of values.

    Raises FormatError if a buffer leaves its chunk, a value its buffer, or the levels do not stand
    for the rows and values of their chunk; ValueError if the arguments do not fit together, or the
    pages' levels and values cannot stand one after the other.
    """
