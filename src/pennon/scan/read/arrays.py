"""numpy arrays as Arrow arrays, without `pyarrow.array`, whose first call imports pandas."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


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
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, bits])


def _over(kind: pa.DataType, values: npt.NDArray[Any]) -> pa.Array[Any]:
    return pa.Array.from_buffers(kind, len(values), [None, _buffer(values)])


def _buffer(values: npt.NDArray[Any]) -> pa.Buffer:
    memory: Any = values
    return pa.py_buffer(memory)
