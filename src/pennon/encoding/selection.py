"""Some rows of an array, by a mask or by their numbers, also where Arrow gives wrong ones.

pyarrow 26 filters and takes a slice of fixed-size lists of fixed-size lists as if the inner lists began
at the first item of the whole array.  A copy that is no slice comes out right.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def keep(array: pa.Array, mask: pa.Array) -> pa.Array:
    """Return the values for which ``mask`` is true."""
    return _copied(array).filter(mask)


def take(array: pa.Array, indices: pa.Array) -> pa.Array:
    """Return the values of these numbers."""
    return _copied(array).take(indices)


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
