"""The choice of an encoding for a page: the one with the smallest estimated size.

==========================  ====================================================================
nothing but NULLs           a page of levels, unless in lists
values of 256 bytes or      full-zip; text in it is FSST, and each value is compressed if one has
more                        more than 32 KiB
everything else             mini-block: flat, bit-packed or run lengths, text plain or FSST, with a
                            dictionary where that is smaller
==========================  ====================================================================

Readers are indifferent to the thresholds; they are pylance's.
"""

from __future__ import annotations

import math
from typing import Final

import pyarrow as pa

from pennon.encoding.kernels.pack import block_widths
from pennon.encoding.kernels.rle_encode import count_runs
from pennon.encoding.v2_1.bitpacked import encode_inline, packed_bytes
from pennon.encoding.v2_1.blob_page import encode_blob_page
from pennon.encoding.v2_1.byte_stream_split import encode_byte_stream_split
from pennon.encoding.v2_1.choose_dictionary import (
    NumberedStrings,
    encode_dictionary,
    has_few_items,
    may_have_items,
)
from pennon.encoding.v2_1.choose_strings import (
    MOST_STRING_BYTES,
    choose_strings,
    plan_strings,
    single_strings_of,
)
from pennon.encoding.v2_1.constant_page import encode_constant_page, encode_null_page
from pennon.encoding.v2_1.dictionary_items import encode_items
from pennon.encoding.v2_1.encoding_hints import EncodingHints
from pennon.encoding.v2_1.encodings import Flat
from pennon.encoding.v2_1.fixed_size_list import (
    encode_fixed_size_list,
    encode_fixed_size_list_values,
)
from pennon.encoding.v2_1.flat import encode_flat, flat_bytes
from pennon.encoding.v2_1.full_zip import encode_full_zip
from pennon.encoding.v2_1.general import encode_general
from pennon.encoding.v2_1.leaf_values import leaf_values
from pennon.encoding.v2_1.mini_block import encode_mini_block
from pennon.encoding.v2_1.one_value import find_one_value
from pennon.encoding.v2_1.packed_struct import encode_packed_struct, encode_variable_packed_struct
from pennon.encoding.v2_1.page import EncodedPage, Levels
from pennon.encoding.v2_1.page_rules import PageRules
from pennon.encoding.v2_1.rle import encode_rle
from pennon.encoding.v2_1.shred import shred
from pennon.encoding.v2_1.symbol_training import LONGEST_SYMBOL
from pennon.encoding.v2_1.values import (
    WORD_TYPES,
    Chunked,
    DictionaryValues,
    FixedValues,
    ListValues,
    MixedRowValues,
    RowValues,
    Single,
    StringValues,
    Values,
)
from pennon.errors import UnsupportedError


def encode_page(
    array: pa.Array, depth: int, hints: EncodingHints, rules: PageRules, *, is_whole: bool = False
) -> EncodedPage | None:
    """Encode a page of one leaf, which lies under ``depth`` layers of structs and lists.

    ``is_whole`` tells that the column of the file has no other page.

    Returns None if values that must be in chunks have too many levels between them: a page of
    fewer rows may do.
    Raises UnsupportedError for what the version cannot hold, ArgumentError for impossible hints.
    """
    shredded = shred(array, depth, is_whole=is_whole)
    values, levels = shredded.values, shredded.levels
    if pa.types.is_struct(values.type) and values.type.num_fields == 0:
        return _page_without_fields(levels, rules)
    if _is_bare(values, levels, rules):
        return encode_null_page(levels, rules)
    leaf = leaf_values(values)
    if isinstance(leaf, MixedRowValues) and values.null_count == len(values):
        return encode_null_page(levels, rules)  # as values, in lists, pylance 14 fails on them
    value = find_one_value(values, leaf) if rules.constant_values else None
    if value is None:
        return _varied_page(levels, leaf, hints, rules)
    constant = encode_constant_page(levels, value)
    has_bytes = not isinstance(leaf, FixedValues) or leaf.bits > 0
    if not has_bytes or (levels.rep is None and levels.definition is None):
        return constant
    varied = _varied_page(levels, leaf, hints, rules)
    saves = varied is not None and varied.size_bytes + _MORE_BYTES < constant.size_bytes
    return varied if saves else constant


def _varied_page(
    levels: Levels, leaf: Values, hints: EncodingHints, rules: PageRules
) -> EncodedPage | None:
    """Return a page with each of its values."""
    if isinstance(leaf, StringValues):
        return _string_page(levels, leaf, hints, rules)
    if isinstance(leaf, MixedRowValues):
        fields = [_packed_field(field, hints) for field in leaf.fields]
        return encode_full_zip(levels, encode_variable_packed_struct(fields, leaf.count))
    chunked = _must_be_chunked(leaf)
    page = None
    if chunked or hints.prefers_mini_block(_widest(leaf)):
        page = _mini_block(levels, leaf, hints, rules)
    if page is not None or (chunked and not isinstance(leaf, ListValues)):
        return page
    return encode_full_zip(levels, _single(leaf))


def encode_descriptions(array: pa.Array, depth: int, rules: PageRules) -> EncodedPage | None:
    """Encode a page of descriptions of blobs, which lie under ``depth`` layers of structs."""
    shredded = shred(array, depth)
    return encode_blob_page(shredded.values, shredded.levels, rules)


def _is_bare(values: pa.Array, levels: Levels, rules: PageRules) -> bool:
    """Tell whether a page of levels will do.

    In lists that have items, it will not in 2.1: their levels would not be packed there, and older
    readers (pylance 1.0.4) lose them.
    """
    if values.null_count < len(values):
        return False
    if rules.constant_values:
        return True
    return levels.rep is None or len(values) == 0 or pa.types.is_null(values.type)


def _page_without_fields(levels: Levels, rules: PageRules) -> EncodedPage:
    """Return a page of structs without fields, which have nothing to store.

    Raises UnsupportedError if one is NULL or in a list: other readers lose that.
    """
    if levels.rep is not None or levels.definition is not None:
        message = "structs without fields that are NULL, or in lists or NULL structs"
        raise UnsupportedError(message)
    return encode_null_page(levels, rules)


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


def _mini_block(
    levels: Levels, leaf: Values, hints: EncodingHints, rules: PageRules
) -> EncodedPage | None:
    if isinstance(leaf, FixedValues):
        plain = choose_fixed(leaf, hints)
        coded = None
        if may_have_items(leaf, rules):
            coded = encode_dictionary(leaf, plain.size_bytes, hints, rules)
        page = None if coded is None else _dictionary_page(levels, coded, hints, rules)
        return page or encode_mini_block(levels, plain, rules)
    if isinstance(leaf, DictionaryValues):
        return _dictionary_page(levels, leaf, hints, rules)
    assert isinstance(leaf, ListValues | RowValues)  # strings are told apart before
    chunks = (
        encode_fixed_size_list(leaf) if isinstance(leaf, ListValues) else encode_packed_struct(leaf)
    )
    return None if chunks is None else encode_mini_block(levels, chunks, rules)


def _dictionary_page(
    levels: Levels, leaf: DictionaryValues, hints: EncodingHints, rules: PageRules
) -> EncodedPage | None:
    items = encode_items(leaf.items, hints, rules)
    return encode_mini_block(levels, choose_fixed(leaf.indices, hints), rules, items)


def _string_page(
    levels: Levels, leaf: StringValues, hints: EncodingHints, rules: PageRules
) -> EncodedPage:
    """Return a page of byte strings, of any width with a dictionary."""
    least = leaf.count * leaf.width + leaf.size_bytes // LONGEST_SYMBOL
    numbered = NumberedStrings.of(leaf)
    if has_few_items(leaf, least):
        coded = encode_dictionary(leaf, least, hints, rules, numbered)
        page = None if coded is None else _dictionary_page(levels, coded, hints, rules)
        if page is not None:
            return page
    plan = plan_strings(leaf, hints)
    coded = encode_dictionary(leaf, plan.estimated_bytes, hints, rules, numbered)
    page = None if coded is None else _dictionary_page(levels, coded, hints, rules)
    if page is not None:
        return page
    widest = int((leaf.offsets[1:] - leaf.offsets[:-1]).max())
    if hints.prefers_mini_block(widest) and widest <= MOST_STRING_BYTES:
        page = encode_mini_block(levels, choose_strings(leaf, plan.table, hints), rules)
    return page or encode_full_zip(levels, single_strings_of(leaf, plan.table, hints))


def _single(leaf: Values) -> Single:
    if isinstance(leaf, ListValues):
        return encode_fixed_size_list_values(leaf)
    assert isinstance(leaf, FixedValues)  # all else must be chunked
    return Single(Flat(leaf.bits), leaf.data, leaf.bits)


def _packed_field(values: Values, hints: EncodingHints) -> Single:
    """Return the values of one field of packed rows."""
    if isinstance(values, StringValues):
        return single_strings_of(values, plan_strings(values, hints).table, hints)
    return _single(values)


_SAMPLE_VALUES: Final = 16 * 1024
_MORE_BYTES: Final = 96
"""What chunks cost besides their buffers: that these begin aligned, and what is said of them."""


def choose_fixed(values: FixedValues, hints: EncodingHints) -> Chunked:
    """Return the chunks of a page's values."""
    if hints.scheme == "none" or values.bits not in WORD_TYPES:
        flat = encode_flat(values)
        return flat if hints.compression is None else encode_general(flat, hints.compression)
    if hints.compression is not None:
        return _compressed(values, hints)
    return _smallest(values, hints)


def _smallest(values: FixedValues, hints: EncodingHints) -> Chunked:
    """Return flat, packed or run lengths; only what promises to be smallest is made."""
    words = values.words
    widths = block_widths(words)
    flat = flat_bytes(values)
    least = min(flat, packed_bytes(values, widths))
    runs = count_runs(words)
    if _allows_runs(values, runs, hints) and runs * (values.bits // 8 + 1) < least:
        coded = encode_rle(values)
        if coded.size_bytes < least:
            return coded
    return encode_flat(values) if least == flat else encode_inline(values, widths)


def _allows_runs(values: FixedValues, runs: int, hints: EncodingHints) -> bool:
    threshold = hints.rle_threshold
    return threshold is None or runs < threshold * values.count


def _compressed(values: FixedValues, hints: EncodingHints) -> Chunked:
    """Return the encoding that is smallest once it is compressed, judged by the first values."""
    compression = hints.compression
    assert compression is not None  # or there is nothing to compare
    size = min(values.count, _SAMPLE_VALUES)
    sample = FixedValues(size, values.bits, values.data[: size * values.bits // 8])
    encoders = [encode_flat, encode_inline]
    if _allows_runs(values, count_runs(values.words), hints):
        encoders.append(encode_rle)
    if values.bits >= 32 and hints.streams != "off":
        encoders.append(encode_byte_stream_split)
    if values.bits >= 32 and hints.streams == "on":
        encoders = [encode_byte_stream_split]
    sizes = [encode_general(encode(sample), compression).size_bytes for encode in encoders]
    return encode_general(encoders[sizes.index(min(sizes))](values), compression)
