"""Fixed-size list: ``dimension`` items a row, so row r is items [r * dimension, (r + 1) * dimension).

The items have an encoding of their own (with NULLs of their own, or lists again); the list's NULLs
are around it, as with any other value.

Source: seed 004 (message FixedSizeList).  ``has_validity`` came with 2.1, where the item validity is
a buffer in front of the items; no 2.0 page can hold that.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pennon.encoding.block import Block, FixedSizeListBlock
from pennon.encoding.kernels.nulls import zero_nulls
from pennon.encoding.page import PageBuffers
from pennon.encoding.read_protocol import Steps
from pennon.encoding.rows import Rows
from pennon.encoding.v2_0.dispatch import Codecs
from pennon.encoding.v2_0.encoded import Bytes, Encoded, as_bytes
from pennon.encoding.v2_0.encodings import FixedSizeList
from pennon.encoding.v2_0.flat import validity_of
from pennon.encoding.v2_0.nullable import EncodeValues
from pennon.errors import FormatError, UnsupportedError

MAX_DIMENSION = (1 << 31) - 1
"""Arrow's limit."""


def decode_fixed_size_list(
    encoding: FixedSizeList, page: PageBuffers, rows: Rows, codecs: Codecs
) -> Steps[Block]:
    """Return the steps that read the items of ``rows``."""
    dimension = encoding.dimension
    if encoding.has_validity:
        message = "fixed-size list with a validity buffer, which belongs to file version 2.1"
        raise UnsupportedError(message)
    if not 0 < dimension <= MAX_DIMENSION:
        message = f"fixed-size list of {dimension} items"
        raise FormatError(message)
    items = yield from codecs.decode(encoding.items, page, rows.scaled(dimension))
    return FixedSizeListBlock(rows.count, dimension, items)


def encode_fixed_size_list(
    array: pa.FixedSizeListArray, first: int, encode_items: EncodeValues
) -> Encoded:
    """Encode the items of fixed-size lists, those of NULL rows too."""
    items = encode_items(items_of(array), first)
    return Encoded(FixedSizeList(array.type.list_size, items.encoding), items.buffers)


def items_of(array: pa.FixedSizeListArray) -> pa.Array:
    """Return the items of all rows; where they are plain numbers, those of NULL rows are zero.

    Arrow may have anything under a NULL, and often has NULL items there: a page of which no other
    item is NULL then needs no item validity.
    """
    dimension = array.type.list_size
    items = array.values.slice(array.offset * dimension, len(array) * dimension)
    if array.null_count == 0 or not is_plain(items.type):
        return items
    rows, width = len(array), items.type.bit_width // 8
    validity = validity_of(array)
    item_validity, any_shown = _item_validity(items, validity, rows)
    if not any_shown:
        return pa.nulls(len(items), items.type)
    data = items.buffers()[1].slice(items.offset * width, len(items) * width)
    data = pa.py_buffer(zero_nulls(as_bytes(data), validity, rows, dimension * width))
    return pa.Array.from_buffers(items.type, len(items), [item_validity, data])


def is_plain(data_type: pa.DataType) -> bool:
    """Tell whether a type's values are whole bytes of one fixed width."""
    fixed = pa.types.is_primitive(data_type) or pa.types.is_fixed_size_binary(data_type)
    return fixed and not pa.types.is_boolean(data_type)


def _item_validity(
    items: pa.Array, row_validity: Bytes, rows: int
) -> tuple[pa.Buffer | None, bool]:
    """Return the validity of items when those of NULL rows count as not NULL.

    Also tell whether any item of another row is not NULL.
    """
    if items.null_count == 0:
        return None, True
    valid = np.unpackbits(validity_of(items), count=len(items), bitorder="little")
    row_valid = np.unpackbits(row_validity, count=rows, bitorder="little")
    shown = np.repeat(row_valid, len(items) // rows)
    either = valid | (1 - shown)
    packed = None if either.all() else pa.py_buffer(np.packbits(either, bitorder="little"))
    return packed, bool((valid & shown).any())
