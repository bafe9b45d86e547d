"""Buffers that are compressed as a whole.

::

    zstd    u64 size | frame            size: bytes after decompression, little-endian
            frame                       oldest writers; begins with the magic number of zstd
    lz4     u32 size | block            a block without frame

Which of the two a zstd buffer is shows in its first bytes: a frame has the magic number and a
reserved bit that is 0.

The sizes come from the file, so none of them is believed: a buffer may grow to `MAX_INFLATED` or to
255 times its size, whichever is more (255 is the most that LZ4 can do), and memory is not touched
before there are bytes to put in it.

Source: pylance's bytes and its source (physical/block.rs); the seeds name the scheme only.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.units import MIB
from pennon.encoding.kernels.lz4 import decoded_size
from pennon.errors import FormatError, TooLargeError, UnsupportedError

MAX_INFLATED: Final = 128 * MIB
_MAX_RATIO: Final = 255
_ZSTD_LEVEL: Final = 3
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_RESERVED_BIT: Final = 0x10


def inflate(data: pa.Buffer, scheme: str) -> pa.Buffer:
    """Return the decompressed bytes of a buffer; ``scheme`` is ``zstd``, ``lz4`` or ``none``.

    Raises FormatError if the bytes are damaged, TooLargeError if they grow beyond reason,
    UnsupportedError for other schemes.
    """
    if scheme == "none":
        return data
    if scheme == "zstd":
        return _inflate_zstd(data)
    if scheme == "lz4":
        return _inflate_lz4(data)
    message = f"unknown compression scheme {scheme!r}; Pennon reads zstd and lz4"
    raise UnsupportedError(message)


def _inflate_zstd(data: pa.Buffer) -> pa.Buffer:
    if data.size == 0:
        return data
    if _is_bare_frame(data):
        return _inflate_frame(data)
    size = int.from_bytes(data[:8], "little")
    _check_size(size, data.size)
    return _decompress("zstd", data.slice(8), size)


def _is_bare_frame(data: pa.Buffer) -> bool:
    head = bytes(data[:5])
    if data.size < 8:  # no room for a size
        return True
    return head[:4] == _ZSTD_MAGIC and not head[4] & _ZSTD_RESERVED_BIT


def _inflate_frame(data: pa.Buffer) -> pa.Buffer:
    """Decompress a frame that may not say how large its content is, never past the limit."""
    limit = _limit(data.size)
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            parts = _read_parts(stream, limit)
    except TooLargeError:
        raise
    except OSError as error:
        message = f"damaged zstd buffer: {error}"
        raise FormatError(message) from error
    return pa.py_buffer(b"".join(parts))


def _read_parts(stream: pa.NativeFile, limit: int) -> list[bytes]:
    parts: list[bytes] = []
    size = 0
    while part := stream.read(MIB):
        parts.append(part)
        size += len(part)
        if size > limit:
            message = f"zstd buffer grows beyond {limit} bytes"
            raise TooLargeError(message)
    return parts


def _inflate_lz4(data: pa.Buffer) -> pa.Buffer:
    prefix = 4
    if data.size < prefix:
        message = f"lz4 buffer of {data.size} bytes has no size in front"
        raise FormatError(message)
    size = int.from_bytes(data[:prefix], "little")
    _check_size(size, data.size)
    block = data.slice(prefix)
    try:
        actual = decoded_size(np.frombuffer(block, np.uint8))
    except ValueError as error:
        message = f"damaged lz4 buffer: {error}"
        raise FormatError(message) from error
    if actual != size:
        message = f"lz4 buffer says that it holds {size} bytes, but it holds {actual}"
        raise FormatError(message)
    return _decompress("lz4_raw", block, size)


def _decompress(codec: str, data: pa.Buffer, size: int) -> pa.Buffer:
    try:
        return pa.Codec(codec).decompress(data, size)
    except OSError as error:
        message = f"damaged {codec} buffer: {error}"
        raise FormatError(message) from error


def _limit(compressed: int) -> int:
    return max(MAX_INFLATED, compressed * _MAX_RATIO)


def are_believed(sizes: npt.NDArray[np.int64], compressed: npt.NDArray[np.int64]) -> bool:
    """Return whether `inflate` takes buffers of these sizes, in bytes: a writer compresses none that it would not."""
    return bool((sizes <= np.maximum(MAX_INFLATED, compressed * _MAX_RATIO)).all())


def _check_size(size: int, compressed: int) -> None:
    if size > _limit(compressed):
        message = f"a buffer of {compressed} bytes claims to decompress to {size}"
        raise TooLargeError(message)


def deflate(data: pa.Buffer, scheme: str, level: int | None) -> pa.Buffer:
    """Return the compressed form of a buffer.

    Raises UnsupportedError for schemes that cannot be written, and for lz4 beyond 4 GiB.
    """
    if scheme == "zstd":
        codec = pa.Codec("zstd", compression_level=_ZSTD_LEVEL if level is None else level)
        body = codec.compress(data)
        return pa.py_buffer(data.size.to_bytes(8, "little") + body.to_pybytes())
    if scheme == "lz4" and data.size < 1 << 32:
        body = pa.Codec("lz4_raw").compress(data)
        return pa.py_buffer(data.size.to_bytes(4, "little") + body.to_pybytes())
    message = f"Pennon cannot write {data.size} bytes with compression {scheme!r}"
    raise UnsupportedError(message)
