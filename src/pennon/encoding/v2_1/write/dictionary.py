"""Pages with a dictionary: values that come again and again become indices."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from pennon.encoding.v2_0.binary import arrow_offsets, data_of
from pennon.encoding.v2_0.encoded import as_bytes
from pennon.encoding.v2_1.write.blocks import DictionaryValues, FixedValues, StringValues
from pennon.encoding.v2_1.write.wishes import Wishes

FEWEST_VALUES: Final = 100
DICTIONARY_BITS: Final = 128
"""The only fixed width that readers of 2.1 take in a dictionary that the type does not ask for."""

_SAMPLE_VALUES: Final = 4096


def find_items(
    values: FixedValues | StringValues, plain_bytes: int, wishes: Wishes
) -> DictionaryValues | None:
    """Return the values as indices into items; None unless that takes less than ``plain_bytes``."""
    if values.count < FEWEST_VALUES or wishes.scheme == "none":
        return None
    if isinstance(values, FixedValues) and values.bits != DICTIONARY_BITS:
        return None
    array = _arrow(values)
    if not _promises(array, values.count):
        return None
    coded = array.dictionary_encode()
    items = len(coded.dictionary)
    if wishes.dict_divisor is not None and items > values.count // wishes.dict_divisor:
        return None
    found = _from_arrow(coded, values)
    if _size_bytes(found) >= wishes.dict_size_ratio * plain_bytes:
        return None
    return found


def _arrow(values: FixedValues | StringValues) -> pa.Array:
    if isinstance(values, FixedValues):
        kind = pa.binary(values.bits // 8)
        return pa.Array.from_buffers(kind, values.count, [None, pa.py_buffer(values.data)])
    buffers = [None, pa.py_buffer(values.offsets), pa.py_buffer(values.data)]
    return pa.Array.from_buffers(pa.large_binary(), values.count, buffers)


def _promises(array: pa.Array, count: int) -> bool:
    """Tell whether some of the values, taken from all over, come again often enough."""
    step = max(1, count // _SAMPLE_VALUES)
    sample = array.take(pa.array(np.arange(0, count, step)))
    return len(sample.unique()) < 0.9 * len(sample)


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
