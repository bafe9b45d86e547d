"""The choice of dictionary encoding for a page, by the estimated number of distinct values."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.numpy_types import numpy_dtype
from pennon.core.runs import run_starts
from pennon.core.units import MIB
from pennon.encoding.arrow_buffers import arrow_offsets, as_bytes, data_of
from pennon.encoding.kernels.rle_encode import (
    count_runs,
    hash_pieces,
    join_pieces,
    number_pieces,
    tally,
)
from pennon.encoding.v2_1.encoding_hints import EncodingHints
from pennon.encoding.v2_1.page_rules import PageRules
from pennon.encoding.v2_1.values import (
    WORD_TYPES,
    DictionaryValues,
    FixedValues,
    StringValues,
    Words,
)

Int32Array: TypeAlias = npt.NDArray[np.int32]

FEWEST_VALUES: Final = 100
_DICTIONARY_BITS: Final = 128
"""The only fixed width that readers of 2.1 take in a dictionary that the type does not ask for."""

_MESSAGE_BYTES: Final = 48
"""What a page costs more with a dictionary: what is said of it, and that a buffer begins aligned."""

_CHUNK_BYTES: Final = 20
"""What a chunk of packed indices has besides them: sizes, a bit width, padding."""

_FEW_SAMPLES: Final = 1024
_FEW_VALUES: Final = 16 * 1024
_FIRST_SAMPLES: Final = 4 * 1024
_SAMPLE_VALUES: Final = 16 * 1024
_DOUBT: Final = 1.25
"""How far an estimate may be beyond a limit, and still be worth a closer look."""

_FIRST_DOUBT: Final = 1.5
"""How much farther that of the first sample may be."""

_DOUBT_OF_NUMBERS: Final = 1.1
_PAYS: Final = 0.95
"""Numbers are read faster without a dictionary, which must save more than the rest."""

_MOST_DISTINCT: Final = 0.8
"""Values of which a larger share is distinct cannot gain by what their indices cost."""

_WIDE_BYTES: Final = 128
_MOST_WIDE_BYTES: Final = MIB
"""Items as wide as values that are read one by one: to read one of these, all items are read before."""

_SHORT_RUN: Final = 4
_FIRST_VALUES: Final = 128 * 1024
"""So many values are looked through before all are: if their items cost too much, all do."""


@dataclass(frozen=True, slots=True, eq=False)
class NumberedStrings:
    """The byte strings of a page of few values, numbered by their first occurrence.

    ``places``: where each number occurs first.  ``estimate``: that of a sample, which has them all.
    """

    values: StringValues
    numbers: Int32Array
    places: Int32Array
    estimate: _Estimate

    @classmethod
    def of(cls, values: StringValues) -> NumberedStrings | None:
        """Number byte strings; None if they are many, or long."""
        if not FEWEST_VALUES <= values.count < 2 * _FIRST_SAMPLES:
            return None
        pairs = values.count // 2 * 2  # as a sample has them
        numbered = number_pieces(values.data, values.offsets, pairs)
        if numbered is None:
            return None
        numbers, places, (found, once, twice, size_bytes) = numbered
        items = _all_items(found, once, twice, values.count)
        estimate = _Estimate(items, size_bytes / found + values.width, once == 0)
        return cls(values, numbers, places, estimate)

    def coded(self) -> DictionaryValues:
        """Return the numbers as indices, and the strings that they stand for."""
        items = join_pieces(self.values.data, self.values.offsets, self.places)
        return _coded(self.numbers, StringValues(*items, self.values.width))


def encode_dictionary(
    values: FixedValues | StringValues,
    plain_bytes: int,
    hints: EncodingHints,
    rules: PageRules,
    numbered: NumberedStrings | None = None,
) -> DictionaryValues | None:
    """Return the values as indices into items; None unless that takes less than ``plain_bytes``.

    ``numbered`` are the values, if they are known already.
    """
    if not may_have_items(values, rules):
        return None
    width = 0 if isinstance(values, FixedValues) else values.width
    limit = hints.dict_size_ratio * plain_bytes * (1 if width else _PAYS)
    most_items = values.count // (hints.dict_divisor or 1)
    estimate = _promises(values, limit, most_items, numbered)
    if estimate is None:
        return None
    if numbered is not None:
        found = None if len(numbered.places) > most_items else numbered.coded()
    else:
        found = _found_by_arrow(values, limit, most_items, estimate)
    if found is None:
        return None
    if hints.dict_max_bytes is not None and found.items.size_bytes > hints.dict_max_bytes:
        return None
    if rules.free_dictionaries:
        found = _with_narrow_indices(found)
    return found if _size_bytes(found) + _MESSAGE_BYTES < limit else None


def _found_by_arrow(
    values: FixedValues | StringValues, limit: float, most_items: int, estimate: _Estimate
) -> DictionaryValues | None:
    """Return the values as indices into items; None if they have too many."""
    width = 0 if isinstance(values, FixedValues) else values.width
    runs = _long_runs(values)
    array = _arrow(values) if runs is None else _arrow(runs.values)
    if len(array) > _FIRST_VALUES and not estimate.is_whole:
        first = array[:_FIRST_VALUES].dictionary_encode().dictionary
        if len(first) > most_items or _item_bytes(first, width) > limit:
            return None
    coded = array.dictionary_encode()
    if len(coded.dictionary) > most_items:
        return None
    found = _from_arrow(coded, values)
    return found if runs is None else runs.repeat(found)


@dataclass(frozen=True, slots=True, eq=False)
class _Runs:
    """The numbers of a page as runs: number i comes ``lengths[i]`` times in sequence."""

    values: FixedValues
    lengths: Int64Array

    def repeat(self, coded: DictionaryValues) -> DictionaryValues:
        """Return the indices of all values, given those of the runs."""
        indices = np.repeat(coded.indices.words, self.lengths)
        fixed = FixedValues(len(indices), coded.indices.bits, indices.view(np.uint8))
        return DictionaryValues(fixed, coded.items)


def _long_runs(values: FixedValues | StringValues) -> _Runs | None:
    """Return the runs of numbers if they are so long that it pays to look at no more than these."""
    if not isinstance(values, FixedValues) or values.bits not in WORD_TYPES:
        return None
    words = values.words
    if count_runs(words) * _SHORT_RUN > values.count:
        return None
    begins = np.flatnonzero(run_starts(words))
    data = words[begins].view(np.uint8)
    return _Runs(FixedValues(len(begins), values.bits, data), np.diff(begins, append=len(words)))


def has_few_items(values: StringValues, least_bytes: int) -> bool:
    """Tell, by very few values, whether a dictionary should take less than ``least_bytes``.

    Of few values it may: to find out costs less than to look for symbols in them.
    """
    if values.count < FEWEST_VALUES:
        return False
    if values.count <= _FEW_VALUES:
        return True
    estimate = _estimate(values, _FEW_SAMPLES)
    return estimate.is_whole and _DOUBT * _likely_bytes(values, estimate) < least_bytes


def may_have_items(values: FixedValues | StringValues, rules: PageRules) -> bool:
    """Return whether a page of such values may have a dictionary, and has not too few of them."""
    if values.count < FEWEST_VALUES:
        return False
    if isinstance(values, StringValues):
        return True
    if rules.free_dictionaries:
        return values.bits % 8 == 0
    return values.bits == _DICTIONARY_BITS


def _arrow(values: FixedValues | StringValues) -> pa.Array:
    if isinstance(values, FixedValues):
        word = WORD_TYPES.get(values.bits)
        kind = pa.binary(values.bits // 8) if word is None else pa.from_numpy_dtype(word)
        return pa.Array.from_buffers(kind, values.count, [None, pa.py_buffer(values.data)])
    buffers = [None, pa.py_buffer(values.offsets), pa.py_buffer(values.data)]
    return pa.Array.from_buffers(pa.large_binary(), values.count, buffers)


@dataclass(frozen=True, slots=True)
class _Estimate:
    """An estimate from a sample: the number of distinct values, and the bytes of a distinct one.

    ``is_whole``: the sample has no value just once, so that it probably has them all.
    """

    items: int
    bytes_each: float
    is_whole: bool


def _promises(
    values: FixedValues | StringValues,
    limit: float,
    most_items: int,
    numbered: NumberedStrings | None,
) -> _Estimate | None:
    """Return an estimate by which a dictionary may take less than ``limit``, None if none does.

    Few values are looked at before many: most pages are told apart by those.
    """
    estimate = None if numbered is None else numbered.estimate
    for size in (_FIRST_SAMPLES, _SAMPLE_VALUES):
        if numbered is None and (estimate is None or not estimate.is_whole):
            estimate = _estimate(values, size)
        assert estimate is not None  # of the line above, or of all values
        doubt = _doubt_of(values, estimate) * (_FIRST_DOUBT if size == _FIRST_SAMPLES else 1)
        if estimate.items > min(_MOST_DISTINCT * values.count, doubt * most_items):
            return None
        if estimate.items * estimate.bytes_each > doubt * limit:
            return None
        if _likely_bytes(values, estimate) > doubt * limit:
            return None
        each, items = estimate.bytes_each, estimate.items
        if each >= _WIDE_BYTES and items * each > doubt * _MOST_WIDE_BYTES:
            return None
    return estimate


def _doubt_of(values: FixedValues | StringValues, estimate: _Estimate) -> float:
    if not _is_number(values):
        return _DOUBT
    return 1.0 if estimate.is_whole else _DOUBT_OF_NUMBERS


def _likely_bytes(values: FixedValues | StringValues, estimate: _Estimate) -> float:
    """Return about how many bytes items and their indices take, these packed or as runs."""
    items = estimate.items
    index_bytes = values.count * max(items - 1, 1).bit_length() / 8
    if isinstance(values, FixedValues) and values.bits in WORD_TYPES:
        index_bytes = min(index_bytes, count_runs(values.words) * (_index_bits(items) // 8 + 1))
    return items * estimate.bytes_each + index_bytes


def _is_number(values: FixedValues | StringValues) -> bool:
    return isinstance(values, FixedValues) and values.bits in WORD_TYPES


def _estimate(values: FixedValues | StringValues, most: int) -> _Estimate:
    """Estimate from a sample of pairs of neighbours from all over.

    Of numbers it is no pairs, for under NULLs stands the number before.
    """
    near = np.arange(1 if _is_number(values) else 2)
    step = max(len(near), values.count // most * len(near))
    places = np.add.outer(np.arange(0, values.count - 1, step), near).reshape(-1)
    keys, sizes = _sample(values, places)
    found, once, twice, size_bytes = tally(keys, sizes)
    items = _all_items(found, once, twice, values.count)
    if _is_number(values):  # whose upper bits need not be there
        return _Estimate(items, int(keys.max()).bit_length() / 8, once == 0)
    return _Estimate(items, size_bytes / found, once == 0)


def _all_items(found: int, once: int, twice: int, count: int) -> int:
    """Estimate how many items ``count`` values have, by those of a sample (Chao's rule).

    They are those found, and f1 * f1 / 2 f2 more, where the sample has f1 items once and f2 twice.
    """
    return min(found + once * max(once - 1, 0) // (2 * twice + 2), count)


def _sample(values: FixedValues | StringValues, places: Int64Array) -> tuple[Words, Int64Array]:
    """Return what tells some of the values apart, and how many bytes each takes."""
    if isinstance(values, StringValues):
        starts = values.offsets[places]
        sizes = values.offsets[places + 1] - starts
        return hash_pieces(values.data, starts, sizes), sizes + values.width
    if values.bits in WORD_TYPES:
        return values.words[places], np.zeros(len(places), np.int64)
    width = values.bits // 8
    sizes = np.full(len(places), width, np.int64)
    return hash_pieces(values.data, places * width, sizes), sizes


def _item_bytes(items: pa.Array, width: int) -> int:
    """Return how many bytes items take in a dictionary."""
    if width:
        return int(data_of(items).size + len(items) * width)
    if pa.types.is_fixed_size_binary(items.type):
        return int(items.nbytes)
    return _packed_bytes(
        np.frombuffer(
            items.buffers()[1],
            numpy_dtype(items.type),
            len(items),
            items.offset * items.type.bit_width // 8,
        )
    )


def _packed_bytes(words: Words) -> int:
    """Return about how many bytes numbers take without their upper bits."""
    return int(len(words) * int(words.max(initial=0)).bit_length() // 8)


def _from_arrow(coded: pa.DictionaryArray, values: FixedValues | StringValues) -> DictionaryValues:
    indices = np.frombuffer(coded.indices.buffers()[1], np.int32, len(coded))
    items = coded.dictionary
    if isinstance(values, FixedValues):
        inner: FixedValues | StringValues = FixedValues(
            len(items), values.bits, as_bytes(items.buffers()[1])[: len(items) * values.bits // 8]
        )
    else:
        inner = StringValues(
            arrow_offsets(items).astype(np.int64), as_bytes(data_of(items)), values.width
        )
    return _coded(indices, inner)


def _coded(indices: Int32Array, items: FixedValues | StringValues) -> DictionaryValues:
    """Return indices as wide as the offsets of their items are, at least 32 bits."""
    is_wide = isinstance(items, StringValues) and items.width == 8
    words: Words = indices.astype(np.int64) if is_wide else indices
    fixed = FixedValues(len(words), 8 * words.dtype.itemsize, words.view(np.uint8))
    return DictionaryValues(fixed, items)


def _with_narrow_indices(coded: DictionaryValues) -> DictionaryValues:
    """Return the same with indices of the fewest bytes."""
    bits = _index_bits(coded.items.count)
    words = coded.indices.words.astype(WORD_TYPES[bits])
    return DictionaryValues(FixedValues(coded.count, bits, words.view(np.uint8)), coded.items)


def _index_bits(items: int) -> int:
    return next(bits for bits in WORD_TYPES if items <= 1 << bits)


def _size_bytes(coded: DictionaryValues) -> int:
    """Return about how many bytes of a page these are, the indices bit-packed or runs."""
    items = coded.items
    each = max(items.count - 1, 1).bit_length()
    packed = (coded.count // 1024 + 1) * (128 * each + _CHUNK_BYTES)
    indices = min(packed, count_runs(coded.indices.words) * (coded.indices.bits // 8 + 1))
    if isinstance(items, FixedValues):
        is_word = items.bits in WORD_TYPES
        return indices + (_packed_bytes(items.words) if is_word else len(items.data))
    return indices + items.size_bytes + (items.count + 3) * items.width
