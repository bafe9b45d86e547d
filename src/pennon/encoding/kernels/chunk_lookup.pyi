"""Which chunks of mini-block pages hold some rows."""

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

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

    @property
    def place(self) -> int:
        """Return where the first chunk lies in the file."""

    @property
    def size_bytes(self) -> int:
        """Return how much memory it takes."""

    @property
    def row_bytes(self) -> int:
        """Return about how many bytes of the file a row has."""

def flat_table(position: int, numbers: Int64Array) -> ChunkTable:
    """Return the table of a page of which each row is a value, as `index_chunks` gives it.

    Raises ValueError if that has not four rows.
    """

def cut_rows(
    borders: list[Int64Array], file_cuts: Int64Array, starts: Int64Array, ends: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array, Int64Array]:
    """Cut ranges of rows at the borders of pages, which lie in one file or in several.

    The ranges ``starts[file_cuts[f]:file_cuts[f + 1]]`` and ``ends`` are those of file f, sorted and
    disjoint; the borders of its pages, ``borders[f]``, rise from 0.

    Returns the file and the number of each page that holds rows; where the ranges of each begin among
    all ranges, and the number of these; and starts and ends of the ranges, counted from the first row
    of their page.  Raises ValueError if the ranges are not such, or end behind the last border.
    """

def find_pieces(
    tables: list[ChunkTable],
    files: Int64Array,
    cuts: Int64Array,
    starts: Int64Array,
    ends: Int64Array,
) -> tuple[
    tuple[Int64Array, Int64Array, Int64Array, Int64Array],
    Int64Array,
    Int64Array,
    list[int],
    bool,
    int,
]:
    """Find the chunks that hold rows.

    ``starts[cuts[p]:cuts[p + 1]]`` and ``ends``: the rows of the page of ``tables[p]``, sorted and
    disjoint; it lies in the file ``files[p]``, these do not fall.

    Returns four numbers of each chunk: its page, its number in that, where it begins if the bytes of
    all these chunks are packed one after the other, and where it begins in its file.  Then starts and
    ends of the ranges to read, neighbours joined; where those of each file begin, and their number;
    whether those of each file rise without overlap; and the bytes of all chunks.  Raises ValueError
    if rows are outside their page.
    """
