"""End offsets that carry their NULLs, to Arrow offsets and validity, and back.

Binary and list pages of file version 2.0 store one integer a row: where its bytes or items end.  A
NULL adds ``adjustment``, which is greater than every end.  Row i therefore needs entries i - 1 and
i only.

>>> ["ab", None, "c"]  ->  ends 2, 2, 3; adjustment 4  ->  stored 2, 6, 3
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Bytes: TypeAlias = npt.NDArray[np.uint8]

def decode_end_offsets(
    stored: npt.NDArray[np.uint8 | np.uint16 | np.uint32 | np.uint64],
    starts: Int64Array,
    ends: Int64Array,
    leads: Bytes,
    adjustment: int,
    limit: int,
    wide: bool,
) -> tuple[npt.NDArray[np.int32 | np.int64], Bytes | None, Int64Array, Int64Array]:
    """Decode the stored entries of the sorted, disjoint row ranges ``[starts[i], ends[i])``.

    ``stored`` holds, for each range, the entry in front of it where ``leads[i]`` is 1, then its own.
    A range without a lead starts at row 0 or goes on where the one before it ended.

    Returns Arrow offsets of all rows together (int64 if ``wide``, else int32; rows + 1 entries, the
    first is 0), the validity bitmap (None if nothing is NULL), and for each range where its bytes or
    items start and end in the page.

    Raises FormatError if entries are too few, if ends fall, or lie beyond ``limit``; OverflowError
    if int32 offsets do not reach.
    """

def encode_end_offsets(
    offsets: npt.NDArray[np.int32 | np.int64], validity: Bytes | None, bit_offset: int
) -> tuple[npt.NDArray[np.uint64], int, int]:
    """Return the stored entries of Arrow offsets, the adjustment, and the length under NULLs.

    ``offsets`` may start anywhere; bit ``bit_offset`` of ``validity`` belongs to the first row.
    """
