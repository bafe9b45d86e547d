"""Which chunks of a mini-block page hold some rows."""

import numpy as np
import numpy.typing as npt

from pennon.ranges import Int64Array

def find_chunks(
    first_rows: Int64Array,
    goes_on: npt.NDArray[np.uint8],
    offsets: Int64Array,
    starts: Int64Array,
    ends: Int64Array,
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """Return the chunks that hold any part of the rows ``[starts[i], ends[i])``, which are sorted.

    The tables are those of `pennon.encoding.v2_1.chunk_index.ChunkIndex`.  The results are the
    numbers of the chunks; where each begins once they are packed one after the other; and the starts
    and ends of the ranges of bytes to read for that, neighbours put together.

    Raises ValueError for rows outside the page, or tables that do not fit together.
    """
