"""pyarrow's cast, with bfloat16."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pennon.arrow.bfloat16 import BFloat16Type, array_of, bits_of, bits_of_array, floats_of
from pennon.errors import ArgumentError


def cast(
    arr: pa.Array[Any], target_type: pa.DataType | str, *args: Any, **kwargs: Any
) -> pa.Array[Any]:
    """Cast an array to another type: as `pyarrow.compute.cast`, and from and to bfloat16.

    ``target_type``: a type of pyarrow, or its name; ``"bfloat16"`` and ``"bf16"`` are known, too.  Lists of a
    fixed size are cast to lists of that size.  Other arguments are those of pyarrow's cast.
    Raises ArgumentError if bfloat16 is cast from or to a type that is no float, or the size of lists differs.

    >>> import pyarrow as pa
    >>> from pennon.arrow import cast
    >>> cast(pa.array([1.1]), "bfloat16").to_pylist()
    [1.1015625]
    """
    if isinstance(target_type, BFloat16Type) or target_type in ("bfloat16", "bf16"):
        return _to_bfloat16(arr)
    if isinstance(arr.type, BFloat16Type):
        return _from_bfloat16(arr, target_type)
    if _are_fixed_size_lists(arr.type, target_type):
        return _cast_lists(arr, target_type, *args, **kwargs)
    return pc.cast(arr, target_type, *args, **kwargs)


def _to_bfloat16(arr: pa.Array[Any]) -> pa.Array[Any]:
    if isinstance(arr.type, BFloat16Type):
        return arr
    if not pa.types.is_floating(arr.type):
        message = f"only arrays of floats can be cast to bfloat16, got {arr.type}"
        raise ArgumentError(message)
    missing = arr.is_null().to_numpy(zero_copy_only=False)
    return array_of(bits_of(arr.to_numpy(zero_copy_only=False)), missing)


def _from_bfloat16(arr: pa.Array[Any], target_type: pa.DataType | str) -> pa.Array[Any]:
    target = pa.type_for_alias(target_type) if isinstance(target_type, str) else target_type
    if not pa.types.is_floating(target):
        message = f"bfloat16 can be cast to floats only, not to {target}"
        raise ArgumentError(message)
    missing = arr.is_null().to_numpy(zero_copy_only=False)
    return pc.cast(pa.array(floats_of(bits_of_array(arr)), mask=missing), target)


def _are_fixed_size_lists(source: pa.DataType, target: pa.DataType | str) -> bool:
    return (
        isinstance(target, pa.DataType)
        and pa.types.is_fixed_size_list(source)
        and pa.types.is_fixed_size_list(target)
    )


def _cast_lists(arr: Any, target: Any, *args: Any, **kwargs: Any) -> pa.Array[Any]:
    size = target.list_size
    if arr.type.list_size != size:
        message = f"lists of {arr.type.list_size} values cannot be cast to lists of {size}"
        raise ArgumentError(message)
    values = arr.values.slice(arr.offset * size, len(arr) * size)
    made = cast(values, target.value_type, *args, **kwargs)
    mask = arr.is_null() if arr.null_count else None
    return pa.FixedSizeListArray.from_arrays(made, type=target, mask=mask)
