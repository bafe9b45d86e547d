"""Blocks become Arrow arrays.

A block knows widths, a type knows meanings; both must agree, since one comes from the page and the
other from the schema of a file that may be damaged.  Nothing is copied, unless

- a buffer is not aligned for its values (files may have any padding, packed rows have none),
- offsets have another width than the type wants,
- a dictionary is only a way of storing plain values.

Text is checked to be UTF-8 when it is read, for Arrow's own code trusts it.  Most text is ASCII, and
that costs a quarter of a memcpy to see; only the rest is looked at string by string.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from pennon.core.memory import allocate_buffer, call_arrow
from pennon.core.units import KIB
from pennon.encoding import array_limit
from pennon.encoding.block import (
    AllNullBlock,
    Block,
    DictionaryBlock,
    FixedSizeListBlock,
    FixedWidthBlock,
    ListBlock,
    NullableBlock,
    StructBlock,
    VariableBlock,
)
from pennon.encoding.jsonb import json_text
from pennon.encoding.kernels.decimals import are_small
from pennon.encoding.made_arrays import (
    OFFSET_BYTES,
    fixed_array,
    fixed_list_array,
    string_array,
)
from pennon.errors import FormatError, TooLargeError
from pennon.schema.arrow import field_to_arrow, storage_field
from pennon.schema.field import Field
from pennon.schema.types import storage_type

_ALIGNMENT: Final = 8
"""No consumer of Arrow data needs more, whatever the width."""
_TEXT: Final = frozenset((pa.string().id, pa.large_string().id))
_SHORT_BYTES: Final = 16 * KIB
"""A buffer of at most so many bytes is checked without NumPy, whose call takes longer than a copy."""


def assemble(block: Block, field: Field) -> pa.Array:
    """Return the Arrow array of a block whose field is ``field``, extension types restored.

    Raises FormatError if block and type do not fit together, or text is no UTF-8.
    """
    return retype(assemble_as(block, storage_field(field).type), field_to_arrow(field).type)


def assemble_as(block: Block, data_type: pa.DataType) -> pa.Array:
    """Return the Arrow array of a block; ``data_type`` has no extension types in it."""
    validity = None
    if isinstance(block, NullableBlock):
        validity, block = block.validity, block.values
    if isinstance(block, AllNullBlock):
        return pa.nulls(block.rows, data_type)
    if isinstance(block, FixedWidthBlock):
        return _fixed_width(block, validity, data_type)
    if isinstance(block, VariableBlock):
        return _variable(block, validity, data_type)
    if isinstance(block, FixedSizeListBlock):
        return _fixed_size_list(block, validity, data_type)
    if isinstance(block, DictionaryBlock):
        return _dictionary(block, validity, data_type)
    if isinstance(block, StructBlock):
        return _struct(block, validity, data_type)
    if isinstance(block, ListBlock):
        return _list(block, validity, data_type)
    raise _mismatch(block, data_type)


def retype(array: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return ``array``, of storage types and without offset, as the extension types of ``data_type``.

    Nothing is copied or converted, except that JSON becomes text.
    """
    if array.type.equals(data_type):
        return array
    if isinstance(data_type, pa.BaseExtensionType):
        if data_type.extension_name == "arrow.json" and pa.types.is_large_binary(array.type):
            array = json_text(array)
        return pa.ExtensionArray.from_storage(data_type, retype(array, data_type.storage_type))
    if pa.types.is_struct(data_type) and array.type.num_fields == data_type.num_fields:
        children = [retype(field_of(array, i), f.type) for i, f in enumerate(data_type.fields)]
    elif pa.types.is_fixed_size_list(data_type) and pa.types.is_fixed_size_list(array.type):
        children = [retype(array.values, data_type.value_type)]
    else:
        message = f"stored values of type {array.type} are not those of type {data_type}"
        raise FormatError(message)
    validity = array.buffers()[0]
    return pa.Array.from_buffers(data_type, len(array), [validity], children=children)


def field_of(array: pa.StructArray, number: int) -> pa.Array:
    """Return a field of a struct without offset; JSON in packed rows is NULL where the row is.

    Such a row has no bytes, and no bytes are no JSON.
    """
    field = array.field(number)
    if array.null_count == 0 or field.null_count or not pa.types.is_large_binary(field.type):
        return field
    buffers = [array.buffers()[0], *field.buffers()[1:]]
    return pa.Array.from_buffers(field.type, len(field), buffers)


def aligned(buffer: pa.Buffer, width: int) -> pa.Buffer:
    """Return a buffer whose address suits values of ``width`` bytes; a copy if need be."""
    need = min(width & -width, _ALIGNMENT)
    if buffer.address % need == 0:
        return buffer
    copy = allocate_buffer(buffer.size)
    np.frombuffer(copy, np.uint8)[:] = np.frombuffer(buffer, np.uint8)
    return copy


def _fixed_width(
    block: FixedWidthBlock, validity: pa.Buffer | None, data_type: pa.DataType
) -> pa.Array:
    bits = block.bits_per_value
    if pa.types.is_fixed_size_list(data_type):
        return _fixed_size_list(_as_lists(block, data_type), validity, data_type)
    if pa.types.is_nested(data_type) or bits != _bit_width(data_type):
        raise _mismatch(block, data_type)
    if block.data.size * 8 < block.rows * bits:
        message = f"{block.rows} values of {bits} bits in {block.data.size} bytes"
        raise FormatError(message)
    width = 1 if pa.types.is_fixed_size_binary(data_type) else bits // 8
    data = aligned(block.data, width) if width > 1 else block.data
    array = fixed_array(data_type, block.rows, bits, validity, data)
    if pa.types.is_decimal(data_type) and not _are_small(block, data, data_type):
        _validate(array)  # a decimal beyond its precision breaks whoever reads it after us
    return array


def _are_small(block: FixedWidthBlock, data: pa.Buffer, data_type: pa.DataType) -> bool:
    """Tell whether decimals of 128 or 256 bits need no closer look, NULL or not."""
    words = block.bits_per_value // 64
    if words < 2:
        return False
    values = np.frombuffer(data, np.int64, block.rows * words)
    return are_small(values, words, 10 ** min(data_type.precision, 18))


def _validate(array: pa.Array) -> None:
    """Raise FormatError unless Arrow finds all values valid."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise FormatError(str(error)) from error


def _bit_width(data_type: pa.DataType) -> int:
    """Return the bits of a value, -1 if that varies or the type is made of others."""
    try:
        return int(data_type.bit_width)
    except ValueError:
        return -1


def _as_lists(block: FixedWidthBlock, data_type: pa.DataType) -> FixedSizeListBlock:
    """Return wide values as the lists that they are the bytes of (fields of packed structs)."""
    dimension = data_type.list_size
    if dimension == 0 or block.bits_per_value % dimension:
        raise _mismatch(block, data_type)
    bits = block.bits_per_value // dimension
    items = FixedWidthBlock(block.rows * dimension, bits, block.data)
    return FixedSizeListBlock(block.rows, dimension, items)


def _variable(block: VariableBlock, validity: pa.Buffer | None, data_type: pa.DataType) -> pa.Array:
    width = OFFSET_BYTES.get(data_type.id)
    if width is None:
        raise _mismatch(block, data_type)
    offsets = _offsets(block.offsets, block.rows, block.offset_bits, 8 * width)
    array = string_array(data_type, block.rows, validity, offsets, block.data)
    if data_type.id in _TEXT:
        _check_text(array, block.data)
    return array


def _offsets(offsets: pa.Buffer, rows: int, has_bits: int, wants_bits: int) -> pa.Buffer:
    """Return rows + 1 offsets of the width that the Arrow type has."""
    right = aligned(offsets, wants_bits // 8) if has_bits == wants_bits else None
    if right is not None and wants_bits == 64:
        return right
    values = np.frombuffer(right or offsets, np.dtype(f"i{has_bits // 8}"), rows + 1)
    if wants_bits == 32 and values[-1] > array_limit.LARGEST_ARRAY_BYTES:
        message = (
            f"{rows} rows hold {values[-1]} bytes or items, more than offsets of 32 bits can count;"
            " read fewer rows at once"
        )
        raise TooLargeError(message)
    if right is not None:
        return right
    return pa.py_buffer(values.astype(np.dtype(f"i{wants_bits // 8}")))


def _check_text(array: pa.Array, data: pa.Buffer) -> None:
    """Raise FormatError unless every string is UTF-8."""
    if data.size <= _SHORT_BYTES:  # NumPy would let go of the interpreter's lock
        if data.to_pybytes().isascii():
            return
    elif np.frombuffer(data, np.int8).min() >= 0:
        return
    _validate(array)


def _fixed_size_list(
    block: FixedSizeListBlock, validity: pa.Buffer | None, data_type: pa.DataType
) -> pa.Array:
    if not pa.types.is_fixed_size_list(data_type) or data_type.list_size != block.dimension:
        raise _mismatch(block, data_type)
    items = assemble_as(block.items, data_type.value_type)
    return fixed_list_array(data_type, block.rows, validity, items)


def _struct(block: StructBlock, validity: pa.Buffer | None, data_type: pa.DataType) -> pa.Array:
    if not pa.types.is_struct(data_type) or data_type.num_fields != len(block.children):
        raise _mismatch(block, data_type)
    pairs = zip(block.children, data_type.fields, strict=True)
    children = [assemble_as(child, field.type) for child, field in pairs]
    return pa.Array.from_buffers(data_type, block.rows, [validity], children=children)


def _list(block: ListBlock, validity: pa.Buffer | None, data_type: pa.DataType) -> pa.Array:
    is_large = pa.types.is_large_list(data_type)
    if not is_large and not pa.types.is_list(data_type):
        raise _mismatch(block, data_type)
    items = assemble_as(block.items, data_type.value_type)
    return lists_of(
        data_type, block.rows, block.offset_bits, block.offsets, validity or block.validity, items
    )


def lists_of(
    data_type: pa.DataType,
    rows: int,
    offset_bits: int,
    offsets: pa.Buffer,
    validity: pa.Buffer | None,
    items: pa.Array,
) -> pa.Array:
    """Return a (large) list array; ``offsets`` are rows + 1 values of ``offset_bits``, from 0 on."""
    wants_bits = 64 if pa.types.is_large_list(data_type) else 32
    right = _offsets(offsets, rows, offset_bits, wants_bits)
    return pa.Array.from_buffers(data_type, rows, [validity, right], children=[items])


def _dictionary(
    block: DictionaryBlock, validity: pa.Buffer | None, data_type: pa.DataType
) -> pa.Array:
    """Return a dictionary array, or the plain values that indices stand for."""
    bits = block.indices.bits_per_value
    if bits not in (8, 16, 32, 64):
        raise _mismatch(block, data_type)
    indices = np.frombuffer(block.indices.data, np.dtype(f"u{bits // 8}"), block.rows)
    if pa.types.is_dictionary(data_type):
        items = assemble_as(block.items, data_type.value_type)
        _check_indices(indices, len(items))
        return _dictionary_array(indices, validity, items, data_type)
    items = assemble_as(block.items, data_type)
    _check_indices(indices, len(items) + 1)
    held = indices != 0
    validity = None if held.all() else pa.py_buffer(np.packbits(held, bitorder="little"))
    places = indices - indices.dtype.type(1)  # of NULLs the greatest number, which is not looked at
    keys = pa.Array.from_buffers(
        pa.from_numpy_dtype(places.dtype), len(places), [validity, pa.py_buffer(places)]
    )
    return call_arrow("take", items, keys)


def _check_indices(indices: np.ndarray, count: int) -> None:
    if len(indices) and int(indices.max()) >= count:
        message = f"dictionary index {indices.max()}, where the greatest can be {count - 1}"
        raise FormatError(message)


def _dictionary_array(
    indices: np.ndarray, validity: pa.Buffer | None, items: pa.Array, data_type: pa.DictionaryType
) -> pa.Array:
    """Return a dictionary array; rows whose item is NULL become NULL themselves.

    The dictionary comes without NULLs, because Arrow cannot concatenate dictionaries that have any.
    """
    keys = pa.Array.from_buffers(
        pa.from_numpy_dtype(indices.dtype), len(indices), [validity, pa.py_buffer(indices)]
    )
    if items.null_count:
        from pyarrow.compute import if_else  # noqa: PLC0415 - saves 50 ms: hardly any page needs it

        held = np.asarray(items.is_valid())
        places = (np.cumsum(held) - 1).astype(indices.dtype)
        moved = pa.array(places[indices], mask=~held[indices])
        keys = if_else(keys.is_valid(), moved, pa.scalar(None, moved.type))
        items = items.drop_null()
    try:
        keys = keys.cast(data_type.index_type)
    except pa.ArrowInvalid as error:
        raise FormatError(str(error)) from error
    return pa.DictionaryArray.from_arrays(keys, items, ordered=data_type.ordered, safe=False)


def _mismatch(block: Block, data_type: pa.DataType) -> FormatError:
    what = type(block).__name__.removesuffix("Block")
    if isinstance(block, FixedWidthBlock):
        what = f"values of {block.bits_per_value} bits"
    elif isinstance(block, FixedSizeListBlock):
        what = f"lists of {block.dimension} items"
    return FormatError(f"{what} in a page of a column of type {storage_type(data_type)}")
