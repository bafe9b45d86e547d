"""Decode FSST: bytes that each stand for a symbol of one to eight bytes."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Bytes: TypeAlias = npt.NDArray[np.uint8]

def decode_fsst(
    codes: Bytes,
    offsets: npt.NDArray[np.int32 | np.int64],
    symbols: npt.NDArray[np.uint64],
    lengths: Bytes,
) -> tuple[npt.NDArray[np.int32 | np.int64], Bytes]:
    """Return the rows + 1 offsets of all strings (int32 if they are sure to fit) and their bytes.

    String i is the codes ``[offsets[i], offsets[i + 1])``.  A code c is the first ``lengths[c]``
    bytes of ``symbols[c]``, little endian; 255 is an escape, and the byte behind it stands for
    itself.  Codes without a symbol have the length 0; there are 256 entries each.

    Raises FormatError if offsets fall or leave the codes, a code has no symbol, a symbol is longer
    than 8 bytes, or a string ends in an escape.
    """

def decode_fsst_chunks(
    data: Bytes,
    starts: Int64Array,
    sizes: Int64Array,
    counts: Int64Array,
    offset_width: int,
    item_starts: Int64Array,
    item_ends: Int64Array,
    symbols: npt.NDArray[np.uint64],
    lengths: Bytes,
) -> tuple[npt.NDArray[np.int32 | np.int64], Bytes]:
    """Return what `decode_fsst` does for strings of mini-block chunks.

    The first seven arguments are those of `pennon.encoding.kernels.strings.pick_strings`.
    """

def decode_fsst_ranges(
    data: Bytes,
    starts: Int64Array,
    ends: Int64Array,
    symbols: npt.NDArray[np.uint64],
    lengths: Bytes,
) -> tuple[npt.NDArray[np.int32 | np.int64], Bytes]:
    """Return what `decode_fsst` does for strings that lie apart: string i is ``data[starts[i]:ends[i]]``.

    Raises FormatError also if a string leaves the data; ValueError if there are not as many starts as ends.
    """
