"""Packed struct: the fields of a row side by side, row after row, in one buffer.

::

    struct<x: int8, y: int32>     | x0 y0 y0 y0 y0 | x1 y1 y1 y1 y1 | ...     5 bytes a row

Nothing is aligned and nothing can be NULL.  The widths come from the encodings of the fields (a Flat,
or a fixed-size list of Flat); their own buffer numbers mean nothing.

Source: `protos/pennon/proto/encodings_v2_0.proto` (message PackedStruct).
"""

from __future__ import annotations

from typing import cast

import numpy as np
import pyarrow as pa

from pennon.encoding.block import Block, FixedSizeListBlock, FixedWidthBlock, StructBlock
from pennon.encoding.page import PageBuffers
from pennon.encoding.rows import Rows
from pennon.encoding.steps import Steps
from pennon.encoding.v2_0.dispatch import Codecs
from pennon.encoding.v2_0.encodings import (
    ArrayEncoding,
    Flat,
    FixedSizeList,
    NoNulls,
    PackedStruct,
)
from pennon.encoding.v2_0.flat import EMPTY, plan_bytes
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
    return [pa.py_buffer(np.ascontiguousarray(table[name])) for name in cast("tuple[str]", layout.names)]


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
