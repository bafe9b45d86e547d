"""General: lz4 or zstd around another encoding.

In mini-blocks it is the first buffer of each chunk that is compressed (the lengths of runs, the
validity of items stay as they are), among single values each value.  The compressed form has a
size in front (`pennon.encoding.decompress`), never believed beyond its limits.

Source: ledger F-95.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.memory import allocate
from pennon.core.units import MIB
from pennon.encoding.arrow_buffers import Bytes, as_bytes
from pennon.encoding.block import Block, VariableBlock
from pennon.encoding.decompress import MAX_INFLATED, inflate
from pennon.encoding.kernels.frames import copy_stored, stored_sizes
from pennon.encoding.kernels.lz4 import inflate_blocks
from pennon.encoding.rows import Rows
from pennon.encoding.v2_1.chunks import ChunkBuffers, Chunks
from pennon.encoding.v2_1.dispatch import Codecs
from pennon.encoding.v2_1.encodings import BufferCompression, General
from pennon.encoding.v2_1.pick import pick_bytes
from pennon.encoding.v2_1.values import Chunked, Single
from pennon.encoding.v2_1.variable import buffer_of, string_block
from pennon.errors import ArgumentError, FormatError, TooLargeError

MOST_BYTES: Final = 4096 * MIB
"""What the compressed parts of one page may grow to together."""

ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
MAX_LZ4_RATIO: Final = 255
_PREFIX_BYTES: Final = 8
_LZ4_PREFIX_BYTES: Final = 4
_MANY_PARTS: Final = 4


def decode_general(encoding: General, chunks: Chunks, items: Rows, codecs: Codecs) -> Block:
    """Return the values ``items`` of mini-block chunks."""
    return codecs.decode_chunks(encoding.values, _inflated(encoding, chunks), items)


def decode_general_blocks(encoding: General, chunks: Chunks, items: Rows, codecs: Codecs) -> Block:
    """Return the values ``items`` of one buffer."""
    return codecs.decode_blocks(encoding.values, _inflated(encoding, chunks), items)


def decode_general_values(encoding: General, stored: Block, codecs: Codecs) -> Block:
    """Return values that were compressed one by one."""
    if not isinstance(stored, VariableBlock):
        message = f"compressed values stored as {type(stored).__name__}"
        raise FormatError(message)
    offsets = np.frombuffer(stored.offsets, f"i{stored.offset_bits // 8}", stored.rows + 1)
    borders = offsets.astype(np.int64)
    return inflate_values(encoding, as_bytes(stored.data), borders[:-1], borders[1:], codecs)


def inflate_values(
    encoding: General, data: Bytes, starts: Int64Array, ends: Int64Array, codecs: Codecs
) -> Block:
    """Return values that were compressed one by one; value i is ``data[starts[i]:ends[i]]``.

    What lies under a NULL has no bytes, not even compressed ones.
    """
    if encoding.compression.scheme == "zstd":
        borders, joined = _inflate_frames(data, starts, ends)
    else:
        parts = (data[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True))
        borders, joined = _join(_inflate_all(encoding, parts))
    return codecs.decode_values(encoding.values, string_block(borders, joined))


def _inflate_frames(data: Bytes, starts: Int64Array, ends: Int64Array) -> tuple[Int64Array, Bytes]:
    """Return where each value ends, from 0 on, and all values together.

    What cannot be compressed, as images, was stored, and is copied by a kernel.
    """
    sizes = _stored_sizes(data, starts, ends)
    is_stored = sizes >= 0
    parts: list[tuple[int, pa.Buffer]] = []
    total = int(sizes[is_stored].sum())
    for number in np.flatnonzero(~is_stored).tolist():
        part = data[starts[number] : ends[number]]
        parts.append((number, inflate(pa.py_buffer(part), "zstd")))
        sizes[number] = parts[-1][1].size
        total += parts[-1][1].size
        _check_total(total)
    _check_total(total)
    borders = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    target = allocate(total, np.uint8)
    for number, buffer in parts:
        target[borders[number] : borders[number + 1]] = np.frombuffer(buffer, np.uint8)
    kept = np.flatnonzero(is_stored & (sizes > 0))
    bodies = starts[kept] + _PREFIX_BYTES
    copy_stored(data, bodies, ends[kept], target, borders[kept], sizes[kept])
    return borders, target


def _stored_sizes(data: Bytes, starts: Int64Array, ends: Int64Array) -> Int64Array:
    """Return the size of each value that is empty or stored, -1 for those that the codec inflates."""
    packed = ends - starts
    sizes = stored_sizes(data, np.minimum(starts + _PREFIX_BYTES, ends), ends)
    found = np.flatnonzero(sizes >= 0)
    prefixes = data[starts[found][:, np.newaxis] + np.arange(_PREFIX_BYTES)]
    claimed = np.ascontiguousarray(prefixes).view("<u8").reshape(-1)
    fine = (claimed == sizes[found].view("u8")) & (sizes[found] <= MAX_INFLATED)
    sizes[found[~fine]] = -1
    sizes[packed == 0] = 0
    return sizes


def _check_total(size: int) -> None:
    if size > MOST_BYTES:
        message = f"the compressed parts of a page grow beyond {MOST_BYTES} bytes"
        raise TooLargeError(message)


def _inflated(encoding: General, chunks: Chunks) -> Chunks:
    buffer = chunks.first()
    scheme, sizes, joined = encoding.compression.scheme, None, None
    if scheme == "zstd" and len(buffer.sizes) >= _MANY_PARTS:
        sizes = _sizes_in_front(buffer)
        joined = None if sizes is None else _inflate_stream(buffer, int(sizes.sum()))
    elif scheme == "lz4":
        sizes = _lz4_sizes(buffer)
        joined = _inflate_lz4(buffer, sizes)
    if sizes is not None and joined is not None:
        first = ChunkBuffers(joined, np.cumsum(sizes) - sizes, sizes)
        return replace(chunks, buffers=(first, *chunks.buffers[1:]))
    parts = (buffer_of(buffer, number) for number in range(len(buffer.starts)))
    ends, joined = _join(_inflate_all(encoding, parts))
    first = ChunkBuffers(joined, ends[:-1], np.diff(ends))
    return replace(chunks, buffers=(first, *chunks.buffers[1:]))


def _sizes_in_front(buffer: ChunkBuffers) -> Int64Array | None:
    """Return what each chunk says that it grows to, None if a frame begins without a size."""
    if (buffer.sizes < _PREFIX_BYTES + len(ZSTD_MAGIC)).any():
        return None
    prefixes = buffer.data[
        buffer.starts[:, np.newaxis] + np.arange(_PREFIX_BYTES + len(ZSTD_MAGIC))
    ]
    if (prefixes[:, _PREFIX_BYTES:] != np.frombuffer(ZSTD_MAGIC, np.uint8)).any():
        return None
    sizes = np.ascontiguousarray(prefixes[:, :_PREFIX_BYTES]).view("<u8").reshape(-1)
    if sizes.max(initial=0) > MAX_INFLATED or int(sizes.sum()) > MOST_BYTES:
        message = f"the compressed chunks of a page grow to {sizes.sum()} bytes"
        raise TooLargeError(message)
    return sizes.astype(np.int64)


def _lz4_sizes(buffer: ChunkBuffers) -> Int64Array:
    """Return what each chunk says that it grows to.  Raises FormatError if it cannot."""
    if (buffer.sizes < _LZ4_PREFIX_BYTES).any():
        message = f"lz4 chunk of {buffer.sizes.min()} bytes has no size in front"
        raise FormatError(message)
    prefixes = buffer.data[buffer.starts[:, np.newaxis] + np.arange(_LZ4_PREFIX_BYTES)]
    sizes = np.ascontiguousarray(prefixes).view("<u4").reshape(-1).astype(np.int64)
    if (sizes > buffer.sizes * MAX_LZ4_RATIO).any() or int(sizes.sum()) > MOST_BYTES:
        message = f"lz4 chunks of {buffer.sizes.sum()} bytes claim to grow to {sizes.sum()}"
        raise TooLargeError(message)
    return sizes


def _inflate_lz4(buffer: ChunkBuffers, sizes: Int64Array) -> Bytes:
    target = allocate(int(sizes.sum()), np.uint8)
    starts, ends = buffer.starts + _LZ4_PREFIX_BYTES, buffer.starts + buffer.sizes
    inflate_blocks(buffer.data, starts, ends, sizes, target)
    return target


def _inflate_stream(buffer: ChunkBuffers, size: int) -> Bytes:
    """Return the content of the frames of all chunks, which are one stream of frames.

    Setting up the decompressor is most of the work for a chunk; here it is done once.
    """
    ends = buffer.starts + buffer.sizes
    frames = pick_bytes(buffer.data, buffer.starts + _PREFIX_BYTES, ends)
    target, done = allocate(size, np.uint8), 0
    try:
        with pa.CompressedInputStream(pa.BufferReader(frames), "zstd") as stream:
            while done < size and (got := stream.readinto(target[done : done + MIB])):
                done += got
            is_whole = done == size and not stream.read(1)
    except OSError as error:
        message = f"damaged zstd frames: {error}"
        raise FormatError(message) from error
    if not is_whole:
        message = f"zstd frames that do not hold the {size} bytes they say"
        raise FormatError(message)
    return target


def _inflate_all(encoding: General, parts: Iterator[Bytes]) -> Iterator[pa.Buffer]:
    for part in parts:
        yield inflate(pa.py_buffer(part), encoding.compression.scheme) if len(part) else part


def _join(parts: Iterator[pa.Buffer]) -> tuple[Int64Array, Bytes]:
    """Return where each part ends, from 0 on, and all parts together."""
    found: list[Bytes] = []
    ends = [0]
    for part in parts:
        found.append(np.frombuffer(part, np.uint8))
        ends.append(ends[-1] + len(found[-1]))
        _check_total(ends[-1])
    joined = np.concatenate(found) if found else np.empty(0, np.uint8)
    return np.array(ends, np.int64), joined


_ZSTD_LEVEL: Final = 3
"""What 0, or nothing, means as a level."""


_CODECS: Final = {"zstd": ("zstd", 8), "lz4": ("lz4_raw", 4)}


def _compress_pieces(
    data: Bytes, offsets: Int64Array, compression: BufferCompression
) -> tuple[Bytes, Int64Array]:
    """Return each piece of ``data`` compressed, and where each ends (from 0 on)."""
    name, head = _CODECS[compression.scheme]
    codec = _codec(name, compression.level)
    parts: list[bytes] = []
    ends = np.zeros(len(offsets), np.int64)
    whole = pa.py_buffer(data)
    for number, (start, end) in enumerate(pairwise(offsets.tolist())):
        size = end - start
        body = codec.compress(whole.slice(start, size), asbytes=True)
        parts.append(size.to_bytes(head, "little") + body)
        ends[number + 1] = ends[number] + head + len(body)
    return np.frombuffer(b"".join(parts), np.uint8), ends


def _codec(name: str, level: int | None) -> pa.Codec:
    """Raises ArgumentError if the level is none of the scheme's."""
    try:
        return pa.Codec(name, None if name == "lz4_raw" else level or _ZSTD_LEVEL)
    except (ValueError, pa.ArrowInvalid) as error:
        message = f"no compression level {level} for {name}: {error}"
        raise ArgumentError(message) from error


def compress_whole(data: Bytes, compression: BufferCompression) -> Bytes:
    """Return one buffer compressed."""
    return _compress_pieces(data, np.array([0, len(data)]), compression)[0]


def encode_general(inner: Chunked, compression: BufferCompression) -> Chunked:
    """Return the chunks with their first buffers compressed; the same if that saves nothing."""
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(inner.sizes[0])])
    data, ends = _compress_pieces(inner.buffers[0], offsets, compression)
    outer = Chunked(
        General(compression, inner.encoding),
        inner.counts,
        (data, *inner.buffers[1:]),
        (np.diff(ends), *inner.sizes[1:]),
    )
    return outer if outer.size_bytes < inner.size_bytes else inner


def encode_general_values(inner: Single, compression: BufferCompression) -> Single:
    """Return byte strings with each one compressed."""
    assert inner.offsets is not None  # values of one width are not compressed one by one
    data, ends = _compress_pieces(inner.data, inner.offsets, compression)
    encoding = General(compression, inner.encoding)
    return Single(encoding, data, None, ends, inner.offset_width)
