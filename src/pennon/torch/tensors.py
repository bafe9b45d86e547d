"""Arrow arrays as PyTorch tensors, without a copy where that is safe."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as pat
import torch

from pennon.core.numpy_types import numpy_dtype
from pennon.errors import ArgumentError

Values: TypeAlias = Any
"""A tensor whose first dimension counts the rows, a list with an entry for each row, or a dict of these for a struct."""

_BFLOAT16: Final = "lance.bfloat16"


def to_tensors(batch: pa.RecordBatch) -> dict[str, Values]:
    """Return the columns of a batch, by name.

    - Numbers and booleans: a tensor ``[rows]``.  Dates, times and durations: a tensor of the numbers stored.
    - Fixed-size lists of numbers and Arrow's fixed-shape tensors: a tensor ``[rows, *shape]``.
    - Text, binary and blobs: a list of ``str`` or ``bytes``.  Lists of numbers: a list of tensors.
    - Structs: a dict.  Any other type: a list of Python values.

    NULL becomes NaN in a tensor of floats, and None in a list.  Raises ArgumentError for NULLs of other tensors.

    >>> batch = pa.record_batch({"x": [1.0, None], "word": ["a", "b"]})
    >>> pennon.torch.to_tensors(batch)["word"]
    ['a', 'b']
    """
    names = batch.schema.names
    return {name: _values(batch.column(place), name) for place, name in enumerate(names)}


def _values(array: pa.Array[Any], name: str) -> Values:
    data_type = array.type
    if isinstance(data_type, pa.FixedShapeTensorType):
        return _shaped(array, name)
    if isinstance(data_type, pa.BaseExtensionType) and data_type.extension_name != _BFLOAT16:
        return _values(array.storage, name)
    if pat.is_dictionary(data_type):
        return _values(array.dictionary_decode(), name)
    if pat.is_struct(data_type):
        if array.null_count:
            return array.to_pylist()
        return {
            field.name: _values(part, f"{name}.{field.name}")
            for field, part in zip(data_type.fields, array.flatten(), strict=True)
        }
    if _is_fixed(data_type):
        return _fixed(array, name)
    if (pat.is_list(data_type) or pat.is_large_list(data_type)) and _is_fixed(data_type.value_type):
        return _lists(array, name)
    return array.to_pylist()


def _is_fixed(data_type: pa.DataType) -> bool:
    """Return whether all values have one shape: numbers, and fixed-size lists of numbers."""
    while pat.is_fixed_size_list(data_type):
        data_type = data_type.value_type
    return (
        pat.is_integer(data_type)
        or pat.is_floating(data_type)
        or pat.is_boolean(data_type)
        or (pat.is_temporal(data_type) and not pat.is_interval(data_type))
        or getattr(data_type, "extension_name", None) == _BFLOAT16
    )


def _fixed(array: pa.Array[Any], name: str) -> torch.Tensor:
    """Return numbers, or fixed-size lists of them, as one tensor."""
    shape = [len(array)]
    nulls: list[tuple[pa.Array[Any], int]] = []
    while pat.is_fixed_size_list(array.type):
        size = array.type.list_size
        if array.null_count:
            nulls.append((array, len(shape)))
        shape.append(size)
        array = array.values.slice(array.offset * size, len(array) * size)
    flat = _numbers(array, name)
    tensor = flat.reshape(shape)
    for outer, dimensions in nulls:
        _check_nullable(tensor, name)
        tensor = tensor.clone()
        absent = np.array(outer.is_null(), copy=True)
        tensor[torch.from_numpy(absent).reshape(shape[:dimensions])] = float("nan")
    return tensor


def _shaped(array: pa.Array[Any], name: str) -> torch.Tensor:
    """Return an array of fixed-shape tensors as one tensor; a permutation gives the logical order."""
    tensor = _fixed(array.storage, name).reshape(len(array), *array.type.shape)
    order = array.type.permutation
    return tensor if order is None else tensor.permute(0, *(place + 1 for place in order))


def _numbers(array: pa.Array[Any], name: str) -> torch.Tensor:
    """Return an array of numbers as a tensor."""
    is_bfloat16 = getattr(array.type, "extension_name", None) == _BFLOAT16
    if is_bfloat16:
        absent = array.is_null() if array.null_count else None
        array = array.storage
        bits = pa.Array.from_buffers(
            pa.int16(), len(array), [None, array.buffers()[1]], 0, array.offset
        )
        tensor = _shared(bits).view(torch.bfloat16)
    else:
        absent = array.is_null() if array.null_count else None
        is_boolean = pat.is_boolean(array.type)
        tensor = _shared(_as_numbers(array))
        tensor = tensor.view(torch.bool) if is_boolean else tensor
    if absent is not None:
        _check_nullable(tensor, name)
        tensor = tensor.clone()
        tensor[torch.from_numpy(np.array(absent, copy=True))] = float("nan")
    return tensor


def _as_numbers(array: pa.Array[Any]) -> pa.Array[Any]:
    """Return the numbers that stand for dates, times and durations, other arrays as they are; none is NULL."""
    if pat.is_boolean(array.type):
        array = array.fill_null(fill_value=False) if array.null_count else array
        return array.cast(pa.uint8())
    data_type = array.type
    if pat.is_temporal(data_type):
        data_type = pa.int32() if data_type.bit_width == 32 else pa.int64()
    if data_type == array.type and not array.null_count:
        return array
    return pa.Array.from_buffers(data_type, len(array), [None, array.buffers()[1]], 0, array.offset)


def _shared(array: pa.Array[Any]) -> torch.Tensor:
    """Return a tensor that shares the memory of an array, or has a copy of memory that must not be written to.

    Mapped files and views of immutable bytes are such memory: a tensor is always writable.
    """
    values = array.buffers()[1]
    if values is None or not len(array):
        return torch.from_dlpack(np.empty(len(array), numpy_dtype(array.type)))
    if not values.is_mutable:
        return torch.from_numpy(np.array(array.to_numpy(zero_copy_only=True), copy=True))
    return torch.from_dlpack(array)


def _lists(array: pa.Array[Any], name: str) -> list[torch.Tensor | None]:
    """Return a tensor for each list of numbers, None for NULL; all share one memory."""
    if array.null_count or array.values.null_count:
        return [None if row is None else _row(row, name) for row in array.to_pylist()]
    offsets = np.asarray(array.offsets)
    values = _fixed(array.values.slice(offsets[0], offsets[-1] - offsets[0]), name)
    return list(torch.split(values, np.diff(offsets).tolist()))


def _row(row: list[Any], name: str) -> torch.Tensor:
    if any(value is None for value in row):
        message = (
            f"a list of the column {name!r} holds NULL, which no tensor can; filter or replace it"
        )
        raise ArgumentError(message)
    return torch.tensor(row)


def _check_nullable(tensor: torch.Tensor, name: str) -> None:
    if not tensor.is_floating_point():
        message = (
            f"the column {name!r} holds NULL, which a tensor of {tensor.dtype} cannot; leave these rows out "
            f'(filter="{name} IS NOT NULL"), replace them (columns={{"{name}": "coalesce({name}, 0)"}}), or give '
            "to_tensors= a function of your own"
        )
        raise ArgumentError(message)
