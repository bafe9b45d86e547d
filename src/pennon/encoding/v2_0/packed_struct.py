"""Packed struct: the fields of a row side by side, row after row, in one buffer.

::

    struct<x: int8, y: int32>     | x0 y0 y0 y0 y0 | x1 y1 y1 y1 y1 | ...     5 bytes a row

Nothing is aligned and nothing can be NULL.  The widths come from the encodings of the fields (a Flat,
or a fixed-size list of Flat); their own buffer numbers mean nothing.

Source: `protos/pennon/proto/encodings_v2_0.proto` (message PackedStruct).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
import pyarrow as pa

from pennon.encoding.arrow_buffers import EMPTY, as_bytes, items_of, values_of
from pennon.encoding.block import Block, FixedSizeListBlock, FixedWidthBlock, StructBlock
from pennon.encoding.page import PageBuffers
from pennon.encoding.read_protocol import Steps
from pennon.encoding.rows import Rows
from pennon.encoding.v2_0.dispatch import Codecs
from pennon.encoding.v2_0.encodings import (
    ArrayEncoding,
    BufferRef,
    Encoded,
    FixedSizeList,
    Flat,
    NoNulls,
    PackedStruct,
)
from pennon.encoding.v2_0.flat import plan_bytes
from pennon.errors import FormatError, UnsupportedError


def decode_packed_struct(
    encoding: PackedStruct, page: PageBuffers, rows: Rows, _codecs: Codecs
) -> Steps[Block]:
    """Return the steps that read ``rows`` (one round, one request) and part the fields."""
    widths = [_width(field) for field in encoding.inner]
    row_bytes = sum(widths)
    extent = page.find(encoding.buffer.place, encoding.buffer.index)
    if rows.end * row_bytes > extent.size_bytes:
        message = f"{rows.end} rows of {row_bytes} bytes leave a buffer of {extent.size_bytes}"
        raise FormatError(message)
    data = EMPTY
    if rows.count and row_bytes:
        (data,) = yield [plan_bytes(extent.position, row_bytes, rows)]
    columns = _part(data, rows.count, widths)
    children = [_child(*both, rows.count) for both in zip(encoding.inner, columns, strict=True)]
    return StructBlock(rows.count, tuple(children))


def _width(field: ArrayEncoding) -> int:
    """Return how many bytes of a row a field takes."""
    match field:
        case NoNulls(values):
            return _width(values)
        case FixedSizeList(dimension, items, has_validity=False) if dimension:
            return dimension * _width(items)
        case Flat(bits, _, None) if bits and bits % 8 == 0:
            return bits // 8
    message = f"packed struct with a field encoded as {type(field).__name__}"
    raise UnsupportedError(message)


def _part(data: pa.Buffer, count: int, widths: list[int]) -> list[pa.Buffer]:
    """Copy each field of the rows into a buffer of its own."""
    if count == 0:
        return [EMPTY] * len(widths)
    offsets = np.cumsum(widths) - widths
    layout = np.dtype(
        {
            "names": [str(number) for number in range(len(widths))],
            "formats": [f"V{width}" for width in widths],
            "offsets": [int(offset) for offset in offsets],
            "itemsize": sum(widths),
        }
    )
    table = np.frombuffer(data, layout, count)
    return [
        pa.py_buffer(np.ascontiguousarray(table[name])) for name in cast("tuple[str]", layout.names)
    ]


def _child(field: ArrayEncoding, data: pa.Buffer, count: int) -> Block:
    """Return the block of one field from its bytes."""
    match field:
        case NoNulls(values):
            return _child(values, data, count)
        case FixedSizeList(dimension, items):
            return FixedSizeListBlock(count, dimension, _child(items, data, count * dimension))
        case Flat(bits):
            return FixedWidthBlock(count, bits, data)
    message = f"packed struct with a field encoded as {type(field).__name__}"
    raise UnsupportedError(message)


def encode_packed_struct(array: pa.StructArray, first: int = 0) -> Encoded:
    """Encode structs of fixed-width fields row by row.

    Raises UnsupportedError if a row or a field is NULL: packed rows have no room for that.
    """
    if array.null_count:
        raise _null_error("a row", array.null_count)
    fields = [array.field(number) for number in range(array.type.num_fields)]
    parts = []
    for described, field in zip(array.type, fields, strict=True):
        items, nesting = _flatten(field)
        if items.null_count or field.null_count:
            raise _null_error(f"field {described.name!r}", items.null_count + field.null_count)
        parts.append((values_of(items), nesting(Flat(items.type.bit_width, BufferRef(0)))))
    data = _zip([values for values, _ in parts], len(array))
    encoding = PackedStruct(tuple(inner for _, inner in parts), BufferRef(first))
    return Encoded(encoding, (data,))


def _flatten(field: pa.Array) -> tuple[pa.Array, Callable[[ArrayEncoding], ArrayEncoding]]:
    """Return the innermost items of a field, and what nests their encoding as the field does."""
    if isinstance(field, pa.ExtensionArray):
        return _flatten(field.storage)
    if not pa.types.is_fixed_size_list(field.type):
        return field, NoNulls
    dimension = field.type.list_size
    items, nesting = _flatten(items_of(field))
    return items, lambda flat: NoNulls(FixedSizeList(dimension, nesting(flat)))


def _zip(columns: list[pa.Buffer], rows: int) -> pa.Buffer:
    """Return the columns' values side by side, row after row."""
    widths = [column.size // rows for column in columns]
    table = np.empty((rows, sum(widths)), np.uint8)
    offset = 0
    for column, width in zip(columns, widths, strict=True):
        table[:, offset : offset + width] = as_bytes(column).reshape(rows, width)
        offset += width
    return pa.py_buffer(table)


def _null_error(what: str, count: int) -> UnsupportedError:
    message = f"{what} of a packed struct is NULL ({count} times); an unpacked struct can hold that"
    return UnsupportedError(message)
