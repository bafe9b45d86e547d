"""Which chunks of mini-block pages hold some rows."""

import numpy as np
import numpy.typing as npt

from pennon.ranges import Int64Array

class ChunkTable:
    """Where the chunks of one page lie; see `pennon.encoding.v2_1.chunk_index.ChunkIndex`."""

    def __init__(
        self,
        position: int,
        offsets: Int64Array,
        first_values: Int64Array,
        first_rows: Int64Array,
        goes_on: npt.NDArray[np.uint8],
    ) -> None:
        """Keep tables; the first chunk lies at ``position`` of the file.

        Raises ValueError if they differ in length.
        """

def cut_rows(
    borders: Int64Array, starts: Int64Array, ends: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """Cut ranges of rows at the borders of pages.

    ``borders`` rise from 0; ``starts`` and ``ends`` are sorted and disjoint ranges.  Returns the
    numbers of the pages that hold rows; where the ranges of each begin among all ranges, and the
    number of these; and starts and ends of the ranges, counted from the first row of their page.
    Raises ValueError if the ranges are not such, or end behind the last border.
    """

def find_pieces(
    tables: list[ChunkTable], cuts: Int64Array, starts: Int64Array, ends: Int64Array
) -> tuple[
    tuple[Int64Array, Int64Array, Int64Array, Int64Array], Int64Array, Int64Array, bool, int
]:
    """Find the chunks that hold rows.

    ``starts[cuts[p]:cuts[p + 1]]`` and ``ends``: the rows of the page of ``tables[p]``, sorted and
    disjoint.

    Returns four numbers of each chunk: its page, its number in that, where it begins if the
    bytes of all these chunks are packed one after the other, and where it begins in the file.  Then
    starts and ends of the ranges of the file to read, neighbours joined; and whether they rise
    without overlap; and the bytes of all chunks.  Raises ValueError if rows are outside their page.
    """
