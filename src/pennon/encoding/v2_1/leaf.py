"""The values of a page become an Arrow array: the innermost layer of a column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pennon.encoding.assemble import assemble_as
from pennon.encoding.block import (
    AllNullBlock,
    Block,
    FixedSizeListBlock,
    FixedWidthBlock,
    NullableBlock,
)
from pennon.encoding.v2_1.dictionary import decode_dictionary
from pennon.encoding.v2_1.page import PageValues


def leaf_array(page: PageValues, validity: pa.Buffer | None, data_type: pa.DataType) -> pa.Array:
    """Return the values as an array of ``data_type``, which has no extension types in it.

    Raises FormatError if values and type do not fit together.
    """
    if pa.types.is_null(data_type):
        return pa.nulls(page.values.rows)
    if pa.types.is_struct(data_type) and data_type.num_fields == 0:
        # A struct without fields is stored as NULLs, though it is none; writers refuse real ones.
        return pa.Array.from_buffers(data_type, page.values.rows, [validity])
    if page.dictionary is not None:
        is_dictionary = pa.types.is_dictionary(data_type)
        item_type = data_type.value_type if is_dictionary else data_type
        items = _plain(page.dictionary, None, item_type)
        return decode_dictionary(page.values, items, validity, data_type)
    if pa.types.is_dictionary(data_type):
        if isinstance(page.values, AllNullBlock):
            return pa.nulls(page.values.rows, data_type)
        plain = _plain(page.values, validity, data_type.value_type)
        return plain.dictionary_encode().cast(data_type)
    return _plain(page.values, validity, data_type)


def _plain(values: Block, validity: pa.Buffer | None, data_type: pa.DataType) -> pa.Array:
    fitted = _fit_booleans(values, data_type)
    if validity is not None:
        fitted = NullableBlock(values.rows, validity, fitted)
    return assemble_as(fitted, data_type)


def _fit_booleans(block: Block, data_type: pa.DataType) -> Block:
    """Return a block whose booleans are bits: full-zip pages have bytes for them."""
    if isinstance(block, FixedSizeListBlock) and pa.types.is_fixed_size_list(data_type):
        items = _fit_booleans(block.items, data_type.value_type)
        return FixedSizeListBlock(block.rows, block.dimension, items)
    if isinstance(block, NullableBlock):
        return NullableBlock(block.rows, block.validity, _fit_booleans(block.values, data_type))
    if not isinstance(block, FixedWidthBlock) or not pa.types.is_boolean(data_type):
        return block
    if block.bits_per_value != 8:
        return block
    bits = np.packbits(np.frombuffer(block.data, np.uint8, block.rows) != 0, bitorder="little")
    return FixedWidthBlock(block.rows, 1, pa.py_buffer(bits))
