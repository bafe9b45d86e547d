"""FSST: a Binary whose bytes are codes for strings of up to eight bytes.

The symbol table is 2312 bytes (its unused rest is zero):

    u64      number of symbols (bits 0..7), bit 24: codes are in use, "FSST" in the upper half
    u64 * n  the symbols, first byte lowest
    u8 * n   their lengths

Without bit 24 the bytes are not coded at all (an input of less than 32 KiB was left as it is).
Each string is coded by itself, so a take decodes only what it read.

Source: ledger F-96 (the oracle, ``lance-encoding:compression`` = ``fsst``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.encoding.block import AllNullBlock, Block, NullableBlock, VariableBlock
from pennon.encoding.kernels.fsst import decode_fsst as expand
from pennon.encoding.page import PageBuffers
from pennon.encoding.rows import Rows
from pennon.encoding.steps import Steps
from pennon.encoding.v2_0.dispatch import Codecs
from pennon.encoding.v2_0.encoded import Bytes, as_bytes
from pennon.encoding.v2_0.encodings import Fsst
from pennon.errors import FormatError

HEADER_BYTES: Final = 8
MAGIC: Final = 0x46535354
IN_USE: Final = 1 << 24


@dataclass(frozen=True, slots=True, eq=False)
class SymbolTable:
    """What each code stands for; codes without a symbol have length 0."""

    symbols: npt.NDArray[np.uint64]
    lengths: Bytes


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


def decode_fsst(encoding: Fsst, page: PageBuffers, rows: Rows, codecs: Codecs) -> Steps[Block]:
    """Return the byte strings of ``rows``.

    Raises FormatError if the table is broken or a code has no symbol.
    """
    table = parse_symbol_table(encoding.symbol_table)
    block = yield from codecs.decode(encoding.binary, page, rows)
    return block if table is None else _expand_block(block, table)


def _expand_block(block: Block, table: SymbolTable) -> Block:
    if isinstance(block, NullableBlock):
        return NullableBlock(block.rows, block.validity, _expand_block(block.values, table))
    if isinstance(block, AllNullBlock):
        return block
    if not isinstance(block, VariableBlock):
        message = f"FSST codes are {type(block).__name__}"
        raise FormatError(message)
    dtype = np.dtype(f"i{block.offset_bits // 8}")
    offsets = np.frombuffer(block.offsets, dtype, block.rows + 1)
    ends, data = expand(as_bytes(block.data), offsets, table.symbols, table.lengths)
    bits = 8 * ends.itemsize
    return VariableBlock(block.rows, bits, pa.py_buffer(ends), pa.py_buffer(data))
