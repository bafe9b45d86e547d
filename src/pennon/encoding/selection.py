"""Some rows of an array, by a mask or by their numbers, also where Arrow gives wrong ones.

pyarrow 26 filters and takes a slice of fixed-size lists of fixed-size lists as if the inner lists began
at the first item of the whole array.  A copy that is no slice comes out right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array

_FEW: Final = 4096
_PLAIN: Final[Mapping[int, npt.DTypeLike]] = {
    kind.id: np.dtype(f"i{kind.bit_width // 8}")
    for kind in (
        *(pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64()),
        *(pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.date32(), pa.date64()),
        *(pa.time32("s"), pa.time64("us"), pa.timestamp("us"), pa.duration("us")),
    )
}
"""Types whose values are words, whatever their unit, by what is copied of each."""


def keep(array: pa.Array, mask: pa.Array) -> pa.Array:
    """Return the values for which ``mask`` is true."""
    return _copied(array).filter(mask)


def take(array: pa.Array, indices: pa.Array) -> pa.Array:
    """Return the values of these numbers."""
    return _copied(array).take(indices)


def take_few(array: pa.Array, numbers: Int64Array) -> pa.Array | None:
    """Return values by their numbers; None where they are many, or other ones than plain numbers that are there.

    NumPy copies a thousand of those before Arrow has found out how.
    """
    kind = _PLAIN.get(array.type.id)
    if kind is None or not 0 < len(numbers) <= _FEW or array.null_count:
        return None
    values = np.frombuffer(array.buffers()[1], kind, array.offset + len(array))
    return _over(array.type, values[array.offset :][numbers])


def reorder(array: pa.Array, order: Int64Array) -> pa.Array:
    """Return the values of these numbers, which must all be there."""
    found = take_few(array, order)
    return take(array, _over(pa.int64(), np.ascontiguousarray(order))) if found is None else found


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
