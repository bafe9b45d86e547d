"""Run lengths: values, and how often each of them comes.

A chunk of a mini-block has two buffers: the values, and the lengths (bytes; a longer run is several).
In one buffer (the levels of a page) they stand one after the other::

    u64 size of the values in bytes | values | lengths

Source: ledger F-93 (pylance's physical/rle.rs).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.memory import allocate
from pennon.core.runs import run_starts
from pennon.encoding.arrow_buffers import Bytes
from pennon.encoding.block import Block, FixedWidthBlock
from pennon.encoding.kernels.rle_encode import count_runs, encode_runs
from pennon.encoding.kernels.runs import expand_runs, split_runs
from pennon.encoding.rows import Rows
from pennon.encoding.v2_1.chunks import ChunkBuffers, Chunks
from pennon.encoding.v2_1.dispatch import Codecs, refuse_compression
from pennon.encoding.v2_1.encodings import Encoding, Flat, Rle
from pennon.encoding.v2_1.pick import pick
from pennon.encoding.v2_1.values import MOST_CHUNK_BYTES, MOST_VALUES, Chunked, FixedValues, Words
from pennon.errors import FormatError, UnsupportedError

_HEADER_BYTES: Final = 8
_LONGEST_RUN: Final = 255


def decode_rle(encoding: Rle, chunks: Chunks, items: Rows, _codecs: Codecs) -> Block:
    """Return the values ``items``; all chunks are expanded in one call."""
    if len(chunks.buffers) != 2:
        message = f"run lengths in {len(chunks.buffers)} buffers"
        raise FormatError(message)
    return _expand(encoding, chunks.buffers[0], chunks.buffers[1], chunks, items)


def decode_rle_blocks(encoding: Rle, chunks: Chunks, items: Rows, _codecs: Codecs) -> Block:
    """Return the values ``items`` of chunks that have one buffer each."""
    buffer = chunks.only()
    sizes = split_runs(buffer.data, buffer.starts, buffer.sizes)
    starts = buffer.starts + _HEADER_BYTES
    values = ChunkBuffers(buffer.data, starts, sizes)
    lengths = ChunkBuffers(buffer.data, starts + sizes, buffer.sizes - _HEADER_BYTES - sizes)
    return _expand(encoding, values, lengths, chunks, items)


def _expand(
    encoding: Rle, values: ChunkBuffers, lengths: ChunkBuffers, chunks: Chunks, items: Rows
) -> Block:
    bits = _width(encoding.values, (8, 16, 32, 64))
    length_bits = _width(encoding.run_lengths, (8, 16, 32))
    chunks.check_expanded()
    target: np.ndarray[Any, Any] = allocate(chunks.values, f"u{bits // 8}")
    expand_runs(
        values.data,
        values.starts,
        values.sizes,
        lengths.data,
        lengths.starts,
        lengths.sizes,
        length_bits // 8,
        chunks.counts,
        target,
    )
    return pick(FixedWidthBlock(len(target), bits, pa.py_buffer(target)), items)


def _width(encoding: Encoding, known: tuple[int, ...]) -> int:
    if not isinstance(encoding, Flat):
        message = f"run lengths with parts encoded as {type(encoding).__name__}"
        raise UnsupportedError(message)
    refuse_compression(encoding.compression)
    if encoding.bits_per_value not in known:
        message = f"run lengths with parts of {encoding.bits_per_value} bits"
        raise FormatError(message)
    return encoding.bits_per_value


def encode_rle(values: FixedValues) -> Chunked:
    """Return runs of equal values: the values, and their lengths."""
    found, lengths, counts, runs = encode_runs(values.words, MOST_VALUES, MOST_CHUNK_BYTES)
    width = values.bits // 8
    encoding = Rle(Flat(values.bits), Flat(8))
    return Chunked(encoding, counts, (found.view(np.uint8), lengths), (runs * width, runs))


def run_bytes(words: Words, counts: Int64Array) -> int:
    """Return about how many bytes `encode_rle_blocks` would take."""
    runs = count_runs(words) + len(counts) + len(words) // _LONGEST_RUN
    return runs * (words.itemsize + 1) + len(counts) * _HEADER_BYTES


def encode_rle_blocks(words: Words, counts: Int64Array) -> tuple[Bytes, Int64Array]:
    """Return chunks of ``counts[i]`` words as runs, each in one buffer, and their sizes in bytes."""
    ends = np.cumsum(counts)
    is_begin = run_starts(words)
    is_begin[ends[:-1]] = True
    begins = np.flatnonzero(is_begin)
    lengths = np.diff(begins, append=len(words))
    pieces = -(-lengths // _LONGEST_RUN)
    values = np.repeat(words[begins], pieces)
    left = np.full(len(values), _LONGEST_RUN, np.uint8)
    left[np.cumsum(pieces) - 1] = lengths - _LONGEST_RUN * (pieces - 1)
    chunk_of = np.repeat(np.searchsorted(ends, begins, side="right"), pieces)
    runs = np.bincount(chunk_of, minlength=len(counts))
    width = words.itemsize
    sizes = _HEADER_BYTES + runs * (width + 1)
    starts = np.cumsum(sizes) - sizes
    data = np.empty(int(sizes.sum()), np.uint8)
    heads = (runs * width).astype("<u8").view(np.uint8).reshape(-1, _HEADER_BYTES)
    data[starts[:, np.newaxis] + np.arange(_HEADER_BYTES)] = heads
    nth = np.arange(len(values)) - (np.cumsum(runs) - runs)[chunk_of]
    at = starts[chunk_of] + _HEADER_BYTES
    data[(at + nth * width)[:, np.newaxis] + np.arange(width)] = values.view(np.uint8).reshape(
        -1, width
    )
    data[at + runs[chunk_of] * width + nth] = left
    return data, sizes
