"""Which encoding a page gets: the one that is estimated to be the smallest.

==========================  ====================================================================
nothing but NULLs           a page of levels
values of 256 bytes or      full-zip; text in it is FSST, and each value is compressed if one has
more                        more than 32 KiB
everything else             mini-block: flat, bit-packed or run lengths, text plain or FSST, with a
                            dictionary where that is smaller
==========================  ====================================================================

Source: ledger F-70 ff.; thresholds where readers are indifferent are the oracle's.
"""

from __future__ import annotations

import pyarrow as pa

from pennon.encoding.v2_1.encodings import Flat
from pennon.encoding.v2_1.page import Levels
from pennon.encoding.v2_1.write.blocks import (
    Chunked,
    DictionaryValues,
    FixedValues,
    ListValues,
    RowValues,
    Single,
    StringValues,
    Values,
)
from pennon.encoding.v2_1.write.choose_fixed import choose_fixed
from pennon.encoding.v2_1.write.choose_strings import choose_strings, single_choice
from pennon.encoding.v2_1.write.dictionary import find_items
from pennon.encoding.v2_1.write.leaf_values import leaf_values
from pennon.encoding.v2_1.write.lists import chunk_lists, single_lists
from pennon.encoding.v2_1.write.pages import (
    EncodedPage,
    full_zip_page,
    mini_block_page,
    null_page,
)
from pennon.encoding.v2_1.write.rows import chunk_rows, single_rows
from pennon.encoding.v2_1.write.shred import Shredded, shred
from pennon.encoding.v2_1.write.wishes import Wishes


def encode_page(array: pa.Array, depth: int, wishes: Wishes) -> EncodedPage:
    """Encode a page of one leaf, which lies under ``depth`` layers of structs and lists.

    Raises UnsupportedError for what the version cannot hold, ArgumentError for impossible wishes.
    """
    shredded = shred(array, depth)
    values, levels = shredded.values, shredded.levels
    if _is_nothing(shredded):
        return null_page(levels)
    leaf = leaf_values(values)
    if isinstance(leaf, DictionaryValues | RowValues) or wishes.prefers_mini_block(_widest(leaf)):
        page = _mini_block(levels, leaf, wishes)
        if page is not None:
            return page
    if isinstance(leaf, DictionaryValues):
        leaf = leaf_values(values.dictionary_decode())
    return full_zip_page(levels, _single(leaf, wishes))


def _is_nothing(shredded: Shredded) -> bool:
    """Tell whether there is no value at all; structs without fields have none either."""
    values = shredded.values
    empty = pa.types.is_struct(values.type) and values.type.num_fields == 0
    return bool(empty or values.null_count == len(values))


def _widest(leaf: Values) -> int:
    """Return how many bytes the widest value has."""
    if isinstance(leaf, StringValues):
        return int((leaf.offsets[1:] - leaf.offsets[:-1]).max())
    if isinstance(leaf, ListValues):
        width = leaf.items.bits
        for layer in leaf.layers:
            width *= layer.dimension
        return width // 8
    assert isinstance(leaf, FixedValues)  # others are told apart before
    return leaf.bits // 8


def _mini_block(levels: Levels, leaf: Values, wishes: Wishes) -> EncodedPage | None:
    if isinstance(leaf, FixedValues | StringValues):
        plain = _chunks(leaf, wishes)
        coded = find_items(leaf, plain.size_bytes, wishes)
        if coded is not None:
            page = _dictionary_page(levels, coded, wishes)
            if page is not None:
                return page
        return mini_block_page(levels, plain)
    if isinstance(leaf, DictionaryValues):
        return _dictionary_page(levels, leaf, wishes)
    chunks = chunk_lists(leaf) if isinstance(leaf, ListValues) else chunk_rows(leaf)
    return None if chunks is None else mini_block_page(levels, chunks)


def _chunks(leaf: FixedValues | StringValues, wishes: Wishes) -> Chunked:
    if isinstance(leaf, FixedValues):
        return choose_fixed(leaf, wishes)
    return choose_strings(leaf, wishes)


def _dictionary_page(levels: Levels, leaf: DictionaryValues, wishes: Wishes) -> EncodedPage | None:
    return mini_block_page(levels, choose_fixed(leaf.indices, wishes), leaf.items)


def _single(leaf: Values, wishes: Wishes) -> Single:
    if isinstance(leaf, StringValues):
        return single_choice(leaf, wishes)
    if isinstance(leaf, ListValues):
        return single_lists(leaf)
    if isinstance(leaf, RowValues):
        return single_rows(leaf)
    assert isinstance(leaf, FixedValues)  # dictionaries are told apart before
    return Single(Flat(leaf.bits), leaf.data, leaf.bits)
