"""Row numbers as callers give them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def row_numbers(indices: Any) -> npt.NDArray[np.int64]:
    """Return row numbers as int64.

    Taken are lists, ranges, numpy arrays and Arrow arrays of integers.  Raises TypeError for
    anything else, NULLs among them, OverflowError for a number below 0 or beyond 63 bits.
    """
    values = _integers(indices)
    if len(values) and (int(values.min()) < 0 or int(values.max()) >= 1 << 63):
        message = "row numbers are 0 or greater"
        raise OverflowError(message)
    return values.astype(np.int64)


def row_ids(indices: Any) -> npt.NDArray[np.uint64]:
    """Return row ids or addresses as uint64; raises like `row_numbers`."""
    values = _integers(indices)
    if len(values) and int(values.min()) < 0:
        message = "row ids are 0 or greater"
        raise OverflowError(message)
    return values.astype(np.uint64)


def _integers(indices: Any) -> npt.NDArray[Any]:
    if isinstance(indices, (pa.Array, pa.ChunkedArray)):
        if indices.null_count:
            message = "row numbers must not be NULL"
            raise TypeError(message)
        indices = indices.to_numpy(zero_copy_only=False)
    elif not isinstance(indices, np.ndarray):
        indices = list(indices)
        if not indices:
            return np.empty(0, np.int64)
    values = np.asarray(indices)
    if not values.size:
        return np.empty(0, np.int64)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        message = f"row numbers must be a sequence of integers, got {values.dtype} values"
        raise TypeError(message)
    return values
