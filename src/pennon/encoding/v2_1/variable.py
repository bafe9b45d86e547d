"""Variable: byte strings, as offsets and bytes.

In a chunk of a mini-block the offsets count from the begin of the chunk::

    offset * (n + 1) | bytes

In one buffer (a dictionary) two numbers of the offsets' width stand in front, and offsets count from
the begin of the bytes::

    width of offsets in bits (32 or 64) | position of the bytes | offset * (n + 1) | bytes

Writers before 2.1 was finished had ``u8 width | number of strings | position of the bytes`` there.

Source: ledger F-87, F-88 (the older header is in pylance's physical/binary.rs only).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.memory import allocate
from pennon.encoding.arrow_buffers import Bytes, as_bytes
from pennon.encoding.block import Block, VariableBlock
from pennon.encoding.kernels.chunks import cut_strings, write_strings
from pennon.encoding.kernels.strings import pick_strings
from pennon.encoding.rows import Rows
from pennon.encoding.v2_1.chunks import ChunkBuffers, Chunks
from pennon.encoding.v2_1.dispatch import Codecs, refuse_compression
from pennon.encoding.v2_1.encodings import Flat, Variable
from pennon.encoding.v2_1.pick import pick, pick_bytes
from pennon.encoding.v2_1.values import MOST_VALUES, Chunked, Single, StringValues
from pennon.errors import FormatError, UnsupportedError

AIM_BYTES: Final = 4096
"""Bytes that the strings of a chunk take together; a point read fetches a whole chunk."""
_WIDTHS: Final = (32, 64)


def decode_variable(encoding: Variable, chunks: Chunks, items: Rows, _codecs: Codecs) -> Block:
    """Return the byte strings ``items`` of mini-block chunks."""
    bits = offset_bits(encoding)
    buffer = chunks.only()
    offsets, data = pick_strings(
        buffer.data,
        buffer.starts,
        buffer.sizes,
        chunks.counts,
        bits // 8,
        items.starts,
        items.ends,
    )
    return string_block(offsets, data)


def string_block(offsets: np.ndarray, data: Bytes) -> VariableBlock:
    """Return a block of byte strings; offsets of 64 bits are narrowed if they are few bytes."""
    rows = len(offsets) - 1
    if offsets.itemsize == 4:
        return VariableBlock(rows, 32, pa.py_buffer(offsets), pa.py_buffer(data))
    if offsets[-1] < 1 << 31:
        narrow = allocate(rows + 1, np.int32)
        narrow[:] = offsets
        return VariableBlock(rows, 32, pa.py_buffer(narrow), pa.py_buffer(data))
    return VariableBlock(rows, 64, pa.py_buffer(offsets), pa.py_buffer(data))


def join_places(data: Bytes, starts: Int64Array, ends: Int64Array) -> VariableBlock:
    """Return a block of byte strings; string i is ``data[starts[i]:ends[i]]``."""
    borders = np.concatenate([np.zeros(1, np.int64), np.cumsum(ends - starts)])
    return string_block(borders, as_bytes(pick_bytes(data, starts, ends)))


def offset_bits(encoding: Variable) -> int:
    """Return the width of offsets.  Raises UnsupportedError if they are encoded in any other way."""
    refuse_compression(encoding.compression)
    offsets = encoding.offsets
    if not isinstance(offsets, Flat) or offsets.bits_per_value not in _WIDTHS:
        message = f"the offsets of byte strings cannot be encoded as {offsets}"
        raise UnsupportedError(message)
    refuse_compression(offsets.compression)
    return offsets.bits_per_value


def decode_variable_blocks(
    encoding: Variable, chunks: Chunks, items: Rows, _codecs: Codecs
) -> Block:
    """Return the byte strings of one buffer; there is one of them in a page."""
    refuse_compression(encoding.compression)
    buffer = chunks.only()
    if len(buffer.starts) != 1:
        message = "byte strings as levels"
        raise FormatError(message)
    start = int(buffer.starts[0])
    return _decode_buffer(buffer.data[start : start + int(buffer.sizes[0])], chunks, items)


def _decode_buffer(data: Bytes, chunks: Chunks, items: Rows) -> Block:
    """Return byte strings over the memory of ``data``."""
    bits, table, values = _header(data)
    width, count = bits // 8, chunks.values
    if not table + (count + 1) * width <= values <= len(data):
        message = f"{len(data)} bytes cannot hold {count} byte strings from byte {values} on"
        raise FormatError(message)
    offsets = np.frombuffer(data, f"<u{width}", count + 1, table)
    first, last = int(offsets[0]), int(offsets[-1])
    if last > len(data) - values or (offsets[1:] < offsets[:-1]).any():
        message = "the offsets of byte strings fall or leave their bytes"
        raise FormatError(message)
    ends = (offsets - offsets[0]).astype(np.int32 if last < 1 << 31 else np.int64)
    block = VariableBlock(
        count,
        8 * ends.itemsize,
        pa.py_buffer(ends),
        pa.py_buffer(data[values + first : values + last]),
    )
    return pick(block, items)


def _header(data: Bytes) -> tuple[int, int, int]:
    """Return the width of offsets in bits, where they begin, and where the bytes begin."""
    head = data[:17].tobytes()
    bits = head[0] if head else 0
    if bits not in _WIDTHS:
        message = f"byte strings with offsets of {bits} bits"
        raise FormatError(message)
    width = bits // 8
    is_old = any(head[1:4])
    position = 1 + width if is_old else width
    if len(head) < position + width:
        message = f"byte strings in {len(head)} bytes"
        raise FormatError(message)
    start = int.from_bytes(head[position : position + width], "little")
    return bits, position + width, start


def decode_variable_values(encoding: Variable, stored: Block, _codecs: Codecs) -> Block:
    """Return byte strings that are stored as they are."""
    offset_bits(encoding)
    if not isinstance(stored, VariableBlock):
        message = f"byte strings stored as {type(stored).__name__}"
        raise FormatError(message)
    return stored


def buffer_of(buffer: ChunkBuffers, chunk: int) -> Bytes:
    """Return the bytes of one chunk."""
    start = int(buffer.starts[chunk])
    return buffer.data[start : start + int(buffer.sizes[chunk])]


def encode_variable(values: StringValues) -> Chunked:
    """Return chunks of offsets and bytes."""
    counts = cut_strings(values.offsets, values.width, AIM_BYTES, MOST_VALUES)
    data, sizes = write_strings(values.data, values.offsets, counts, values.width)
    return Chunked(Variable(Flat(8 * values.width)), counts, (data,), (sizes,))


def encode_variable_values(values: StringValues) -> Single:
    """Return the strings as they are, each for itself."""
    encoding = Variable(Flat(8 * values.width))
    return Single(encoding, values.data, None, values.offsets, values.width)


def encode_variable_blocks(values: StringValues) -> Bytes:
    """Return all strings in one buffer: width, begin of the bytes, offsets, bytes.

    That is how the strings of a dictionary are stored; its encoding is Variable(Flat).
    """
    dtype = np.dtype(f"<u{values.width}")
    offsets = (values.offsets - values.offsets[0]).astype(dtype)
    begin = 2 * values.width + offsets.nbytes
    head = np.array([8 * values.width, begin], dtype)
    data = values.data[values.offsets[0] : values.offsets[-1]]
    return np.concatenate([head.view(np.uint8), offsets.view(np.uint8), data])
