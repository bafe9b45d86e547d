"""Arrow batches as tensors: numbers, vectors and images without a copy, texts and bytes as lists."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import torch

from pennon.errors import ArgumentError

_BFLOAT16: Final = "lance.bfloat16"
_EXTENSION_NAME: Final = b"ARROW:extension:name"


def to_tensors(batch: pa.RecordBatch) -> dict[str, Any]:
    """Return each column of a batch, by its name.

    =======================================  ==================================================================
    column                                   becomes
    =======================================  ==================================================================
    number, boolean                          tensor of shape (rows,)
    date, time, timestamp, duration          tensor of int32 or int64, in the column's unit
    fixed-size list, fixed-shape tensor      tensor of shape (rows, ...)
    text, binary, blob, decimal              list of str, bytes or Decimal; None for NULL
    list                                     list of tensors, or of lists
    struct                                   dict of its fields
    =======================================  ==================================================================

    NULLs of floating-point columns become NaN.  Raises ArgumentError for NULLs in other numbers: no tensor can
    hold them.  Tensors share the memory of the batch, unless it is read-only or a bitmap.
    """
    return {
        field.name: _column(batch.column(number), field, field.name)
        for number, field in enumerate(batch.schema)
    }


def _column(array: pa.Array, field: pa.Field, name: str) -> Any:
    if _is_bfloat16(field):
        return _bfloat16(array, name)
    if isinstance(array, pa.ExtensionArray):
        shape = getattr(array.type, "shape", None)
        found = _column(array.storage, field.with_metadata({}), name)
        if shape is not None and isinstance(found, torch.Tensor):
            found = found.reshape(len(array), *shape)
        return found
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _column(array.dictionary_decode(), field, name)
    if pa.types.is_boolean(kind):
        _refuse_nulls(array, name)
        return torch.from_numpy(array.to_numpy(zero_copy_only=False).copy())
    if pa.types.is_temporal(kind):
        return _numbers(array.view(pa.int32() if kind.bit_width == 32 else pa.int64()), name)
    if pa.types.is_primitive(kind) and not pa.types.is_decimal(kind):
        return _numbers(array, name)
    if pa.types.is_fixed_size_list(kind):
        return _vectors(array, name)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [
            None if not row.is_valid else _column(row.values, kind.value_field, name)
            for row in array
        ]
    if pa.types.is_struct(kind):
        _refuse_nulls(array, name)
        return {
            each.name: _column(values, each, f"{name}.{each.name}")
            for each, values in zip(kind, array.flatten(), strict=True)
        }
    return array.to_pylist()


def _numbers(array: pa.Array, name: str) -> torch.Tensor:
    """Return numbers as a tensor; it shares their memory if that may be written."""
    if array.null_count:
        if not pa.types.is_floating(array.type):
            _refuse_nulls(array, name)
        return torch.from_numpy(array.to_numpy(zero_copy_only=False).copy())
    values = array.buffers()[1]
    if values is not None and values.is_mutable and len(array):
        return torch.from_dlpack(array)
    return torch.from_numpy(np.array(array.to_numpy(zero_copy_only=False)))


def _vectors(array: pa.FixedSizeListArray, name: str) -> Any:
    """Return fixed-size lists of numbers as one tensor; NULL lists of floating-point numbers are NaN."""
    width, rows = array.type.list_size, len(array)
    first = array.offset * width
    flat = _column(array.values.slice(first, rows * width), array.type.value_field, name)
    if not isinstance(flat, torch.Tensor):
        if array.null_count:
            return array.to_pylist()
        return [flat[row * width : (row + 1) * width] for row in range(rows)]
    found = flat.reshape(rows, width, *flat.shape[1:])
    if array.null_count:
        if not found.is_floating_point():
            _refuse_nulls(array, name)
        is_null = torch.from_numpy(np.array(array.is_null().to_numpy(zero_copy_only=False)))
        found = found.clone()
        found[is_null] = float("nan")
    return found


def _is_bfloat16(field: pa.Field) -> bool:
    named = getattr(field.type, "extension_name", None) or (field.metadata or {}).get(
        _EXTENSION_NAME, b""
    )
    return named in (_BFLOAT16, _BFLOAT16.encode())


def _bfloat16(array: pa.Array, name: str) -> torch.Tensor:
    """Return fixed-size binaries of two bytes as bfloat16."""
    storage = array.storage if isinstance(array, pa.ExtensionArray) else array
    _refuse_nulls(storage, name)
    values = storage.buffers()[1]
    if not len(storage) or values is None:
        return torch.empty(0, dtype=torch.bfloat16)
    numbers = np.frombuffer(values, np.int16, len(storage), storage.offset * 2).copy()
    return torch.from_numpy(numbers).view(torch.bfloat16)


def _refuse_nulls(array: pa.Array, name: str) -> None:
    if array.null_count:
        message = (
            f"column {name!r} ({array.type}) has {array.null_count} NULLs in this batch, which no tensor can hold; "
            f"filter them (\"{name} IS NOT NULL\"), fill them (columns={{{name!r}: 'coalesce({name}, 0)'}}), or give "
            "a to_tensor function of your own"
        )
        raise ArgumentError(message)
