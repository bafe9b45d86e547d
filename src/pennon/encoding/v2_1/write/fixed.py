"""Encoders of fixed-width values in chunks: flat, bit-packed, run lengths, byte streams."""

from __future__ import annotations

from typing import Final

import numpy as np

from pennon.core.byte_ranges import Int64Array
from pennon.encoding.kernels.pack import block_widths, pack_inline
from pennon.encoding.kernels.squeeze import encode_runs, split_streams
from pennon.encoding.v2_1.encodings import ByteStreamSplit, Flat, InlineBitpacking, Rle
from pennon.encoding.v2_1.values import Bytes, Chunked, FixedValues
from pennon.errors import UnsupportedError

MOST_VALUES: Final = 4096
"""Values of a chunk, for readers hold them all in memory to find one."""

MOST_CHUNK_BYTES: Final = 8186
"""Bytes of the values of a chunk; with the worst of levels it stays below 32 KiB."""

PACKED_BLOCK: Final = 1024
"""Values of a bit-packed chunk; readers take exactly one block of a chunk."""

STREAM_BYTES: Final = 4096


def even_counts(count: int, per_chunk: int) -> Int64Array:
    """Return chunks of ``per_chunk`` values, and one of what is left."""
    counts = np.full(-(-count // per_chunk), per_chunk, np.int64)
    if count % per_chunk:
        counts[-1] = count % per_chunk
    return counts


def values_per_chunk(bits: int) -> int:
    """Return the largest power of two of values that fits a chunk; 0 if not even two do."""
    per_chunk = MOST_VALUES
    while per_chunk > 1 and per_chunk * bits > 8 * MOST_CHUNK_BYTES:
        per_chunk //= 2
    return 0 if per_chunk < 2 or (bits % 8 and per_chunk < 8) else per_chunk


def chunk_flat(values: FixedValues) -> Chunked:
    """Return the values as they are.  Raises UnsupportedError if they are too wide for chunks."""
    per_chunk = values_per_chunk(values.bits)
    if per_chunk == 0:
        message = f"values of {values.bits} bits do not fit a mini-block chunk"
        raise UnsupportedError(message)
    counts = even_counts(values.count, per_chunk)
    sizes = (counts * values.bits + 7) // 8
    return Chunked(Flat(values.bits), counts, (values.data,), (sizes,))


def packed_bytes(values: FixedValues, widths: Bytes) -> int:
    """Return how many bytes of a page `chunk_packed` would take."""
    word = values.bits // 8
    return int(widths.astype(np.int64).sum()) * 128 + len(widths) * (10 + (word + 7) // 8 * 8)


def chunk_packed(values: FixedValues, widths: Bytes | None = None) -> Chunked:
    """Return blocks of 1024 values, each as wide as its widest value."""
    words = values.words
    packed, sizes = pack_inline(words, block_widths(words) if widths is None else widths)
    counts = even_counts(values.count, PACKED_BLOCK)
    return Chunked(InlineBitpacking(values.bits), counts, (packed,), (sizes,))


def chunk_runs(values: FixedValues) -> Chunked:
    """Return runs of equal values: the values, and their lengths."""
    found, lengths, counts, runs = encode_runs(values.words, MOST_VALUES, MOST_CHUNK_BYTES)
    width = values.bits // 8
    encoding = Rle(Flat(values.bits), Flat(8))
    return Chunked(encoding, counts, (found.view(np.uint8), lengths), (runs * width, runs))


def chunk_streams(values: FixedValues) -> Chunked:
    """Return values of 32 or 64 bits as byte streams, of use only to a compression around it."""
    width = values.bits // 8
    counts = even_counts(values.count, STREAM_BYTES // width)
    data = split_streams(values.data, width, counts)
    return Chunked(ByteStreamSplit(Flat(values.bits)), counts, (data,), (counts * width,))
