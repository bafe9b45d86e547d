"""Pages with a dictionary beside their values: values that come again and again are indices into it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from pennon.encoding.arrow_buffers import arrow_offsets, as_bytes, data_of
from pennon.encoding.block import AllNullBlock, Block, FixedWidthBlock
from pennon.encoding.v2_1.values import DictionaryValues, FixedValues, StringValues
from pennon.errors import FormatError

if TYPE_CHECKING:
    from pennon.encoding.v2_1.encoding_hints import EncodingHints  # readers do without

FEWEST_VALUES: Final = 100
DICTIONARY_BITS: Final = 128
"""The only fixed width that readers of 2.1 take in a dictionary that the type does not ask for."""

_SAMPLE_VALUES: Final = 16 * 1024
_SAMPLE_BYTES: Final = 1024 * 1024
_FEWEST_SAMPLES: Final = 1024
_DOUBT: Final = 1.25
"""How far an estimate may be beyond a limit, and still be worth a closer look."""

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
    values: FixedValues | StringValues, plain_bytes: int, hints: EncodingHints
) -> DictionaryValues | None:
    """Return the values as indices into items; None unless that takes less than ``plain_bytes``."""
    if values.count < FEWEST_VALUES:
        return None
    if isinstance(values, FixedValues) and values.bits != DICTIONARY_BITS:
        return None
    array = _arrow(values)
    width = 0 if isinstance(values, FixedValues) else values.width
    limit = hints.dict_size_ratio * plain_bytes
    most_items = values.count // (hints.dict_divisor or 1)
    if not _promises(array, width, limit, most_items):
        return None
    if values.count > _FIRST_VALUES:
        first = array[:_FIRST_VALUES].dictionary_encode().dictionary
        if len(first) > most_items or _item_bytes(first, width) > limit:
            return None
    coded = array.dictionary_encode()
    if len(coded.dictionary) > most_items:
        return None
    found = _from_arrow(coded, values)
    return found if _size_bytes(found) < limit else None


def _arrow(values: FixedValues | StringValues) -> pa.Array:
    if isinstance(values, FixedValues):
        kind = pa.binary(values.bits // 8)
        return pa.Array.from_buffers(kind, values.count, [None, pa.py_buffer(values.data)])
    buffers = [None, pa.py_buffer(values.offsets), pa.py_buffer(values.data)]
    return pa.Array.from_buffers(pa.large_binary(), values.count, buffers)


def _promises(array: pa.Array, width: int, limit: float, most_items: int) -> bool:
    """Tell whether some of the values, pairs of neighbours from all over, come again often enough.

    How many items there are in all is estimated by Chao's rule from those that the sample has once
    (f1) and twice (f2): those that it has, and f1 * f1 / 2 f2 more.
    """
    each = _item_bytes(array, width) // len(array) + 1
    size = min(_SAMPLE_VALUES, max(_FEWEST_SAMPLES, _SAMPLE_BYTES // each))
    step = max(2, len(array) // size * 2)
    places = np.arange(0, len(array) - 1, step)
    sample = array.take(pa.array(np.stack([places, places + 1], axis=1).reshape(-1)))
    found = sample.value_counts()
    counts = found.field("counts").to_numpy()
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    items = min(len(found) + once * max(once - 1, 0) // (2 * twice + 2), len(array))
    bytes_each = _item_bytes(found.field("values"), width) / max(len(found), 1)
    if items > _MOST_DISTINCT * len(array):
        return False
    index_bytes = len(array) * max(items - 1, 1).bit_length() / 8
    likely = items * bytes_each + index_bytes
    return items < _DOUBT * most_items and likely < _DOUBT * limit


def _item_bytes(items: pa.Array, width: int) -> int:
    """Return how many bytes items take in a dictionary."""
    return int(
        items.nbytes
        if pa.types.is_fixed_size_binary(items.type)
        else data_of(items).size + len(items) * width
    )


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


def _size_bytes(coded: DictionaryValues) -> int:
    """Return about how many bytes of a page these are, the indices bit-packed."""
    items = coded.items
    each = max(items.count - 1, 1).bit_length()
    indices = coded.count * each // 8 + 10 * (coded.count // 1024 + 1)
    if isinstance(items, FixedValues):
        return indices + len(items.data)
    return indices + items.size_bytes + (items.count + 3) * items.width
