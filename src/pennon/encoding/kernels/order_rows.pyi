"""Rows of several arrays, in any order, as one array.

Row n of several arrays is counted through all of them, one after the other.  The arrays are kept
alive, and must not change.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Bytes: TypeAlias = npt.NDArray[np.uint8]

class FixedRows:
    """Arrays of values of ``width`` bytes each.  Raises ValueError if one holds no whole values."""

    def __init__(self, sources: Sequence[Bytes], width: int) -> None: ...
    @property
    def rows(self) -> int:
        """Return the number of rows of all arrays."""

    def put(self, order: Int64Array) -> Bytes:
        """Return the values of these rows.  Raises ValueError for a row that is not there."""

class BitRows:
    """Arrays of bits, ``rows[i]`` from bit ``firsts[i]`` on; None for bits that are all set.

    Raises ValueError if an array has fewer bits.
    """

    def __init__(
        self, sources: Sequence[Bytes | None], firsts: Int64Array, rows: Int64Array
    ) -> None: ...
    @property
    def rows(self) -> int:
        """Return the number of rows of all arrays."""

    def put(self, order: Int64Array) -> Bytes:
        """Return the bits of these rows, from bit 0 on.  Raises ValueError for a row that is not there."""

class StringRows:
    """Arrays of byte strings: their bytes, and offsets of ``width`` bytes (4 or 8), one more than strings.

    Raises ValueError if arguments do not fit together.
    """

    def __init__(self, sources: Sequence[Bytes], offsets: Sequence[Bytes], width: int) -> None: ...
    @property
    def rows(self) -> int:
        """Return the number of rows of all arrays."""

    def put(self, order: Int64Array) -> tuple[Bytes, Bytes]:
        """Return the offsets of these rows, from 0 on, as bytes, and their bytes.

        Raises ValueError for a row that is not there, FormatError if offsets fall or leave the bytes of their array,
        TooLargeError if offsets of 4 bytes cannot hold the sum.
        """
