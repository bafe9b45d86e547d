"""The buffers of Arrow arrays, taken apart: what encoders need of the rows that an array shows.

An array may be a slice, and have anything under its NULLs: what comes from here begins at its first
row, and equal rows give equal bytes.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.encoding.kernels.nulls import copy_bits, zero_nulls

EMPTY = pa.py_buffer(b"")

Bytes: TypeAlias = npt.NDArray[np.uint8]


def as_bytes(buffer: pa.Buffer | None) -> Bytes:
    """Return a buffer as an array of bytes; none is an empty one."""
    return np.frombuffer(EMPTY if buffer is None else buffer, np.uint8)


def without_hidden_bytes(array: pa.Array) -> pa.Array:
    """Return the same values with no bytes under the NULLs.

    An Arrow string array may have anything there; equal data shall make equal files, and shorter.
    """
    offsets = arrow_offsets(array)
    nulls = np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))
    if (offsets[nulls] == offsets[nulls + 1]).all():
        return array
    return array.take(pa.array(np.arange(len(array))))


def arrow_offsets(array: pa.Array) -> npt.NDArray[np.int32 | np.int64]:
    """Return the rows + 1 offsets of a string, binary or list array; they may not start at 0."""
    large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    dtype = np.dtype(np.int64 if large or pa.types.is_large_list(array.type) else np.int32)
    buffer = array.buffers()[1]
    if buffer is None or buffer.size == 0:
        return np.zeros(1, dtype)
    return np.frombuffer(buffer, dtype, len(array) + 1, array.offset * dtype.itemsize)


def data_of(array: pa.Array) -> pa.Buffer:
    """Return the bytes of the array's rows, and no others."""
    offsets, data = arrow_offsets(array), array.buffers()[2]
    start, end = int(offsets[0]), int(offsets[-1])
    return EMPTY if data is None or start == end else data.slice(start, end - start)


def values_of(array: pa.Array) -> pa.Buffer:
    """Return the values of a fixed-width array, packed from bit 0 on, NULL rows as zero."""
    bits, rows = array.type.bit_width, len(array)
    if bits == 1:
        return _bits_of(array)
    width = bits // 8
    data = array.buffers()[1]
    if data is None or width == 0:
        return EMPTY
    data = data.slice(array.offset * width, rows * width)
    if not array.null_count:
        return data
    return pa.py_buffer(zero_nulls(as_bytes(data), validity_of(array), rows, width))


def _bits_of(array: pa.Array) -> pa.Buffer:
    """Return the values of booleans."""
    values = copy_bits(as_bytes(array.buffers()[1]), array.offset, len(array))
    return pa.py_buffer(values & validity_of(array) if array.null_count else values)


def validity_of(array: pa.Array) -> Bytes:
    """Return the validity bitmap of an array that has one, from bit 0 on."""
    return copy_bits(as_bytes(array.buffers()[0]), array.offset, len(array))


def items_of(array: pa.FixedSizeListArray) -> pa.Array:
    """Return the items of all rows; where they are plain numbers, those of NULL rows are zero.

    Arrow may have anything under a NULL, and often has NULL items there: a page of which no other
    item is NULL then needs no item validity.
    """
    dimension = array.type.list_size
    items = array.values.slice(array.offset * dimension, len(array) * dimension)
    if array.null_count == 0 or not is_plain(items.type):
        return items
    rows, width = len(array), items.type.bit_width // 8
    validity = validity_of(array)
    item_validity, any_shown = _item_validity(items, validity, rows)
    if not any_shown:
        return pa.nulls(len(items), items.type)
    data = items.buffers()[1].slice(items.offset * width, len(items) * width)
    data = pa.py_buffer(zero_nulls(as_bytes(data), validity, rows, dimension * width))
    return pa.Array.from_buffers(items.type, len(items), [item_validity, data])


def is_plain(data_type: pa.DataType) -> bool:
    """Tell whether a type's values are whole bytes of one fixed width."""
    fixed = pa.types.is_primitive(data_type) or pa.types.is_fixed_size_binary(data_type)
    return fixed and not pa.types.is_boolean(data_type)


def _item_validity(
    items: pa.Array, row_validity: Bytes, rows: int
) -> tuple[pa.Buffer | None, bool]:
    """Return the validity of items when those of NULL rows count as not NULL.

    Also tell whether any item of another row is not NULL.
    """
    if items.null_count == 0:
        return None, True
    valid = np.unpackbits(validity_of(items), count=len(items), bitorder="little")
    row_valid = np.unpackbits(row_validity, count=rows, bitorder="little")
    shown = np.repeat(row_valid, len(items) // rows)
    either = valid | (1 - shown)
    packed = None if either.all() else pa.py_buffer(np.packbits(either, bitorder="little"))
    return packed, bool((valid & shown).any())


def with_validity(values: pa.Array, valid: np.ndarray) -> pa.Array:
    """Return the same values with NULLs just where ``valid`` is not.

    Arrow's own `if_else` widens decimals of negative scale (pyarrow 26).
    """
    if isinstance(values, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(values.type, with_validity(values.storage, valid))
    if isinstance(values, pa.DictionaryArray):
        indices, ordered = with_validity(values.indices, valid), values.type.ordered
        return pa.DictionaryArray.from_arrays(indices, values.dictionary, ordered=ordered)
    kind, offset, children = values.type, values.offset, []
    if pa.types.is_fixed_size_list(kind):
        children = [values.values]
    elif pa.types.is_struct(kind):
        offset, children = 0, [values.field(number) for number in range(kind.num_fields)]
    bits = np.concatenate([np.zeros(offset, bool), valid])
    validity = pa.py_buffer(np.packbits(bits, bitorder="little"))
    buffers = [validity, *values.buffers()[1 : kind.num_buffers]]
    return pa.Array.from_buffers(kind, len(values), buffers, offset=offset, children=children)
