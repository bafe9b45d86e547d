"""General compression around an encoding: the first buffer of each chunk, or each value.

LZ4 blocks begin with 4 bytes of size, Zstandard frames with 8.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.encoding.v2_1.encodings import BufferCompression, General
from pennon.encoding.v2_1.values import Bytes, Chunked, Single
from pennon.errors import ArgumentError

_ZSTD_LEVEL: Final = 3
"""What 0, or nothing, means as a level."""

_CODECS: Final = {"zstd": ("zstd", 8), "lz4": ("lz4_raw", 4)}


def compress_pieces(
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


def compress_chunks(inner: Chunked, compression: BufferCompression) -> Chunked:
    """Return the chunks with their first buffers compressed; the same if that saves nothing."""
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(inner.sizes[0])])
    data, ends = compress_pieces(inner.buffers[0], offsets, compression)
    outer = Chunked(
        General(compression, inner.encoding),
        inner.counts,
        (data, *inner.buffers[1:]),
        (np.diff(ends), *inner.sizes[1:]),
    )
    return outer if outer.size_bytes < inner.size_bytes else inner


def compress_single(inner: Single, compression: BufferCompression) -> Single:
    """Return byte strings with each one compressed."""
    assert inner.offsets is not None  # values of one width are not compressed one by one
    data, ends = compress_pieces(inner.data, inner.offsets, compression)
    encoding = General(compression, inner.encoding)
    return Single(encoding, data, None, ends, inner.offset_width)
