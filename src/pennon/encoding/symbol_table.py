"""Symbol tables of FSST: what the codes of a page stand for.

A table is 2312 bytes (its unused rest is zero):

    u64      number of symbols (bits 0..7), bit 24: codes are in use, "FSST" in the upper half
    u64 * n  the symbols, first byte lowest
    u8 * n   their lengths

Without bit 24 the bytes are not coded at all (an input of less than 32 KiB was left as it is).

Source: ledger F-96 (pylance, ``lance-encoding:compression`` = ``fsst``).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from pennon.core.fast_dataclass import dataclass
from pennon.errors import FormatError

HEADER_BYTES: Final = 8
MAGIC: Final = 0x46535354
IN_USE: Final = 1 << 24


@dataclass(frozen=True, slots=True, eq=False)
class SymbolTable:
    """The symbol of each code; codes without a symbol have length 0."""

    symbols: npt.NDArray[np.uint64]
    lengths: npt.NDArray[np.uint8]


@lru_cache(maxsize=256)
def parse_symbol_table(table: bytes) -> SymbolTable | None:
    """Return the symbols, or None if the bytes are not coded.

    Raises FormatError if this is no symbol table.
    """
    if len(table) < HEADER_BYTES:
        message = f"an FSST symbol table of {len(table)} bytes"
        raise FormatError(message)
    header = int.from_bytes(table[:HEADER_BYTES], "little")
    if header >> 32 != MAGIC:
        message = "an FSST symbol table does not begin with its magic number"
        raise FormatError(message)
    if not header & IN_USE:
        return None
    return _parse_symbols(table, header & 0xFF)


def _parse_symbols(table: bytes, count: int) -> SymbolTable:
    if len(table) < HEADER_BYTES + 9 * count:
        message = f"an FSST symbol table of {len(table)} bytes cannot hold {count} symbols"
        raise FormatError(message)
    symbols, lengths = np.zeros(256, np.uint64), np.zeros(256, np.uint8)
    symbols[:count] = np.frombuffer(table, np.dtype("<u8"), count, HEADER_BYTES)
    lengths[:count] = np.frombuffer(table, np.uint8, count, HEADER_BYTES + 8 * count)
    return SymbolTable(symbols, lengths)
