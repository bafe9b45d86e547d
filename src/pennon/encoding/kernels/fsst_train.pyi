"""FSST: count symbols in a sample, encode strings with a table."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array

Bytes: TypeAlias = npt.NDArray[np.uint8]
Symbols: TypeAlias = npt.NDArray[np.uint64]

def count_symbols(
    data: Bytes,
    offsets: Int64Array,
    symbols: Symbols,
    lengths: Bytes,
    least: int,
    pairs: npt.NDArray[np.uint32],
) -> tuple[Symbols, Int64Array, Int64Array]:
    """Return candidates for the next table: symbols, their lengths, and what each would save.

    The strings are encoded with the table as it is.  Candidates are the symbols that were used at
    least ``least`` times, their first bytes, and any two that followed each other so often; the same
    one may come several times.  ``pairs`` is memory to count in, of shape (512, 512); what it holds is
    overwritten.

    Raises ValueError for tables of more than 255 symbols, if two symbols of 3 to 5 bytes begin with the same
    three, or two of 6 and 7 bytes with the same six, unless ``least`` is above 0, and for other ``pairs``.
    """

def encode_symbols(
    data: Bytes, offsets: npt.NDArray[Any], symbols: Symbols, lengths: Bytes
) -> tuple[Bytes, Int64Array]:
    """Return the codes of all strings, and where each ends; a byte without a symbol is 255, itself.

    The longest symbol that fits is taken.  Raises ValueError if offsets fall or leave the data.
    """
