"""Integers of fewer bits than their type: two layouts, both from early writers only.

Bitpacked: value after value, each of ``compressed_bits_per_value`` bits, least significant first,
without gaps; value i begins at bit i * compressed_bits_per_value.  If signed, the highest bit of a
value is its sign.

Bitpacked for non-negative: chunks of 1024 values in FastLanes order (`kernels/fastlanes.pyi` draws
it), each of 128 * compressed_bits_per_value bytes; the last chunk is filled up with zeros.

Source: `protos/pennon/proto/encodings_v2_0.proto`; for the order, format-facts 1.19.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import ByteRange, ByteRequest, Gather, Int64Array
from pennon.encoding.arrow_buffers import EMPTY
from pennon.encoding.block import Block, FixedWidthBlock
from pennon.encoding.kernels import fastlanes
from pennon.encoding.kernels.bits import unpack_bits
from pennon.encoding.page import PageBuffers
from pennon.encoding.read_protocol import Steps
from pennon.encoding.rows import Rows
from pennon.encoding.v2_0.dispatch import Codecs
from pennon.encoding.v2_0.encodings import Bitpacked, BitpackedForNonNeg
from pennon.errors import FormatError

CHUNK: Final = 1024
_WORDS: Final[dict[int, Any]] = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def decode_bitpacked(
    encoding: Bitpacked, page: PageBuffers, rows: Rows, _codecs: Codecs
) -> Steps[Block]:
    """Return the steps that read and unpack ``rows``."""
    width, bits = encoding.compressed_bits_per_value, encoding.uncompressed_bits_per_value
    _check_widths(width, bits)
    extent = page.find(encoding.buffer.place, encoding.buffer.index)
    if rows.end * width > extent.size_bytes * 8:
        message = f"{rows.end} values of {width} bits leave a buffer of {extent.size_bytes} bytes"
        raise FormatError(message)
    if rows.count == 0:
        return FixedWidthBlock(0, bits, EMPTY)
    first_bytes = rows.starts * width >> 3
    sizes = (rows.ends * width + 7 >> 3) - first_bytes
    (data,) = yield [_plan_ranges(extent.position, first_bytes, sizes)]
    starts = rows.starts * width + (np.cumsum(sizes) - sizes - first_bytes) * 8
    values = np.empty(rows.count, np.uint64)
    source = np.frombuffer(data, np.uint8)
    unpack_bits(source, starts, rows.ends - rows.starts, width, encoding.signed, values)
    return FixedWidthBlock(rows.count, bits, pa.py_buffer(values.astype(_WORDS[bits], copy=False)))


def decode_bitpacked_for_non_neg(
    encoding: BitpackedForNonNeg, page: PageBuffers, rows: Rows, _codecs: Codecs
) -> Steps[Block]:
    """Return the steps that read and unpack the chunks that hold ``rows``."""
    width, bits = encoding.compressed_bits_per_value, encoding.uncompressed_bits_per_value
    _check_widths(width, bits)
    extent = page.find(encoding.buffer.place, encoding.buffer.index)
    chunk_bytes = CHUNK // 8 * width
    if rows.end > extent.size_bytes // chunk_bytes * CHUNK:
        message = f"{rows.end} packed values leave a buffer of {extent.size_bytes} bytes"
        raise FormatError(message)
    if rows.count == 0:
        return FixedWidthBlock(0, bits, EMPTY)
    chunks = _chunks_of(rows)
    sizes = np.full(len(chunks), chunk_bytes)
    (data,) = yield [_plan_ranges(extent.position, chunks * chunk_bytes, sizes)]
    values = _unpack_chunks(data, width, bits, len(chunks))
    wanted = _places(rows, chunks)
    return FixedWidthBlock(rows.count, bits, pa.py_buffer(values[wanted]))


def _check_widths(width: int, bits: int) -> None:
    if bits not in _WORDS or not 1 <= width <= bits:
        message = f"integers of {bits} bits packed to {width}"
        raise FormatError(message)


def _plan_ranges(position: int, offsets: Int64Array, sizes: Int64Array) -> ByteRequest:
    if len(offsets) == 1:
        return ByteRange(position + int(offsets[0]), int(sizes[0]))
    return Gather(offsets + position, offsets + sizes + position)


def _chunks_of(rows: Rows) -> Int64Array:
    """Return the numbers of the chunks that hold rows, each once, in order."""
    filled = rows.ends > rows.starts
    first = rows.starts[filled] // CHUNK
    after = (rows.ends[filled] - 1) // CHUNK + 1
    return np.unique(Rows.ranges(first, after).indices())


def _unpack_chunks(data: pa.Buffer, width: int, bits: int, chunks: int) -> npt.NDArray[Any]:
    """Return the values of whole chunks."""
    word = _WORDS[bits]
    packed: npt.NDArray[Any] = np.frombuffer(data, word)
    values: npt.NDArray[Any] = np.empty(chunks * CHUNK, word)
    fastlanes.unpack(packed if packed.flags.aligned else packed.copy(), width, values)
    return values


def _places(rows: Rows, chunks: Int64Array) -> slice | Int64Array:
    """Return where ``rows`` lie among the values of ``chunks``."""
    if rows.is_contiguous:
        start = int(rows.starts[0]) % CHUNK
        return slice(start, start + rows.count)
    wanted = rows.indices()
    return np.searchsorted(chunks, wanted // CHUNK) * CHUNK + wanted % CHUNK
