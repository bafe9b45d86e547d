"""The pages of a column, out of its protobuf message ``ColumnMetadata``.

A file may have thousands of columns of as many pages, and most readers want few of them, so no
object is made for any: numbers come out, and `pennon.file.container.wire` makes of them what is looked at.
Fields that are not known are skipped, as protobuf does.

An *encoding* is three numbers: 0, 0, 0 for none; 1, first, end: the bytes ``data[first:end]``;
2, position, size: bytes elsewhere in the file.
"""

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

def find_pages(
    data: npt.NDArray[np.uint8] | bytes, file_bytes: int, most_rows: int
) -> tuple[Int64Array, Int64Array, Int64Array, tuple[int, int, int, int, int]]:
    """Return the pages, all buffers, the first row of each page, and the column.

    The pages are rows of 7: number of rows, priority (64 bits, unsigned), the encoding (3), the
    number of the first buffer, how many buffers.  Buffers are rows of position and size.  The first
    rows have the total at last.  The column is its encoding (3), its first buffer, how many.

    Raises ValueError if the bytes are no such message, a buffer or an encoding does not lie within
    ``file_bytes``, or all pages together have more than ``most_rows`` rows.
    """
