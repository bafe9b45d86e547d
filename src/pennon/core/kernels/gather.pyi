"""Copy many byte ranges of one buffer, or of a file, back to back, into another."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Bytes: TypeAlias = npt.NDArray[np.uint8]

def total_size(starts: Int64Array, ends: Int64Array, limit: int) -> int:
    """Return the sum of the sizes of the ranges ``[starts[i], ends[i])``.

    Raises ValueError unless ``0 <= starts[i] <= ends[i] <= limit`` for all, or if the sum does not
    fit 63 bits.
    """

def gather(source: Bytes, starts: Int64Array, ends: Int64Array, target: Bytes) -> None:
    """Copy the ranges of ``source`` to ``target``, one after the other, in the order given.

    Ranges may overlap, repeat and come in any order.  Raises ValueError, before a byte is copied,
    if a range leaves ``source`` or the sizes do not add up to that of ``target``.
    """

def gather_from_file(fd: int, starts: Int64Array, ends: Int64Array, target: Bytes) -> None:
    """Copy the ranges of an open file to ``target``, as `gather` does.

    Small ranges that rise and lie close are read with one call.  Raises ValueError as `gather` does,
    but for ranges that leave the file: EOFError; OSError if the system cannot read.
    """

def scatter(
    source: Bytes, sources: Int64Array, targets: Int64Array, sizes: Int64Array, target: Bytes
) -> None:
    """Copy ``sizes[i]`` bytes from ``sources[i]`` of ``source`` to ``targets[i]`` of ``target``.

    Raises ValueError, before a byte is copied, if a piece leaves either side.
    """
