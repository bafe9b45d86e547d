"""Columns of values: primitive types, strings, packed structs, fixed-size lists, and blobs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import ByteRange, Gather
from pennon.encoding.assemble import assemble_as, retype
from pennon.encoding.blobs import DESCRIPTION_TYPE
from pennon.encoding.block import NullableBlock, VariableBlock
from pennon.encoding.coalesce import FEW_ROWS, coalesce_requests
from pennon.encoding.read_protocol import Steps, together
from pennon.encoding.rows import Rows
from pennon.encoding.v2_0.codecs import CODECS
from pennon.encoding.v2_0.encodings import ArrayEncoding, Dictionary
from pennon.errors import FormatError, LanceError
from pennon.file.container.column_metadata import Column
from pennon.file.container.node import Node, page_buffers, pages_of
from pennon.file.v2_0.page_encoding import page_encoding
from pennon.schema.arrow import field_to_arrow, storage_field
from pennon.schema.blob import NULL_POSITION
from pennon.schema.field import Field

_EMPTY = pa.py_buffer(b"")


def read_values(
    node: Node, column: Column, stored: pa.DataType, rows: Rows
) -> Steps[list[pa.Array]]:
    """Return the steps that read a column of values as arrays of the type ``stored``."""
    node.check_total(column)
    pages = pages_of(node, column, rows)
    return together([_read_page(node, column, number, stored, part) for number, part in pages])


def _read_page(
    node: Node, column: Column, number: int, stored: pa.DataType, rows: Rows
) -> Steps[pa.Array]:
    """Return the steps that read rows of one page."""
    page = column.pages[number]
    try:
        encoding = yield from page_encoding(page)
        buffers = page_buffers(node, column, page)
        reader = CODECS.decode(encoding, buffers, rows)
        if rows.count <= FEW_ROWS:
            reader = coalesce_requests(reader, _budget(node, encoding))
        return assemble_as((yield from reader), stored)
    except LanceError as error:
        raise error.located(node.place(page, number)) from error.__cause__


def _budget(node: Node, encoding: ArrayEncoding) -> int:
    """Return how many requests a round may make, so that two rounds make two, and one makes two."""
    return 1 if node.total is None or isinstance(encoding, Dictionary) else 2


def read_blobs(node: Node, field: Field, column: Column, rows: Rows) -> Steps[list[pa.Array]]:
    """Return the steps that read a blob column.

    A struct field gets the descriptions (position, size), a large binary field the bytes.
    """
    descriptions = yield from read_values(node, column, DESCRIPTION_TYPE, rows)
    if field.logical_type == "struct":
        return descriptions
    stored = storage_field(field).type
    shown = field_to_arrow(field).type
    arrays = yield from together([_read_blob_bytes(node, part, stored) for part in descriptions])
    return [retype(array, shown) for array in arrays]


def _read_blob_bytes(node: Node, descriptions: pa.Array, stored: pa.DataType) -> Steps[pa.Array]:
    """Return the steps that read the bytes that descriptions point at."""
    positions, sizes = (np.asarray(descriptions.field(i)) for i in (0, 1))
    limit = node.file.source.size_bytes
    if len(sizes) and (
        sizes.max() > limit or (positions + sizes)[sizes > 0].max(initial=0) > limit
    ):
        message = "blob outside the file"
        raise FormatError(message, where=node.place())
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    data = _EMPTY
    if offsets[-1]:
        filled = sizes > 0
        starts = positions[filled].astype(np.int64)
        (data,) = yield [_ranges(starts, starts + sizes[filled].astype(np.int64))]
    values = VariableBlock(len(sizes), 64, pa.py_buffer(offsets), data)
    valid = ~((sizes == 0) & (positions == NULL_POSITION))
    if valid.all():
        return assemble_as(values, stored)
    bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return assemble_as(NullableBlock(len(sizes), bitmap, values), stored)


def _ranges(starts: np.ndarray, ends: np.ndarray) -> ByteRange | Gather:
    if len(starts) == 1:
        return ByteRange(int(starts[0]), int(ends[0] - starts[0]))
    return Gather(starts, ends)
