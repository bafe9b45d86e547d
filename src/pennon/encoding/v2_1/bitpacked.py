"""Bit-packing, in-line and out of line: blocks of 1024 values without their upper bits.

In-line, every block says its own bit width; out of line, the encoding says one for all, and the last
block of a chunk, if it is not whole, may be left unpacked (its size says so).

The order of the bits is that of FastLanes, see `pennon.encoding.kernels.fastlanes`.

Source: ledger F-17, F-91, F-92 (the raw tail is in pylance's physical/bitpacking.rs only).
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from pennon.core.memory import allocate
from pennon.encoding.arrow_buffers import Bytes
from pennon.encoding.block import Block, FixedWidthBlock
from pennon.encoding.kernels.fastlanes import unpack_blocks, unpack_inline
from pennon.encoding.kernels.pack import block_widths, pack_inline
from pennon.encoding.rows import Rows
from pennon.encoding.v2_1.chunks import Chunks
from pennon.encoding.v2_1.dispatch import Codecs, refuse_compression
from pennon.encoding.v2_1.encodings import Flat, InlineBitpacking, OutOfLineBitpacking
from pennon.encoding.v2_1.flat import decode_flat
from pennon.encoding.v2_1.pick import pick
from pennon.encoding.v2_1.values import Chunked, FixedValues, even_counts
from pennon.errors import FormatError, UnsupportedError

BLOCK_VALUES: Final = 1024
"""Values of a block; a chunk of in-line blocks that we write is one, for other readers take no more."""
_WORDS: Final = (8, 16, 32, 64)


def decode_inline(
    encoding: InlineBitpacking, chunks: Chunks, items: Rows, _codecs: Codecs
) -> Block:
    """Return the values ``items``; all chunks are unpacked in one call."""
    refuse_compression(encoding.compression)
    bits, buffer = _word_bits(encoding.bits_per_value), chunks.only()
    if (chunks.counts > buffer.sizes // (bits // 8) * BLOCK_VALUES).any():
        message = "chunks of packed values that are too short for as many"
        raise FormatError(message)
    values = allocate(chunks.values, f"u{bits // 8}")
    unpack_inline(buffer.data, buffer.starts, buffer.sizes, chunks.counts, values)
    return pick(FixedWidthBlock(len(values), bits, pa.py_buffer(values)), items)


def decode_out_of_line(
    encoding: OutOfLineBitpacking, chunks: Chunks, items: Rows, codecs: Codecs
) -> Block:
    """Return the values ``items``; all chunks are unpacked in one call."""
    bits, buffer = _word_bits(encoding.bits_per_value), chunks.only()
    inner = encoding.values
    if not isinstance(inner, Flat):
        message = f"packed values encoded as {type(inner).__name__}"
        raise UnsupportedError(message)
    refuse_compression(inner.compression)
    width = inner.bits_per_value
    if width >= bits:
        return decode_flat(inner, chunks, items, codecs)
    if width == 0:
        message = "values packed to no bits at all"
        raise FormatError(message)
    chunks.check_sizes(width)
    values = allocate(chunks.values, f"u{bits // 8}")
    unpack_blocks(buffer.data, buffer.starts, buffer.sizes, chunks.counts, width, values)
    return pick(FixedWidthBlock(len(values), bits, pa.py_buffer(values)), items)


def _word_bits(bits: int) -> int:
    if bits not in _WORDS:
        message = f"bit-packed values of {bits} bits"
        raise FormatError(message)
    return bits


def packed_bytes(values: FixedValues, widths: Bytes) -> int:
    """Return how many bytes of a page `encode_inline` would take."""
    word = values.bits // 8
    return sum(widths.tobytes()) * 128 + len(widths) * (10 + (word + 7) // 8 * 8)


def encode_inline(values: FixedValues, widths: Bytes | None = None) -> Chunked:
    """Return blocks of 1024 values, each as wide as its widest value."""
    words = values.words
    packed, sizes = pack_inline(words, block_widths(words) if widths is None else widths)
    counts = even_counts(values.count, BLOCK_VALUES)
    return Chunked(InlineBitpacking(values.bits), counts, (packed,), (sizes,))
