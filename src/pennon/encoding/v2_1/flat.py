"""Flat: values of one width, one after the other, least significant bit first if below a byte."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from pennon.encoding.block import Block, FixedSizeListBlock, FixedWidthBlock
from pennon.encoding.rows import Rows
from pennon.encoding.v2_1.chunks import Chunks
from pennon.encoding.v2_1.dispatch import Codecs, refuse_compression
from pennon.encoding.v2_1.encodings import Flat
from pennon.encoding.v2_1.pick import pick_bytes, pick_fixed
from pennon.encoding.v2_1.values import Chunked, FixedValues, even_counts, values_per_chunk
from pennon.errors import FormatError, UnsupportedError

_CHUNK_BYTES: Final = 10
"""The bytes that a chunk takes beside its values: a header of 8, and an entry of 2 in the table of chunks."""


def decode_flat(encoding: Flat, chunks: Chunks, items: Rows, _codecs: Codecs) -> Block:
    """Return the values ``items``; those of one chunk, or of a whole page, are copied at most once."""
    refuse_compression(encoding.compression)
    bits = encoding.bits_per_value
    chunks.check_sizes(bits)
    return FixedWidthBlock(items.count, bits, _pick(chunks, items, bits))


def _pick(chunks: Chunks, items: Rows, bits: int) -> pa.Buffer:
    buffer, pieces = chunks.only(), chunks.cut(items)
    starts = buffer.starts[pieces.chunk]
    if bits == 1:
        return pick_fixed(
            buffer.data, starts * 8 + pieces.first, starts * 8 + pieces.last, bits_per_value=1
        )
    if bits % 8:
        message = f"values of {bits} bits; Pennon reads single bits and whole bytes"
        raise UnsupportedError(message)
    width = bits // 8
    return pick_bytes(buffer.data, starts + pieces.first * width, starts + pieces.last * width)


def decode_flat_values(encoding: Flat, stored: Block, _codecs: Codecs) -> Block:
    """Return values that are stored as they are."""
    refuse_compression(encoding.compression)
    if isinstance(stored, FixedSizeListBlock) or not isinstance(stored, FixedWidthBlock):
        message = f"flat values stored as {type(stored).__name__}"
        raise FormatError(message)
    if stored.bits_per_value != encoding.bits_per_value:
        message = f"values of {encoding.bits_per_value} bits stored in {stored.bits_per_value} bits"
        raise FormatError(message)
    return stored


def flat_bytes(values: FixedValues) -> int:
    """Return how many bytes of a page `encode_flat` would take."""
    per_chunk = values_per_chunk(values.bits) or 1
    whole, rest = divmod(values.count, per_chunk)
    padded = whole * _padded(per_chunk * values.bits) + _padded(rest * values.bits)
    return padded + (whole + (rest > 0)) * _CHUNK_BYTES


def _padded(bits: int) -> int:
    """Return the bytes of a chunk's values, with what fills them up to a multiple of eight."""
    return (bits + 63) // 64 * 8


def encode_flat(values: FixedValues) -> Chunked:
    """Return the values as they are.  Raises UnsupportedError if they are too wide for chunks."""
    per_chunk = values_per_chunk(values.bits)
    if per_chunk == 0:
        message = f"values of {values.bits} bits do not fit a mini-block chunk"
        raise UnsupportedError(message)
    counts = even_counts(values.count, per_chunk)
    sizes = (counts * values.bits + 7) // 8
    return Chunked(Flat(values.bits), counts, (values.data,), (sizes,))
