"""Where the fragments of a manifest lie in its message, and what is asked of all of them.

A table may have a hundred thousand fragments, of which one reader wants a few, and a writer none: it
adds another, and copies the bytes of those that are there.  So no object is made for any.
"""

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

def find_fragments(
    data: npt.NDArray[np.uint8] | bytes | memoryview, most_id: int, most_rows: int
) -> tuple[Int64Array, list[tuple[int, int]], int]:
    """Return a row of 10 numbers for each fragment of a ``Manifest`` message, and where they lie.

    Where its record starts, where the message in it starts and ends; its id and number of rows; what
    it has, in bits: deletion file (1), row ids (2), fields that are not known (4), data files of
    several versions (8); the number of deleted rows; how many data files, the version of the last
    (major << 32 | minor), the sum of their sizes.  Numbers that do not fit are the greatest that does.

    Records lie in ranges of the message, mostly in one.  Last comes the first fragment whose id or
    number of rows is out of bounds, -1 if none is.

    Raises ValueError if the bytes are no such message.
    """
