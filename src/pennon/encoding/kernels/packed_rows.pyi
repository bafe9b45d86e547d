"""Rows of fields of any width, taken apart."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Bytes: TypeAlias = npt.NDArray[np.uint8]

def split_rows(
    data: Bytes, offsets: Int64Array, widths: Int64Array
) -> list[tuple[Int64Array, Bytes]]:
    """Return, for each field, where its values end (from 0 on) and their bytes.

    Row i is ``data[offsets[i] : offsets[i + 1]]``: its fields in order.  A field of width w > 0 has w
    bytes, one of width -w has its size in w bytes and then as many.  A row of no bytes at all (what
    lies under a NULL) has zeros in fields of fixed width and nothing in others.

    Raises FormatError if rows leave ``data`` or are not just their fields.
    """
