"""FSST: a Binary whose bytes are codes for strings of up to eight bytes (`SymbolTable`).

Each string is coded by itself, so a take decodes only what it read.

Source: ledger F-96 (pylance, ``lance-encoding:compression`` = ``fsst``).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pennon.encoding.arrow_buffers import as_bytes
from pennon.encoding.block import AllNullBlock, Block, NullableBlock, VariableBlock
from pennon.encoding.kernels.fsst import decode_fsst as expand
from pennon.encoding.page import PageBuffers
from pennon.encoding.read_protocol import Steps
from pennon.encoding.rows import Rows
from pennon.encoding.symbol_table import SymbolTable, parse_symbol_table
from pennon.encoding.v2_0.dispatch import Codecs
from pennon.encoding.v2_0.encodings import Fsst
from pennon.errors import FormatError


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
