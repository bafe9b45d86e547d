"""Values of a column as another type.

A column may become wider or narrower, but not something else: whole numbers stay whole numbers, text
stays text.  A column of NULLs without a type may become anything.  A value that the new type does not hold is an
error, and nothing is changed.

Source: ``is_upcast_downcast`` of the reference; measured on pylance 14.0.2.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from pennon.errors import Breadcrumb, SchemaMismatchError

_KINDS: Final = (
    t.is_integer,
    t.is_floating,
    t.is_temporal,
    t.is_boolean,
    lambda kind: t.is_string(kind) or t.is_large_string(kind),
    lambda kind: t.is_binary(kind) or t.is_large_binary(kind),
    t.is_decimal,
)


def can_cast(old: pa.DataType, new: pa.DataType) -> bool:
    """Tell whether values of a type may become values of another."""
    if old == new or t.is_null(old):
        return True
    if t.is_dictionary(old):
        return can_cast(old.value_type, new.value_type if t.is_dictionary(new) else new)
    if _is_list(old):
        same = not (t.is_fixed_size_list(old) and t.is_fixed_size_list(new))
        fits = _is_list(new) and (same or old.list_size == new.list_size)
        return fits and can_cast(old.value_type, new.value_type)
    return any(kind(old) and kind(new) for kind in _KINDS)


def _is_list(kind: pa.DataType) -> bool:
    return bool(t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind))


def cast_column(array: pa.Array[Any], new: pa.DataType, name: str) -> pa.Array[Any]:
    """Return the values as another type, whose structs may have other names for the same fields.

    Raises SchemaMismatchError for a value that the type does not hold.
    """
    try:
        return _cast(array, new)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        message = f"Can't cast the values to type {new}: {error}"
        raise SchemaMismatchError(message, where=Breadcrumb(column=name)) from error


def _cast(array: Any, new: pa.DataType) -> pa.Array[Any]:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if isinstance(new, pa.BaseExtensionType):
        return new.wrap_array(_cast(array, new.storage_type))
    if array.type == new:
        return array
    if t.is_null(array.type):
        return pa.nulls(len(array), new)
    if t.is_struct(new):
        children = [_cast(array.field(n), child.type) for n, child in enumerate(new)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(new), mask=mask)
    if array.type.id == new.id and (t.is_list(new) or t.is_large_list(new)):
        items = _cast(array.values, new.value_type)
        buffers = array.buffers()[:2]
        return pa.Array.from_buffers(
            new, len(array), buffers, array.null_count, array.offset, children=[items]
        )
    options = pc.CastOptions(new, allow_time_truncate=True)
    found: pa.Array[Any] = pc.cast(array, options=options)
    return found
