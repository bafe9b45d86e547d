"""Columns of Arrow as tensors of torch."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from pennon.arrow.bfloat16 import bits_of_array
from pennon.as_lance.dependencies import torch
from pennon.dataset import BlobFile
from pennon.errors import ColumnTypeError, UnsupportedError


def to_tensor(
    batch: pa.RecordBatch | Mapping[str, Any],
    *,
    uint64_as_int64: bool = True,
    hf_converter: Any = None,
    use_blob_api: bool = False,
    **_: Any,
) -> Any:
    """Return the columns of a batch as tensors: a dict, or the tensor alone if there is one column.

    Numbers and booleans have the shape (rows,), lists of a fixed size and tensors (rows, values).
    ``uint64_as_int64``: torch computes little with uint64.  Raises ColumnTypeError (a ValueError) for
    other types, UnsupportedError for blobs: they need a function of the user's.
    """
    names = batch.column_names if isinstance(batch, pa.RecordBatch) else list(batch)
    tensors = {}
    for name in names:
        column = batch[name]
        if use_blob_api and isinstance(column, list) and column and isinstance(column[0], BlobFile):
            message = (
                f"blobs (column {name!r}) become tensors by your own function: give to_tensor_fn"
            )
            raise UnsupportedError(message)
        tensor = _tensor(column)
        if tensor is None and hf_converter is not None:
            tensor = hf_converter.to_pytorch(name, column)
        if tensor is None:
            message = f"the column {name!r} of type {column.type} is no number and no list of numbers of a fixed size; give to_tensor_fn"
            raise ColumnTypeError(message)
        is_wide = uint64_as_int64 and getattr(tensor, "dtype", None) == torch.uint64
        tensors[name] = tensor.to(torch.int64) if is_wide else tensor
    return next(iter(tensors.values())) if len(tensors) == 1 else tensors


def _tensor(column: Any) -> Any:
    """Return a column as a tensor; None for a type that is none."""
    if isinstance(column.type, pa.FixedShapeTensorType):
        column = column.storage
    if _is_bfloat16(column.type):
        return _of_bfloat16(column)
    if pa.types.is_fixed_size_list(column.type):
        size = column.type.list_size
        values = _tensor(column.values.slice(column.offset * size, len(column) * size))
        return None if values is None or values.dim() != 1 else values.view(-1, size)
    kinds = pa.types
    if any(is_a(column.type) for is_a in (kinds.is_integer, kinds.is_floating, kinds.is_boolean)):
        return _of_numpy(column.to_numpy(zero_copy_only=False))
    return None


def _is_bfloat16(t: pa.DataType) -> bool:
    return getattr(t, "extension_name", None) == "lance.bfloat16"


def _of_bfloat16(column: Any) -> Any:
    """Return bfloat16 numbers as a tensor of that type, NULLs as NaN."""
    tensor = _of_numpy(bits_of_array(column)).view(torch.bfloat16)
    if column.null_count:
        tensor = tensor.clone()
        tensor[_of_numpy(column.is_null().to_numpy(zero_copy_only=False))] = float("nan")
    return tensor


def _of_numpy(values: np.ndarray[Any, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(values)
