"""Flat: fixed-width values, one after the other in one buffer.

::

    bits_per_value = 32, rows 2..4          bits_per_value = 1, rows 10..13
    | v0 | v1 | v2 | v3 | ...               byte 0    byte 1
              ^^^^^^^^^ bytes 8..16         76543210  ..DCBA98      bits 2, 3, 4 of byte 1

Whole bytes: a range of rows is a range of bytes, which over a memory map costs no copy; many ranges
are one `Gather`.  Bits: the bytes that hold them are read, and a kernel picks the bits.

A Flat may be compressed as a whole buffer; then all of it is read (`pennon.encoding.decompress`).

Source: seed 004 (message Flat).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import ByteRange, ByteRequest, Gather
from pennon.core.kernels.gather import gather
from pennon.core.memory import allocate_buffer
from pennon.core.units import KIB, bytes_for_bits
from pennon.encoding.arrow_buffers import EMPTY, values_of
from pennon.encoding.block import Block, FixedWidthBlock
from pennon.encoding.decompress import deflate, inflate
from pennon.encoding.kernels.bits import pick_bits
from pennon.encoding.page import PageBuffers
from pennon.encoding.read_protocol import Steps
from pennon.encoding.rows import Rows
from pennon.encoding.v2_0.dispatch import Codecs
from pennon.encoding.v2_0.encodings import BufferRef, Compression, Encoded, Flat
from pennon.errors import FormatError, UnsupportedError

SPARSE_BITS_BYTES: Final = 64 * KIB
"""Scattered bits are read with all bytes between them, if that is no more than this or..."""

SPARSE_BITS_BYTES_EACH: Final = 256
"""...no more than this for each range: then one longer read is cheaper than many short ones."""


def decode_flat(flat: Flat, page: PageBuffers, rows: Rows, _codecs: Codecs) -> Steps[Block]:
    """Return the steps that read ``rows`` of a Flat; one round, one request, of its exact bytes.

    Raises FormatError if the rows leave the buffer.
    """
    bits = flat.bits_per_value
    _check_width(bits)
    extent = page.find(flat.buffer.place, flat.buffer.index)
    if rows.count == 0:
        return FixedWidthBlock(0, bits, EMPTY)
    if flat.compression is not None and flat.compression.scheme != "none":
        (data,) = yield [extent]
        extent = ByteRange(0, data.size)
        data = _pick_inflated(data, flat.compression, bits, rows)
        return FixedWidthBlock(rows.count, bits, data)
    _check_room(rows, bits, extent.size_bytes)
    if bits == 1:
        request, starts, ends = _plan_bits(extent.position, rows)
        (data,) = yield [request]
        return FixedWidthBlock(rows.count, 1, _pick(data, starts, ends, rows.count))
    (data,) = yield [plan_bytes(extent.position, bits // 8, rows)]
    return FixedWidthBlock(rows.count, bits, data)


def plan_bytes(position: int, width: int, rows: Rows) -> ByteRequest:
    """Return the request for ``rows`` of ``width`` bytes each, the first row at ``position``."""
    if rows.is_contiguous:
        return ByteRange(position + int(rows.starts[0]) * width, rows.count * width)
    return Gather(rows.starts * width + position, rows.ends * width + position)


def pick_rows(data: pa.Buffer, width: int, rows: Rows) -> pa.Buffer:
    """Return ``rows`` of ``width`` bytes each out of a buffer that is in memory whole."""
    if rows.is_contiguous:
        return data.slice(int(rows.starts[0]) * width, rows.count * width)
    target = allocate_buffer(rows.count * width)
    source = np.frombuffer(data, np.uint8)
    gather(source, rows.starts * width, rows.ends * width, np.frombuffer(target, np.uint8))
    return target


def _check_width(bits: int) -> None:
    if bits == 0:
        message = "flat encoding with values of 0 bits"
        raise FormatError(message)
    if bits != 1 and bits % 8:
        message = f"flat encoding with values of {bits} bits; Pennon reads 1 and multiples of 8"
        raise UnsupportedError(message)


def _check_room(rows: Rows, bits: int, size_bytes: int) -> None:
    """Raise FormatError if the last row lies beyond the buffer."""
    if rows.end * bits > size_bytes * 8:
        message = f"{rows.end} values of {bits} bits do not fit in a buffer of {size_bytes} bytes"
        raise FormatError(message)


def _pick_inflated(data: pa.Buffer, compression: Compression, bits: int, rows: Rows) -> pa.Buffer:
    """Return the rows of a compressed buffer."""
    data = inflate(data, compression.scheme)
    _check_room(rows, bits, data.size)
    if bits == 1:
        return _pick(data, rows.starts, rows.ends, rows.count)
    return pick_rows(data, bits // 8, rows)


def _plan_bits(position: int, rows: Rows) -> tuple[ByteRequest, np.ndarray, np.ndarray]:
    """Return the request for the bytes of bits, and the bit ranges within its answer."""
    first = int(rows.starts[0]) // 8
    span = bytes_for_bits(rows.end) - first
    if span <= max(SPARSE_BITS_BYTES, SPARSE_BITS_BYTES_EACH * len(rows.starts)):
        return ByteRange(position + first, span), rows.starts - 8 * first, rows.ends - 8 * first
    first_bytes = rows.starts >> 3
    sizes = ((rows.ends + 7) >> 3) - first_bytes
    request = Gather(first_bytes + position, first_bytes + sizes + position)
    shift = (np.cumsum(sizes) - sizes - first_bytes) * 8
    return request, rows.starts + shift, rows.ends + shift


def _pick(data: pa.Buffer, starts: np.ndarray, ends: np.ndarray, count: int) -> pa.Buffer:
    """Return the bits of the given ranges, packed; no copy if they already are."""
    if len(starts) == 1 and starts[0] % 8 == 0:
        return data.slice(int(starts[0]) // 8, bytes_for_bits(count))
    target = allocate_buffer(bytes_for_bits(count))
    pick_bits(np.frombuffer(data, np.uint8), starts, ends, np.frombuffer(target, np.uint8))
    return target


def encode_flat(
    values: pa.Buffer, bits: int, first: int = 0, compression: Compression | None = None
) -> Encoded:
    """Encode a buffer of values that are packed already."""
    if compression is not None:
        values = deflate(values, compression.scheme, compression.level)
    return Encoded(Flat(bits, BufferRef(first), compression), (values,))


def encode_fixed_width(array: pa.Array, first: int = 0) -> Encoded:
    """Encode the values of numbers, booleans, times, decimals or fixed-size binaries.

    NULL rows have the value zero, whatever lies under them in the array; their NULLs are the
    business of `encode_nullable`.
    """
    return encode_flat(values_of(array), array.type.bit_width, first)
