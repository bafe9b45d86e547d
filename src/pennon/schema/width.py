"""The least number of bytes that a row takes in memory.

A page of one value, or of runs, has thousands of rows in a byte.  Whoever reads so many bytes at once
must know what they become.
"""

from __future__ import annotations

import pyarrow as pa


def row_bytes(schema: pa.Schema) -> int:
    """Return the least bytes of one row: lists and byte strings count as empty ones."""
    return -(-sum(_bits(field.type) for field in schema) // 8)


def has_width(data_type: pa.DataType) -> bool:
    """Tell whether all values of a type take the same bytes."""
    if isinstance(data_type, pa.BaseExtensionType):
        return has_width(data_type.storage_type)
    if pa.types.is_struct(data_type):
        return all(has_width(child.type) for child in data_type)
    if pa.types.is_fixed_size_list(data_type):
        return has_width(data_type.value_type)
    return bool(pa.types.is_primitive(data_type) or pa.types.is_fixed_size_binary(data_type))


def _bits(data_type: pa.DataType) -> int:
    """Return the bits that a value of a type takes at least."""
    if isinstance(data_type, pa.BaseExtensionType):
        return _bits(data_type.storage_type)
    if pa.types.is_fixed_size_list(data_type):
        return int(data_type.list_size) * _bits(data_type.value_type)
    if pa.types.is_struct(data_type):
        return sum(_bits(child.type) for child in data_type)
    if pa.types.is_dictionary(data_type):
        return _bits(data_type.index_type)
    if pa.types.is_null(data_type):
        return 0
    try:
        return int(data_type.bit_width)
    except ValueError:
        return 64 if data_type in _LARGE or pa.types.is_large_list(data_type) else 32


_LARGE = (pa.large_string(), pa.large_binary())
