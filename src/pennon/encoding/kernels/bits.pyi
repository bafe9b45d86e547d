"""Bitmaps and bit-packed values; bit i of a buffer is bit i % 8 of byte i / 8, least first."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Bytes: TypeAlias = npt.NDArray[np.uint8]

def pick_bits(source: Bytes, starts: Int64Array, ends: Int64Array, target: Bytes) -> None:
    """Pack the bits ``[starts[i], ends[i])`` of ``source``, range after range, into ``target``.

    Bits of ``target`` after the last range are 0.  Raises ValueError, before a bit is copied, if a
    range leaves ``source`` or ``target`` has too few bits.
    """

def unpack_bits(
    source: Bytes,
    starts: Int64Array,
    counts: Int64Array,
    bit_width: int,
    signed: bool,
    target: npt.NDArray[np.uint64],
) -> None:
    """Unpack runs of values of ``bit_width`` (1 to 64) bits that follow each other without gaps.

    Run i has ``counts[i]`` values, the first of which begins at bit ``starts[i]``.  The highest bit
    of a value is its sign if ``signed``.  Raises ValueError, before anything is written, if a run
    leaves ``source`` or the runs do not fill ``target`` exactly.
    """

def set_bits(source: Bytes, start: int, count: int, target: Int64Array) -> None:
    """Write the numbers of the bits among ``[start, start + count)`` that are 1, from ``start`` on.

    Raises ValueError if the bits leave ``source``, or if they are not as many as ``target`` has room.
    """
