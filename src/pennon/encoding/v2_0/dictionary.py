"""Dictionary: few distinct values, and for each row the number of its value.

    text, index 0 reserved     ["a", NULL, "b", "a"]     indices 1, 0, 2, 1     items "a", "b"
    dictionary fields          ["a", NULL, "b", "a"]     indices 0, 2, 1, 0     items "a", "b", NULL

Both forms look alike in the file; the field's type tells them apart (see `DictionaryBlock`).

Source: seed 004 (message Dictionary) for text; the other form is ledger F-13.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.core.numpy_types import numpy_dtype
from pennon.encoding.block import AllNullBlock, Block, DictionaryBlock, FixedWidthBlock
from pennon.encoding.page import PageBuffers
from pennon.encoding.read_protocol import Steps, together
from pennon.encoding.rows import Rows
from pennon.encoding.v2_0.binary import encode_binary
from pennon.encoding.v2_0.dispatch import Codecs
from pennon.encoding.v2_0.encodings import Dictionary, Encoded, NoNulls
from pennon.encoding.v2_0.flat import encode_flat
from pennon.errors import FormatError, UnsupportedError

EncodeItems: TypeAlias = Callable[[pa.Array, int], Encoded]

FEWEST_ROWS: Final = 100
"""Pages of fewer rows are not worth a dictionary (pylance's threshold)."""

MOST_ITEMS: Final = 99
"""More distinct values than this make no dictionary (pylance's threshold)."""


def decode_dictionary(
    encoding: Dictionary, page: PageBuffers, rows: Rows, codecs: Codecs
) -> Steps[Block]:
    """Return the indices of ``rows`` and all items of the page, read side by side.

    Raises FormatError if the indices are no integers.
    """
    items = Rows.between(0, encoding.num_dictionary_items)
    indices_block, items_block = yield from together(
        [codecs.decode(encoding.indices, page, rows), codecs.decode(encoding.items, page, items)]
    )
    if not isinstance(indices_block, FixedWidthBlock):
        message = f"the indices of a dictionary page are {type(indices_block).__name__}"
        raise FormatError(message)
    if isinstance(items_block, AllNullBlock) and items_block.rows > max(page.rows, 1):
        message = f"a dictionary of {items_block.rows} NULLs for {page.rows} rows"
        raise FormatError(message)
    return DictionaryBlock(rows.count, indices_block, items_block)


def encode_text_dictionary(array: pa.Array, first: int = 0) -> Encoded | None:
    """Encode strings as items and 8-bit indices; None unless that is smaller than Binary."""
    if len(array) < FEWEST_ROWS:
        return None
    coded = _few_distinct(array)
    if coded is None:
        return None
    indices = pc.fill_null(pc.add(coded.indices.cast(pa.uint8()), pa.scalar(1, pa.uint8())), 0)
    items = coded.dictionary
    flat = encode_flat(indices.buffers()[1].slice(indices.offset, len(indices)), 8, first)
    inner = encode_binary(items, first + 1)
    encoding = Dictionary(NoNulls(flat.encoding), inner.encoding, len(items))
    return Encoded(encoding, flat.buffers + inner.buffers)


def _few_distinct(array: pa.Array) -> pa.DictionaryArray | None:
    """Dictionary-encode strings that have at least one and not too many distinct values.

    A look at the first rows spares most columns the work on all of them.
    """
    head = array.slice(0, 8 * FEWEST_ROWS)
    if pc.count_distinct(head, mode="only_valid").as_py() > MOST_ITEMS:
        return None
    coded = array.dictionary_encode()
    return coded if 0 < len(coded.dictionary) <= MOST_ITEMS else None


def encode_dictionary(array: pa.DictionaryArray, first: int, encode_items: EncodeItems) -> Encoded:
    """Encode an Arrow dictionary array; NULLs become an item that is NULL."""
    indices, items = _null_as_item(array)
    width = indices.type.bit_width
    data = indices.buffers()[1].slice(indices.offset * width // 8, len(indices) * width // 8)
    flat = encode_flat(data, width, first)
    inner = encode_items(items, first + 1)
    encoding = Dictionary(NoNulls(flat.encoding), inner.encoding, len(items))
    return Encoded(encoding, flat.buffers + inner.buffers)


def _null_as_item(array: pa.DictionaryArray) -> tuple[pa.Array, pa.Array]:
    """Return indices without NULLs, and items with a NULL among them if one is needed."""
    indices, items = array.indices, array.dictionary
    if len(items) == 0:
        items = pa.nulls(1, items.type)
    if indices.null_count == 0:
        return indices, items
    if items.null_count:
        null_item = items.is_null().index(True).as_py()
    else:
        items, null_item = pa.concat_arrays([items, pa.nulls(1, items.type)]), len(items)
    if null_item > np.iinfo(numpy_dtype(indices.type)).max:
        message = f"no index of type {indices.type} is left for NULL beside {null_item} items"
        raise UnsupportedError(message)
    return pc.fill_null(indices, pa.scalar(null_item, indices.type)), items


def without_unused_items(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return the same rows without the items that none of them names, in the same order."""
    indices = pc.fill_null(array.indices, 0).to_numpy()
    used = np.zeros(len(array.dictionary), np.bool_)
    used[indices[array.indices.is_valid().to_numpy(zero_copy_only=False)]] = True
    renumbered = (used.cumsum() - 1)[indices] if len(used) else indices
    missing = array.indices.is_null().to_numpy(zero_copy_only=False)
    return pa.DictionaryArray.from_arrays(
        pa.array(renumbered.astype(indices.dtype), array.indices.type, mask=missing),
        array.dictionary.take(pa.array(np.flatnonzero(used))),
        ordered=array.type.ordered,
    )
