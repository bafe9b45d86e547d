"""The vectors of a column that an index holds: those that a distance can be computed of."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as t

from pennon.index.row_set import Numbers
from pennon.index.vector.lengths import normalized
from pennon.index.vector.metric import Metric

Matrix: TypeAlias = npt.NDArray[Any]
"""A vector a row, in the type of the column."""
Floats: TypeAlias = npt.NDArray[np.float32]


def is_vector(kind: pa.DataType) -> bool:
    """Return whether a column of a type holds a vector, or a list of vectors, in each row."""
    inner = kind.value_type if t.is_list(kind) or t.is_large_list(kind) else kind
    return bool(t.is_fixed_size_list(inner) and inner.list_size > 0)


def is_many(kind: pa.DataType) -> bool:
    """Return whether each row holds a list of vectors."""
    return bool(t.is_list(kind) or t.is_large_list(kind))


def vector_type(kind: pa.DataType) -> Any:
    """Return the type of one vector of a column."""
    return kind.value_type if is_many(kind) else kind


def usable(values: pa.Array[Any], rows: Numbers, metric: Metric) -> tuple[Matrix, Numbers]:
    """Return the vectors that an index holds, and the number of the row of each.

    NULLs are left out, and what has a NaN, an infinity or a NULL inside; with a metric that normalises zeros, too, and the
    others get the length 1.
    """
    if is_many(values.type):
        values, rows = _inner(values, rows)
    if values.null_count:
        there = np.asarray(values.is_valid().to_numpy(zero_copy_only=False))
        values, rows = values.filter(pa.array(there)), rows[there]
    width = values.type.list_size
    flat = values.flatten()
    missing = _mask(flat, width) if flat.null_count else None
    if flat.null_count:
        flat = flat.fill_null(0)
    matrix: Matrix = np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(-1, width)
    good: Any = np.ones(len(matrix), np.bool_) if missing is None else ~missing
    if matrix.dtype.kind == "f":
        finite: Any = np.isfinite(matrix).all(axis=1)
        good &= finite
    if metric.normalises:
        matrix, has_direction = normalized(matrix)
        good &= has_direction
    return (matrix, rows) if good.all() else (matrix[good], rows[good])


def _inner(values: pa.Array[Any], rows: Numbers) -> tuple[Any, Numbers]:
    """Return the vectors inside of lists, and the row of each."""
    if values.null_count:
        there = np.asarray(values.is_valid().to_numpy(zero_copy_only=False))
        values, rows = values.filter(pa.array(there)), rows[there]
    counts = np.asarray(values.value_lengths().to_numpy(zero_copy_only=False)).astype(np.int64)
    return values.flatten(), np.repeat(rows, counts)


def _mask(flat: pa.Array[Any], width: int) -> npt.NDArray[np.bool_]:
    found: Any = flat.is_null().to_numpy(zero_copy_only=False)
    missing: npt.NDArray[np.bool_] = found.reshape(-1, width).any(axis=1)
    return missing


def as_floats(matrix: Matrix) -> Floats:
    """Return vectors as the numbers that are computed with; bits of uint8 each become a number, 0 or 1."""
    if matrix.dtype == np.uint8:
        return np.unpackbits(matrix, axis=1).astype(np.float32)
    return np.ascontiguousarray(matrix, np.float32)


def of_bits(floats: Floats) -> npt.NDArray[np.uint8]:
    """Return vectors of bits of numbers, each 1 that is more than a half."""
    return np.packbits(floats > 0.5, axis=1)


def as_array(matrix: Matrix, kind: Any = None) -> pa.FixedSizeListArray[Any]:
    """Return vectors as an Arrow array; ``kind``: its type, by default lists of what the matrix is of."""
    if kind is None:
        kind = pa.list_(pa.from_numpy_dtype(matrix.dtype), matrix.shape[1])
    flat = pa.array(np.ascontiguousarray(matrix).ravel(), kind.value_type)
    return pa.FixedSizeListArray.from_arrays(flat, type=kind)
