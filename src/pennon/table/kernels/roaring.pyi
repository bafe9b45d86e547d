"""Sets of numbers as Roaring bitmaps, many at a time."""

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

def read_bits(bits: npt.NDArray[np.uint8] | bytes, size: int) -> npt.NDArray[np.uint32]:
    """Return the places of the bits that are set in the 8 KiB of a container, at most ``size + 1`` of them.

    A container that says another size than that has so many, or more.  Raises ValueError if there are not 8 KiB.
    """

def serialize_sets(
    rows: npt.NDArray[np.uint64], borders: Int64Array, form: int, with_runs: bool
) -> tuple[npt.NDArray[np.uint8], Int64Array]:
    """Return the bytes of sets, one after the other, and where each begins and the last one ends.

    Set i has the rows between borders i and i + 1, which ascend.  ``form``: 0, one bitmap of 32 bits; 1, an
    address set (u32 count; u32 high half, u32 size, bitmap); 2, a treemap (u64 count; u32 high half, bitmap).
    ``with_runs``: containers that are smaller as runs are runs.

    Raises ValueError for rows that do not ascend, or are too large for a plain bitmap, and for borders that
    fall or leave the rows.
    """
