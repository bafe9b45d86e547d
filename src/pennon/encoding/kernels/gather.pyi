"""Copy many byte ranges of one buffer, back to back, into another."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.ranges import Int64Array

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

def scatter(
    source: Bytes, sources: Int64Array, targets: Int64Array, sizes: Int64Array, target: Bytes
) -> None:
    """Copy ``sizes[i]`` bytes from ``sources[i]`` of ``source`` to ``targets[i]`` of ``target``.

    Raises ValueError, before a byte is copied, if a piece leaves either side.
    """
