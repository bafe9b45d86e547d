"""Byte ranges of a file: the I/O plan as a value.

Reads are planned, not done, by the code that understands pages.  It asks for a list of requests, all
of one *round*, and gets a list of buffers back.  A test can print and compare such a plan.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.fast_dataclass import dataclass

Int64Array: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ByteRange:
    """One contiguous range of a file: ``size_bytes`` bytes from the absolute ``position`` on."""

    position: int
    size_bytes: int

    @property
    def end(self) -> int:
        """Return the position after the last byte."""
        return self.position + self.size_bytes


@dataclass(frozen=True, slots=True, eq=False)
class Gather:
    """Many ranges ``[starts[i], ends[i])`` of a file, to be packed one after the other.

    The answer is one buffer: the bytes of range 0, then of range 1, and so on, in the order given,
    without gaps.  That is just what a gather of fixed-width values, or the data buffer of an Arrow
    string array, looks like.
    """

    starts: Int64Array
    ends: Int64Array


@dataclass(frozen=True, slots=True, eq=False)
class SparseRead(Gather):
    """Ascending byte ranges without overlap; perhaps only a small part of the bytes is used.

    The answer is that of a `Gather`, or, where it takes no copy, all from the begin of the first range
    to the end of the last: its size tells.
    """

    @property
    def hull(self) -> ByteRange:
        """Return all from the first range to the last."""
        if not len(self.starts):
            return ByteRange(0, 0)
        start = int(self.starts[0])
        return ByteRange(start, int(self.ends[-1]) - start)


ByteRequest: TypeAlias = ByteRange | Gather
