"""Byte stream split: byte 0 of all values of a chunk, then byte 1 of all, and so on.

It makes nothing smaller by itself, but what `General` compresses around it.  Source: ledger F-94.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from pennon.core.memory import allocate
from pennon.encoding.block import Block, FixedWidthBlock
from pennon.encoding.kernels.rle_encode import split_streams
from pennon.encoding.kernels.runs import join_streams
from pennon.encoding.rows import Rows
from pennon.encoding.v2_1.chunks import Chunks
from pennon.encoding.v2_1.dispatch import Codecs, refuse_compression
from pennon.encoding.v2_1.encodings import ByteStreamSplit, Flat
from pennon.encoding.v2_1.pick import pick
from pennon.encoding.v2_1.values import Chunked, FixedValues, even_counts
from pennon.errors import FormatError, UnsupportedError


def decode_byte_stream_split(
    encoding: ByteStreamSplit, chunks: Chunks, items: Rows, _codecs: Codecs
) -> Block:
    """Return the values ``items``; all chunks are joined in one call."""
    inner, buffer = encoding.values, chunks.only()
    if not isinstance(inner, Flat):
        message = f"byte streams encoded as {type(inner).__name__}"
        raise UnsupportedError(message)
    refuse_compression(inner.compression)
    if inner.bits_per_value % 8:
        message = f"byte streams of values of {inner.bits_per_value} bits"
        raise FormatError(message)
    chunks.check_sizes(inner.bits_per_value)
    width = inner.bits_per_value // 8
    target = allocate(chunks.values * width, np.uint8)
    join_streams(buffer.data, buffer.starts, buffer.sizes, chunks.counts, width, target)
    block = FixedWidthBlock(chunks.values, inner.bits_per_value, pa.py_buffer(target))
    return pick(block, items)


STREAM_BYTES: Final = 4096


def encode_byte_stream_split(values: FixedValues) -> Chunked:
    """Return values of 32 or 64 bits as byte streams, of use only to a compression around it."""
    width = values.bits // 8
    counts = even_counts(values.count, STREAM_BYTES // width)
    data = split_streams(values.data, width, counts)
    return Chunked(ByteStreamSplit(Flat(values.bits)), counts, (data,), (counts * width,))
