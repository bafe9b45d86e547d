"""Some rows of an array, by a mask or by their numbers, also where Arrow gives wrong ones.

pyarrow 26 filters and takes a slice of fixed-size lists of fixed-size lists as if the inner lists began
at the first item of the whole array.  A copy that is no slice comes out right.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array

_WORDS: Final = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
"""Words of so many bits."""


def keep(array: pa.Array, mask: pa.Array) -> pa.Array:
    """Return the values for which ``mask`` is true."""
    return _copied(array).filter(mask)


def take(array: pa.Array, indices: pa.Array) -> pa.Array:
    """Return the values of these numbers."""
    return _copied(array).take(indices)


def reorder(array: pa.Array, order: Int64Array) -> pa.Array:
    """Return the values of these numbers, which must all be there.

    To have Arrow take a few numbers takes longer than to read them.
    """
    kind = array.type
    word = _WORDS.get(kind.bit_width) if pa.types.is_primitive(kind) else None
    if word is None or array.null_count or not len(order):
        return take(array, _over(pa.int64(), np.ascontiguousarray(order)))
    start = array.offset * kind.bit_width // 8
    values = np.frombuffer(array.buffers()[1], word, len(array), start)
    return _over(kind, values[order])


def _over(kind: pa.DataType, values: Any) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def keep_rows(batch: pa.RecordBatch, mask: pa.Array) -> pa.RecordBatch:
    """Return the rows for which ``mask`` is true."""
    if not any(map(_is_misread, batch.schema.types)):
        return batch.filter(mask)
    arrays = [_copied(array) for array in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema).filter(mask)


def _copied(array: pa.Array) -> pa.Array:
    if not _is_misread(array.type):
        return array
    copied: pa.Array[Any] = pa.concat_arrays([array, array.slice(0, 0)])
    return copied


def _is_misread(kind: pa.DataType) -> bool:
    """Tell whether there are fixed-size lists right in fixed-size lists."""
    if not kind.num_fields:
        return False
    if pa.types.is_fixed_size_list(kind) and pa.types.is_fixed_size_list(kind.value_type):
        return True
    return any(_is_misread(kind.field(number).type) for number in range(kind.num_fields))
