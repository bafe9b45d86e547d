"""Fixed-size list: ``dimension`` items a row, so row r is items [r * dimension, (r + 1) * dimension).

The items have an encoding of their own (with NULLs of their own, or lists again); the list's NULLs
are around it, as with any other value.

Source: seed 004 (message FixedSizeList).  ``has_validity`` came with 2.1, where the item validity is
a buffer in front of the items; no 2.0 page can hold that.
"""

from __future__ import annotations

import pyarrow as pa

from pennon.encoding.arrow_buffers import items_of
from pennon.encoding.block import Block, FixedSizeListBlock
from pennon.encoding.page import PageBuffers
from pennon.encoding.read_protocol import Steps
from pennon.encoding.rows import Rows
from pennon.encoding.v2_0.dispatch import Codecs
from pennon.encoding.v2_0.encodings import Encoded, FixedSizeList
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
