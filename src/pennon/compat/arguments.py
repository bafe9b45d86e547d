"""Arguments as callers give them: columns, row numbers, versions, options of pyarrow's scanners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.errors import UnsupportedError


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


def check_columns(columns: Any) -> tuple[str, ...] | Mapping[str, str] | None:
    """Return the names of columns, or a mapping from new names to old ones.

    Raises TypeError for anything else, above all for one name that is not in a list.
    """
    if columns is None or isinstance(columns, Mapping):
        return columns
    if not isinstance(columns, (list, tuple)):
        message = f"columns must be a list or a dict, got {type(columns).__name__}"
        raise TypeError(message)
    for name in columns:
        if not isinstance(name, str):
            message = f"a column is named by text, got {type(name).__name__}"
            raise TypeError(message)
    return tuple(columns)


_ARROW_OPTIONS = {"fragment_scan_options", "use_threads", "cache_metadata", "memory_pool"}


def check_arrow_options(options: Mapping[str, Any]) -> None:
    """Raise TypeError for an option that neither pylance's nor pyarrow's scanners have."""
    unknown = sorted(options.keys() - _ARROW_OPTIONS)
    if unknown:
        message = f"scanner() got an unexpected keyword argument {unknown[0]!r}"
        raise TypeError(message)


def refuse(options: Mapping[str, Any]) -> None:
    """Raise UnsupportedError if an option that is not supported is set."""
    for name, value in options.items():
        is_off = value is None or value is False
        if not is_off and not (name in _HARMLESS and value == _HARMLESS[name]):
            message = f"the option {name!r} is not supported yet"
            raise UnsupportedError(message)


_HARMLESS = {"external_blob_mode": "reference"}


def version_number(version: int | None) -> int | None:
    """Return the number of a version; raises TypeError for what is none."""
    if version is None or (isinstance(version, int) and not isinstance(version, bool)):
        return version
    message = f"a version is a number, got {type(version).__name__}"
    raise TypeError(message)
