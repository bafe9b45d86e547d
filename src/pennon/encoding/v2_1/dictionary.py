"""Pages with a dictionary beside their values: values that come again and again are indices into it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pennon.encoding.block import AllNullBlock, Block, FixedWidthBlock
from pennon.errors import FormatError


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
