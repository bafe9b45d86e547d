"""Packed structs: whole rows, one after the other.

Rows of fields of fixed width are values of the sum of the widths.  Rows with byte strings in them
(from 2.2 on) have the size in front of every such field, and are stored one by one; each field was
encoded before it went into the row::

    i32 | u32 size | codes of a string | f64

Source: ledger F-97, F-98 (pylance's physical/packed.rs).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.kernels.gather import gather
from pennon.core.memory import allocate
from pennon.encoding.arrow_buffers import Bytes, as_bytes
from pennon.encoding.block import Block, FixedWidthBlock, StructBlock, VariableBlock
from pennon.encoding.kernels.packed_rows import split_rows
from pennon.encoding.rows import Rows
from pennon.encoding.v2_1.chunks import Chunks
from pennon.encoding.v2_1.dispatch import Codecs
from pennon.encoding.v2_1.encodings import PackedField, PackedStruct, VariablePackedStruct
from pennon.encoding.v2_1.flat import encode_flat
from pennon.encoding.v2_1.values import Chunked, RowValues, Single, values_per_chunk
from pennon.encoding.v2_1.variable import string_block
from pennon.errors import FormatError, UnsupportedError


def decode_packed_struct(
    encoding: PackedStruct, chunks: Chunks, items: Rows, codecs: Codecs
) -> Block:
    """Return the rows ``items`` of mini-block chunks."""
    return _split_fixed(encoding, codecs.decode_chunks(encoding.values, chunks, items))


def decode_packed_struct_values(encoding: PackedStruct, stored: Block, codecs: Codecs) -> Block:
    """Return rows of fields of fixed width that are stored one by one."""
    return _split_fixed(encoding, codecs.decode_values(encoding.values, stored))


def _split_fixed(encoding: PackedStruct, rows: Block) -> Block:
    bits = encoding.bits_per_field
    if any(width % 8 for width in bits):
        message = f"packed structs with fields of {bits} bits cannot be read: every field must have whole bytes"
        raise UnsupportedError(message)
    if not isinstance(rows, FixedWidthBlock) or sum(bits) != rows.bits_per_value:
        message = f"packed structs of {bits} bits stored as {rows}"
        raise FormatError(message)
    width = rows.bits_per_value // 8
    children, offset = [], 0
    for each in bits:
        column = _column(rows, width, offset, each // 8)
        children.append(FixedWidthBlock(rows.rows, each, pa.py_buffer(column)))
        offset += each // 8
    return StructBlock(rows.rows, tuple(children))


def _column(rows: FixedWidthBlock, row_bytes: int, offset: int, width: int) -> Bytes:
    """Return the bytes ``[offset, offset + width)`` of each row."""
    if rows.data.size < rows.rows * row_bytes:
        message = f"{rows.rows} packed rows of {row_bytes} bytes in {rows.data.size} bytes"
        raise FormatError(message)
    column = allocate(rows.rows * width, np.uint8)
    if rows.rows and width:
        # Numbers are moved as such, which is far faster than byte by byte.
        kind = f"u{width}" if width in (1, 2, 4, 8) else f"V{width}"
        source = np.ndarray((rows.rows,), kind, rows.data, offset, (row_bytes,))
        column.view(kind)[:] = source
    return column


def decode_variable_packed_struct(
    encoding: VariablePackedStruct, stored: Block, codecs: Codecs
) -> Block:
    """Return rows of fields of any width.  Raises FormatError if a row is not just its fields."""
    if not isinstance(stored, VariableBlock):
        message = f"packed rows stored as {type(stored).__name__}"
        raise FormatError(message)
    widths = np.array([_stored_width(field) for field in encoding.fields], np.int64)
    dtype = f"i{stored.offset_bits // 8}"
    offsets = np.frombuffer(stored.offsets, dtype, stored.rows + 1).astype(np.int64)
    columns = split_rows(as_bytes(stored.data), offsets, widths)
    children = []
    for field, (ends, data) in zip(encoding.fields, columns, strict=True):
        block: Block = string_block(ends, data)
        if field.bits_per_value is not None:
            block = FixedWidthBlock(stored.rows, field.bits_per_value, pa.py_buffer(data))
        children.append(codecs.decode_values(field.value, block))
    return StructBlock(stored.rows, tuple(children))


def _stored_width(field: PackedField) -> int:
    """Return the bytes of a field's value; for byte strings minus the bytes of their size."""
    bits = field.bits_per_value
    if bits is not None:
        if bits % 8 or not 0 < bits < 1 << 32:
            message = f"packed rows with a field of {bits} bits"
            raise FormatError(message)
        return bits // 8
    if field.bits_per_length not in (8, 16, 32, 64):
        message = f"packed rows with sizes of {field.bits_per_length} bits"
        raise FormatError(message)
    return -(field.bits_per_length // 8)


def encode_packed_struct(values: RowValues) -> Chunked | None:
    """Return chunks of rows; None if a row is too wide for chunks."""
    if values_per_chunk(values.rows.bits) == 0:
        return None
    flat = encode_flat(values.rows)
    encoding = PackedStruct(values.bits_per_field, flat.encoding)
    return Chunked(encoding, flat.counts, flat.buffers, flat.sizes)


_MOST_SHORT_SIZES: Final = (1 << 31) - 1


def encode_variable_packed_struct(fields: Sequence[Single], rows: int) -> Single:
    """Return rows of fields that were encoded before, each row in one piece."""
    pieces = [piece for field in fields for piece in _pieces_of(field, rows)]
    bases = np.cumsum([0, *(len(data) for data, _, _ in pieces[:-1])])
    starts = np.stack(
        [start + base for (_, start, _), base in zip(pieces, bases, strict=True)], axis=1
    )
    sizes = np.stack([size for _, _, size in pieces], axis=1)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes.sum(axis=1))])
    out = allocate(int(offsets[-1]), np.uint8)
    source = np.concatenate([data for data, _, _ in pieces])
    gather(source, starts.reshape(-1), (starts + sizes).reshape(-1), out)
    encoding = VariablePackedStruct(tuple(map(_field_of, fields)))
    width = 4 if len(out) <= _MOST_SHORT_SIZES else 8
    return Single(encoding, out, None, offsets, width)


def _pieces_of(field: Single, rows: int) -> list[tuple[Bytes, Int64Array, Int64Array]]:
    """Return what a field puts into each row: some bytes, where those of a row begin, and how many."""
    numbers = np.arange(rows, dtype=np.int64)
    if field.offsets is None:
        width = (field.bits_per_value or 0) // 8
        return [(field.data, numbers * width, np.full(rows, width))]
    width, sizes = field.offset_width, np.diff(field.offsets)
    heads = sizes.astype(f"<u{width}").view(np.uint8)
    return [(heads, numbers * width, np.full(rows, width)), (field.data, field.offsets[:-1], sizes)]


def _field_of(field: Single) -> PackedField:
    size_bits = None if field.offsets is None else 8 * field.offset_width
    return PackedField(field.encoding, field.bits_per_value, size_bits)
