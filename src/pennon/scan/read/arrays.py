"""numpy arrays as Arrow arrays, without `pyarrow.array`, whose first call imports pandas; arrays as columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.encoding.made_arrays import fixed_array


def column_of(
    chunks: Sequence[pa.Array[Any]], kind: pa.DataType | None = None
) -> pa.Array[Any] | pa.ChunkedArray[Any]:
    """Return chunks as what a table takes for a column; one chunk is one already."""
    return chunks[0] if len(chunks) == 1 else pa.chunked_array(chunks, kind)


def int64_array(values: npt.NDArray[np.int64]) -> pa.Array[Any]:
    """Return an int64 array over the same memory."""
    return _over(pa.int64(), np.ascontiguousarray(values, np.int64))


def int32_array(values: npt.NDArray[np.int32]) -> pa.Array[Any]:
    """Return an int32 array over the same memory."""
    return _over(pa.int32(), np.ascontiguousarray(values, np.int32))


def uint64_array(values: npt.NDArray[np.uint64]) -> pa.Array[Any]:
    """Return a uint64 array over the same memory."""
    return _over(pa.uint64(), np.ascontiguousarray(values, np.uint64))


def float32_array(values: npt.NDArray[np.float32]) -> pa.Array[Any]:
    """Return a float32 array over the same memory."""
    return _over(pa.float32(), np.ascontiguousarray(values, np.float32))


def bool_array(values: npt.NDArray[np.bool_]) -> pa.Array[Any]:
    """Return a bool array."""
    bits = _buffer(np.packbits(values, bitorder="little"))
    return fixed_array(pa.bool_(), len(values), 1, None, bits)


def _over(kind: pa.DataType, values: npt.NDArray[Any]) -> pa.Array[Any]:
    return fixed_array(kind, len(values), 8 * values.itemsize, None, _buffer(values))


def _buffer(values: npt.NDArray[Any]) -> pa.Buffer:
    memory: Any = values
    return pa.py_buffer(memory)
