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

def find_plain_pages(
    files: list[npt.NDArray[np.uint8]],
    rows: Int64Array,
    columns: Int64Array,
    encodings: list[bytes],
    version: bytes,
) -> Int64Array:
    """Return where the one page of each of some columns lies, in each of many whole files.

    File f should have ``rows[f]`` rows, be of the ``version`` (the last 8 bytes of a file), and keep leaf l
    in column ``columns[l, f]``.  The result has 9 numbers for each leaf and file.  The first is 0 unless the
    column has one page with all rows, two or three buffers, and an encoding that stands in the metadata;
    1 if these are the bytes ``encodings[l]``, else 2.  Then come position and size of each buffer (-1 and 0
    for a third one that is not there), and the first and the end byte of the encoding, in the file.  What is
    damaged is 0, too.

    Raises ValueError if the arguments do not fit together.
    """
