"""FSST: byte strings whose bytes are codes for symbols of up to eight bytes.

The symbol table (`pennon.encoding.symbol_table`) is one for the page.  Every string is
coded by itself, so only those that are asked for are decoded.

Source: ledger F-96.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pennon.core.byte_ranges import Int64Array
from pennon.encoding.arrow_buffers import Bytes, as_bytes
from pennon.encoding.block import Block, VariableBlock
from pennon.encoding.kernels.fsst import decode_fsst as expand
from pennon.encoding.kernels.fsst import decode_fsst_chunks as expand_chunks
from pennon.encoding.kernels.fsst import decode_fsst_ranges as expand_ranges
from pennon.encoding.rows import Rows
from pennon.encoding.symbol_table import parse_symbol_table
from pennon.encoding.v2_1.chunks import Chunks
from pennon.encoding.v2_1.dispatch import Codecs
from pennon.encoding.v2_1.encodings import Fsst, Variable
from pennon.encoding.v2_1.values import Chunked, Single, StringValues
from pennon.encoding.v2_1.variable import (
    encode_variable,
    encode_variable_values,
    join_places,
    offset_bits,
    string_block,
)
from pennon.errors import FormatError

if TYPE_CHECKING:
    from pennon.encoding.v2_1.symbol_training import TrainedSymbols  # readers do without


def decode_fsst(encoding: Fsst, chunks: Chunks, items: Rows, codecs: Codecs) -> Block:
    """Return the byte strings ``items`` of mini-block chunks, as a rule straight out of them."""
    table = parse_symbol_table(encoding.symbol_table)
    if table is None or not isinstance(encoding.values, Variable):
        return _expand(encoding, codecs.decode_chunks(encoding.values, chunks, items))
    width, buffer = offset_bits(encoding.values) // 8, chunks.only()
    ends, data = expand_chunks(
        buffer.data,
        buffer.starts,
        buffer.sizes,
        chunks.counts,
        width,
        items.starts,
        items.ends,
        table.symbols,
        table.lengths,
    )
    return string_block(ends, data)


def decode_fsst_values(encoding: Fsst, stored: Block, codecs: Codecs) -> Block:
    """Return byte strings that were coded one by one."""
    return _expand(encoding, codecs.decode_values(encoding.values, stored))


def decode_fsst_places(
    encoding: Fsst, data: Bytes, starts: Int64Array, ends: Int64Array, codecs: Codecs
) -> Block:
    """Return byte strings that were coded one by one; string i is ``data[starts[i]:ends[i]]``."""
    table = parse_symbol_table(encoding.symbol_table)
    if table is None or not isinstance(encoding.values, Variable):
        stored = join_places(data, starts, ends)
        return _expand(encoding, codecs.decode_values(encoding.values, stored))
    offset_bits(encoding.values)
    return string_block(*expand_ranges(data, starts, ends, table.symbols, table.lengths))


def _expand(encoding: Fsst, codes: Block) -> Block:
    """Raises FormatError if the table is broken or a code has no symbol."""
    table = parse_symbol_table(encoding.symbol_table)
    if not isinstance(codes, VariableBlock):
        message = f"FSST codes are {type(codes).__name__}"
        raise FormatError(message)
    if table is None:
        return codes
    dtype = np.dtype(f"i{codes.offset_bits // 8}")
    offsets = np.frombuffer(codes.offsets, dtype, codes.rows + 1)
    ends, data = expand(as_bytes(codes.data), offsets, table.symbols, table.lengths)
    return string_block(ends, data)


def encode_fsst(values: StringValues, symbols: TrainedSymbols) -> Chunked:
    """Return chunks of offsets and codes."""
    inner = encode_variable(symbols.encode(values))
    return Chunked(
        Fsst(symbols.serialize(), inner.encoding), inner.counts, inner.buffers, inner.sizes
    )


def encode_fsst_values(values: StringValues, symbols: TrainedSymbols) -> Single:
    """Return the codes of each string."""
    inner = encode_variable_values(symbols.encode(values))
    encoding = Fsst(symbols.serialize(), inner.encoding)
    return Single(encoding, inner.data, None, inner.offsets, inner.offset_width)
