"""Pages with a dictionary beside their values: values that come again and again are indices into it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from pennon.encoding.arrow_buffers import arrow_offsets, as_bytes, data_of
from pennon.encoding.block import AllNullBlock, Block, FixedWidthBlock
from pennon.encoding.kernels.squeeze import count_runs
from pennon.encoding.v2_1.page_rules import PageRules
from pennon.encoding.v2_1.values import (
    WORD_TYPES,
    DictionaryValues,
    FixedValues,
    StringValues,
    Words,
)
from pennon.errors import FormatError

if TYPE_CHECKING:
    from pennon.encoding.v2_1.encoding_hints import EncodingHints  # readers do without

FEWEST_VALUES: Final = 100
_DICTIONARY_BITS: Final = 128
"""The only fixed width that readers of 2.1 take in a dictionary that the type does not ask for."""

_MESSAGE_BYTES: Final = 48
"""What a page costs more with a dictionary: what is said of it, and that a buffer begins aligned."""

_CHUNK_BYTES: Final = 20
"""What a chunk of packed indices has besides them: sizes, a bit width, padding."""

_SAMPLE_VALUES: Final = 16 * 1024
_SAMPLE_BYTES: Final = 1024 * 1024
_FEWEST_SAMPLES: Final = 1024
_DOUBT: Final = 1.25
"""How far an estimate may be beyond a limit, and still be worth a closer look."""

_DOUBT_OF_NUMBERS: Final = 1.1
_PAYS: Final = 0.95
"""Numbers are read faster without a dictionary, which must save more than the rest."""

_MOST_DISTINCT: Final = 0.8
"""Values of which a larger share is distinct cannot gain by what their indices cost."""

_FIRST_VALUES: Final = 128 * 1024
"""So many values are looked through before all are: if their items cost too much, all do."""


def decode_dictionary(
    values: Block, items: pa.Array, validity: pa.Buffer | None, data_type: pa.DataType
) -> pa.Array:
    """Return items by their indices: a dictionary array if the type is one, else plain values.

    Raises FormatError if an index names no item.
    """
    indices = _indices(values)
    if indices is None:
        return pa.nulls(values.rows, data_type)
    _check_indices(indices, validity, len(items))
    keys = pa.Array.from_buffers(
        pa.from_numpy_dtype(indices.dtype), len(indices), [validity, pa.py_buffer(indices)]
    )
    if not pa.types.is_dictionary(data_type):
        return items.take(keys)
    try:
        keys = keys.cast(data_type.index_type)
    except pa.ArrowInvalid as error:
        raise FormatError(str(error)) from error
    return pa.DictionaryArray.from_arrays(keys, items, ordered=data_type.ordered, safe=False)


def _indices(values: Block) -> np.ndarray | None:
    """Return the indices; None if all of them are NULL."""
    if isinstance(values, AllNullBlock):
        return None
    if not isinstance(values, FixedWidthBlock) or values.bits_per_value not in (8, 16, 32, 64):
        message = f"indices into a dictionary stored as {type(values).__name__}"
        raise FormatError(message)
    width = values.bits_per_value // 8
    if values.data.size < values.rows * width:
        message = f"{values.rows} indices in {values.data.size} bytes"
        raise FormatError(message)
    return np.frombuffer(values.data, f"<u{width}", values.rows)


def _check_indices(indices: np.ndarray, validity: pa.Buffer | None, count: int) -> None:
    """Raise FormatError if an index names no item; those under NULLs may be anything."""
    if not len(indices) or int(indices.max()) < count:
        return
    if validity is not None:
        valid = np.unpackbits(
            np.frombuffer(validity, np.uint8), count=len(indices), bitorder="little"
        )
        named = indices[valid.view(np.bool_)]
        if not len(named) or int(named.max()) < count:
            return
    message = f"dictionary index {indices.max()}, where the greatest can be {count - 1}"
    raise FormatError(message)


def encode_dictionary(
    values: FixedValues | StringValues, plain_bytes: int, hints: EncodingHints, rules: PageRules
) -> DictionaryValues | None:
    """Return the values as indices into items; None unless that takes less than ``plain_bytes``."""
    if values.count < FEWEST_VALUES or not _may_have_items(values, rules):
        return None
    array = _arrow(values)
    width = 0 if isinstance(values, FixedValues) else values.width
    limit = hints.dict_size_ratio * plain_bytes * (1 if width else _PAYS)
    most_items = values.count // (hints.dict_divisor or 1)
    if not _promises(array, values, limit, most_items):
        return None
    if values.count > _FIRST_VALUES:
        first = array[:_FIRST_VALUES].dictionary_encode().dictionary
        if len(first) > most_items or _item_bytes(first, width) > limit:
            return None
    coded = array.dictionary_encode()
    if len(coded.dictionary) > most_items:
        return None
    found = _from_arrow(coded, values)
    if hints.dict_max_bytes is not None and found.items.size_bytes > hints.dict_max_bytes:
        return None
    if rules.free_dictionaries:
        found = _with_narrow_indices(found)
    return found if _size_bytes(found) + _MESSAGE_BYTES < limit else None


def _may_have_items(values: FixedValues | StringValues, rules: PageRules) -> bool:
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


def _promises(
    array: pa.Array, values: FixedValues | StringValues, limit: float, most_items: int
) -> bool:
    """Tell whether some of the values, pairs of neighbours from all over, come again often enough.

    Of numbers it is no pairs, for under NULLs stands the number before.
    How many items there are in all is estimated by Chao's rule from those that the sample has once
    (f1) and twice (f2): those that it has, and f1 * f1 / 2 f2 more.
    """
    width = 0 if isinstance(values, FixedValues) else values.width
    is_number = isinstance(values, FixedValues) and values.bits in WORD_TYPES
    each = 8 if is_number else _item_bytes(array, width) // len(array) + 1
    size = min(_SAMPLE_VALUES, max(_FEWEST_SAMPLES, _SAMPLE_BYTES // each))
    near = np.arange(1 if is_number else 2)
    step = max(len(near), len(array) // size * len(near))
    places = np.arange(0, len(array) - 1, step)
    sample = array.take(pa.array(np.add.outer(places, near).reshape(-1)))
    found = sample.value_counts()
    counts = found.field("counts").to_numpy()
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    items = min(len(found) + once * max(once - 1, 0) // (2 * twice + 2), len(array))
    bytes_each = _item_bytes(found.field("values"), width) / max(len(found), 1)
    if items > _MOST_DISTINCT * len(array):
        return False
    index_bytes = len(array) * max(items - 1, 1).bit_length() / 8
    if is_number:
        assert isinstance(values, FixedValues)
        index_bytes = min(index_bytes, count_runs(values.words) * (_index_bits(items) // 8 + 1))
    likely = items * bytes_each + index_bytes
    doubt = _DOUBT_OF_NUMBERS if is_number else _DOUBT
    return items < doubt * most_items and likely < doubt * limit


def _item_bytes(items: pa.Array, width: int) -> int:
    """Return how many bytes items take in a dictionary."""
    if width:
        return int(data_of(items).size + len(items) * width)
    if pa.types.is_fixed_size_binary(items.type):
        return int(items.nbytes)
    return _packed_bytes(
        np.frombuffer(
            items.buffers()[1],
            items.type.to_pandas_dtype(),
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
        if values.width == 8:
            indices = indices.astype(np.int64)
    bits = 8 * indices.dtype.itemsize
    return DictionaryValues(FixedValues(len(coded), bits, indices.view(np.uint8)), inner)


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
