"""Arrays of a batch against the fields of a file: what fits, and as which type it is stored."""

from __future__ import annotations

import pyarrow as pa

from pennon.encoding.jsonb import json_stored
from pennon.errors import ArgumentError, Breadcrumb, UnsupportedError
from pennon.schema.field import Field
from pennon.schema.types import logical_type

_VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


def check_array(array: pa.Array, field: Field, path: str) -> pa.Array:
    """Return an array as it is stored: extension types and string views unwrapped.

    Raises ArgumentError if its type is not that of the field, or it has NULLs that the field
    forbids.
    """
    if field.logical_type == "json":
        message = (
            f"column {path!r} is JSON, which Pennon cannot write yet; large_binary or string can"
        )
        raise UnsupportedError(message, where=Breadcrumb(column=path))
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if array.type in _VIEWS:
        array = array.cast(_VIEWS[array.type])
    if field.logical_type == "json" and (
        pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
    ):
        array = json_stored(array)
    stored_as = "large_binary" if field.logical_type == "json" else field.logical_type
    if logical_type(array.type) != stored_as:
        message = f"column {path!r} is {field.logical_type}, but the batch has {array.type}"
        raise ArgumentError(message, where=Breadcrumb(column=path))
    if array.null_count and not field.nullable:
        message = f"column {path!r} is not nullable, but the batch has {array.null_count} NULL(s)"
        raise ArgumentError(message, where=Breadcrumb(column=path))
    return array


def child_array(array: pa.StructArray, name: str, path: str) -> pa.Array:
    """Return one field of a struct array; raises ArgumentError if it is missing."""
    number = array.type.get_field_index(name)
    if number < 0:
        have = ", ".join(field.name for field in array.type)
        message = f"column {path!r} has no field {name!r} in the batch; it has {have}"
        raise ArgumentError(message, where=Breadcrumb(column=path))
    return array.field(number)


def batch_column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return one column of a batch; raises ArgumentError if it is missing."""
    number = batch.schema.get_field_index(name)
    if number < 0:
        message = f"the batch has no column {name!r}; it has {', '.join(batch.schema.names)}"
        raise ArgumentError(message, where=Breadcrumb(column=name))
    return batch.column(number)
