"""From the array of a leaf to values without NULLs, ready for an encoder.

What lies under a NULL is ours to choose: the value before it, so that no run ends there and nothing
gets wider, and for byte strings nothing.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pennon.encoding.arrow_buffers import (
    Bytes,
    arrow_offsets,
    as_bytes,
    data_of,
    items_of,
    validity_of,
    values_of,
    without_hidden_bytes,
)
from pennon.encoding.kernels.rle_encode import fill_nulls
from pennon.encoding.v2_1.values import (
    WORD_TYPES,
    DictionaryValues,
    FixedValues,
    ListLayer,
    ListValues,
    MixedRowValues,
    RowValues,
    StringValues,
    Values,
)
from pennon.errors import UnsupportedError


def leaf_values(array: pa.Array) -> Values:
    """Return the values of an array of one type that is no list and no unpacked struct.

    Raises UnsupportedError for NULLs that a packed struct cannot hold.
    """
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return leaf_values(array.storage)
    if pa.types.is_dictionary(kind):
        return _dictionary(array)
    if pa.types.is_struct(kind):
        return _rows(array)
    if pa.types.is_fixed_size_list(kind):
        return _lists(array)
    if _is_variable(kind):
        return string_values(array)
    return fixed_values(array)


def _is_variable(kind: pa.DataType) -> bool:
    tests = (pa.types.is_string, pa.types.is_binary)
    large = (pa.types.is_large_string, pa.types.is_large_binary)
    return any(test(kind) for test in tests + large)


def fixed_values(array: pa.Array) -> FixedValues:
    """Return values of one width."""
    if pa.types.is_boolean(array.type):
        return FixedValues(len(array), 1, as_bytes(values_of(array)))
    bits = array.type.bit_width
    if not array.null_count or bits not in WORD_TYPES:
        return FixedValues(len(array), bits, as_bytes(values_of(array)))
    words = np.frombuffer(
        array.buffers()[1], WORD_TYPES[bits], len(array), array.offset * bits // 8
    )
    filled = fill_nulls(words, as_bytes(array.buffers()[0]), array.offset)
    return FixedValues(len(array), bits, filled.view(np.uint8))


def string_values(array: pa.Array) -> StringValues:
    """Return byte strings; those that are NULL are empty."""
    if array.null_count:
        array = without_hidden_bytes(array)
    offsets = arrow_offsets(array)
    width = offsets.dtype.itemsize
    return StringValues((offsets - offsets[0]).astype(np.int64), as_bytes(data_of(array)), width)


def _lists(array: pa.FixedSizeListArray) -> ListValues:
    """Return fixed-size lists: their innermost items, and which items are NULL on each layer."""
    rows, layers = len(array), []
    while pa.types.is_fixed_size_list(array.type):
        dimension = array.type.list_size
        array = items_of(array)
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        layers.append(ListLayer(dimension, _item_validity(array)))
    if pa.types.is_null(array.type):
        return ListValues(rows, tuple(layers), FixedValues(len(array), 0, np.empty(0, np.uint8)))
    return ListValues(rows, tuple(layers), fixed_values(array))


def _item_validity(items: pa.Array) -> Bytes | None:
    if pa.types.is_null(items.type):
        return np.zeros((len(items) + 7) // 8, np.uint8)
    return validity_of(items) if items.null_count else None


def _rows(array: pa.StructArray) -> RowValues | MixedRowValues:
    """Return the rows of a packed struct; NULL rows are levels, NULL fields cannot be."""
    fields = [array.field(number) for number in range(array.type.num_fields)]
    valid = array.is_valid() if array.null_count else None
    for number, field in enumerate(fields):
        hidden = field if valid is None else field.filter(valid)
        if hidden.null_count or _inner_nulls(hidden):
            name = array.type.field(number).name
            message = f"field {name!r} of a packed struct is NULL; an unpacked struct can hold that"
            raise UnsupportedError(message)
    values = [leaf_values(field) for field in fields]
    plain = [each for each in values if isinstance(each, FixedValues)]
    if len(plain) < len(values):
        mixed = [v for v in values if isinstance(v, FixedValues | StringValues | ListValues)]
        assert len(mixed) == len(values)  # schema.check lets nothing else into a packed struct
        return MixedRowValues(len(array), tuple(mixed))
    columns = [each.data.reshape(len(array), each.bits // 8) for each in plain]
    table = np.concatenate(columns, axis=1) if columns else np.empty((len(array), 0), np.uint8)
    bits = tuple(each.bits for each in plain)
    rows = FixedValues(len(array), sum(bits), np.ascontiguousarray(table).reshape(-1))
    return RowValues(bits, rows)


def _inner_nulls(field: pa.Array) -> bool:
    while pa.types.is_fixed_size_list(field.type):
        field = items_of(field)
        if field.null_count:
            return True
    return False


def _dictionary(array: pa.DictionaryArray) -> DictionaryValues:
    """Return the indices and the items of a dictionary array, whose items are not NULL.

    Where all is NULL there may be no items; the indices name one all the same, so there is one.
    """
    items = array.dictionary if len(array.dictionary) else _one_item(array.dictionary.type)
    indices = fixed_values(array.indices)
    inner = leaf_values(items)
    assert isinstance(inner, FixedValues | StringValues)  # schema.check refuses other items
    return DictionaryValues(indices, inner)


def _one_item(kind: pa.DataType) -> pa.Array:
    if _is_variable(kind):
        return pa.array([b""], pa.binary()).cast(kind)
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(bytes(-(-kind.bit_width // 8)))])


def without_null_items(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return the same rows with NULLs in the indices only: a page's dictionary cannot hold any."""
    items = array.dictionary
    if items.null_count == 0:
        return array
    valid = items.is_valid().to_numpy(zero_copy_only=False)
    numbers = pa.array(np.where(valid, valid.cumsum() - 1, 0), array.indices.type, mask=~valid)
    indices = numbers.take(array.indices)
    return pa.DictionaryArray.from_arrays(indices, items.drop_null(), ordered=array.type.ordered)
