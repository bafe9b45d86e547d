"""The chunk words and the row index of a mini-block page, as running sums.

A page may have thousands of chunks, and each array that numpy would make on the way costs as much as
all of this.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array
from pennon.encoding.kernels.chunk_lookup import ChunkTable

Bytes: TypeAlias = npt.NDArray[np.uint8]

def index_chunks(words: Bytes, width: int, items: int, most_last: int) -> tuple[Int64Array, int]:
    """Return the table of the chunks of a page that has ``items`` items, and how many bytes they have.

    Its rows are offsets, first values, counts, and zeros.  Each has one number more than there are chunks:
    the sum of the first two, 0 of the others.  A word of ``width`` (2 or 4) bytes is
    ``(size / 8 - 1) << 4 | log2(values)``; the last chunk has the items that the others leave.

    Raises ValueError if the words do not hold the items, OverflowError if more than ``most_last`` are
    left for the last chunk.
    """

def flat_tables(
    files: list[Bytes], pages: Int64Array, width: int, items: int, most_last: int
) -> list[ChunkTable | None]:
    """Return the tables of the chunks of one page of each file; each row of it is one value.

    ``pages[f]`` begins with 1 if there is such a page; then come position and size of its words, and of its
    chunks.  All pages have ``items`` items; ``width`` and ``most_last`` are those of `index_chunks`.  None stands for
    a page that is not there, or damaged.  Raises ValueError if the arguments do not fit together.
    """

def index_rows(table: Bytes, count: int, stride: int) -> tuple[Int64Array, npt.NDArray[np.bool_]]:
    """Return the first row of each of ``count`` chunks, the sum at last, and whether it goes on.

    The table has ``stride`` numbers of 8 bytes for each chunk: how many rows end in it, and how many
    items it has of one that goes on in the next.

    Raises ValueError if it has another size, or its rows do not begin and end.
    """
