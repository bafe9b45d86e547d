"""Which encoding a page gets: the one that is estimated to be the smallest.

==========================  ====================================================================
nothing but NULLs           a page of levels, unless in lists
values of 256 bytes or      full-zip; text in it is FSST, and each value is compressed if one has
more                        more than 32 KiB
everything else             mini-block: flat, bit-packed or run lengths, text plain or FSST, with a
                            dictionary where that is smaller
==========================  ====================================================================

Readers are indifferent to the thresholds; they are the oracle's.
"""

from __future__ import annotations

import math

import pyarrow as pa

from pennon.encoding.v2_1.choose_fixed import choose_fixed
from pennon.encoding.v2_1.choose_strings import (
    MOST_STRING_BYTES,
    choose_strings,
    plan_strings,
    single_strings_of,
)
from pennon.encoding.v2_1.constant_page import null_page
from pennon.encoding.v2_1.dictionary import find_items
from pennon.encoding.v2_1.encoding_hints import Wishes
from pennon.encoding.v2_1.encodings import Flat
from pennon.encoding.v2_1.fixed_size_list import chunk_lists, single_lists
from pennon.encoding.v2_1.full_zip import full_zip_page
from pennon.encoding.v2_1.leaf_values import leaf_values
from pennon.encoding.v2_1.mini_block import mini_block_page
from pennon.encoding.v2_1.packed_struct import chunk_rows
from pennon.encoding.v2_1.page import EncodedPage, Levels
from pennon.encoding.v2_1.shred import shred
from pennon.encoding.v2_1.values import (
    DictionaryValues,
    FixedValues,
    ListValues,
    RowValues,
    Single,
    StringValues,
    Values,
)
from pennon.errors import UnsupportedError


def encode_page(array: pa.Array, depth: int, wishes: Wishes) -> EncodedPage | None:
    """Encode a page of one leaf, which lies under ``depth`` layers of structs and lists.

    Returns None if values that must be in chunks have too many levels between them: a page of
    fewer rows may do.
    Raises UnsupportedError for what the version cannot hold, ArgumentError for impossible wishes.
    """
    shredded = shred(array, depth)
    values, levels = shredded.values, shredded.levels
    if pa.types.is_struct(values.type) and values.type.num_fields == 0:
        return _page_without_fields(levels)
    if _is_bare(values, levels):
        return null_page(levels)
    leaf = leaf_values(values)
    if isinstance(leaf, StringValues):
        return _string_page(levels, leaf, wishes)
    chunked = _must_be_chunked(leaf)
    page = None
    if chunked or wishes.prefers_mini_block(_widest(leaf)):
        page = _mini_block(levels, leaf, wishes)
    if page is not None or (chunked and not isinstance(leaf, ListValues)):
        return page
    return full_zip_page(levels, _single(leaf))


def _is_bare(values: pa.Array, levels: Levels) -> bool:
    """Tell whether a page of levels will do.

    In lists that have items, it will not: their levels would not be packed there, and older readers
    (pylance 1.0.4) lose them.
    """
    if values.null_count < len(values):
        return False
    return levels.rep is None or len(values) == 0 or pa.types.is_null(values.type)


def _page_without_fields(levels: Levels) -> EncodedPage:
    """Return a page of structs without fields, which have nothing to store.

    Raises UnsupportedError if one is NULL or in a list: other readers lose that.
    """
    if levels.rep is not None or levels.definition is not None:
        message = "structs without fields that are NULL, or in lists or NULL structs"
        raise UnsupportedError(message)
    return null_page(levels)


def _must_be_chunked(leaf: Values) -> bool:
    """Tell whether readers take values only in chunks: indices, rows, single bits."""
    if isinstance(leaf, DictionaryValues | RowValues):
        return True
    items = leaf.items if isinstance(leaf, ListValues) else leaf
    return isinstance(items, FixedValues) and items.bits % 8 != 0


def _widest(leaf: Values) -> int:
    """Return how many bytes a value has."""
    if isinstance(leaf, ListValues):
        return math.prod(layer.dimension for layer in leaf.layers) * leaf.items.bits // 8
    assert isinstance(leaf, FixedValues)  # others are told apart before
    return leaf.bits // 8


def _mini_block(levels: Levels, leaf: Values, wishes: Wishes) -> EncodedPage | None:
    if isinstance(leaf, FixedValues):
        plain = choose_fixed(leaf, wishes)
        coded = find_items(leaf, plain.size_bytes, wishes)
        page = None if coded is None else _dictionary_page(levels, coded, wishes)
        return page or mini_block_page(levels, plain)
    if isinstance(leaf, DictionaryValues):
        return _dictionary_page(levels, leaf, wishes)
    assert isinstance(leaf, ListValues | RowValues)  # strings are told apart before
    chunks = chunk_lists(leaf) if isinstance(leaf, ListValues) else chunk_rows(leaf)
    return None if chunks is None else mini_block_page(levels, chunks)


def _dictionary_page(levels: Levels, leaf: DictionaryValues, wishes: Wishes) -> EncodedPage | None:
    return mini_block_page(levels, choose_fixed(leaf.indices, wishes), leaf.items)


def _string_page(levels: Levels, leaf: StringValues, wishes: Wishes) -> EncodedPage:
    """Return a page of byte strings, of any width with a dictionary."""
    plan = plan_strings(leaf, wishes)
    coded = find_items(leaf, plan.estimated_bytes, wishes)
    page = None if coded is None else _dictionary_page(levels, coded, wishes)
    if page is not None:
        return page
    widest = int((leaf.offsets[1:] - leaf.offsets[:-1]).max())
    if wishes.prefers_mini_block(widest) and widest <= MOST_STRING_BYTES:
        page = mini_block_page(levels, choose_strings(leaf, plan.table, wishes))
    return page or full_zip_page(levels, single_strings_of(leaf, plan.table, wishes))


def _single(leaf: Values) -> Single:
    if isinstance(leaf, ListValues):
        return single_lists(leaf)
    assert isinstance(leaf, FixedValues)  # all else must be chunked
    return Single(Flat(leaf.bits), leaf.data, leaf.bits)
