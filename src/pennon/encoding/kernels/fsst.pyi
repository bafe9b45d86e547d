"""Decode FSST: bytes that each stand for a symbol of one to eight bytes."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.ranges import Int64Array

Bytes: TypeAlias = npt.NDArray[np.uint8]

def decode_fsst(
    codes: Bytes,
    offsets: npt.NDArray[np.int32 | np.int64],
    symbols: npt.NDArray[np.uint64],
    lengths: Bytes,
) -> tuple[Bytes, Int64Array]:
    """Return the bytes of all strings and their rows + 1 offsets.

    String i is the codes ``[offsets[i], offsets[i + 1])``.  A code c is the first ``lengths[c]``
    bytes of ``symbols[c]``, little endian; 255 is an escape, and the byte behind it stands for
    itself.  Codes without a symbol have the length 0; there are 256 entries each.

    Raises FormatError if offsets fall or leave the codes, a code has no symbol, a symbol is longer
    than 8 bytes, or a string ends in an escape.
    """
