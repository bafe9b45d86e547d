"""Arrays of a batch against the fields of a file: what fits, and as which type it is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import is_

import numpy as np
import pyarrow as pa

from pennon.encoding.arrow_buffers import with_validity
from pennon.encoding.jsonb import json_stored
from pennon.errors import ArgumentError, Breadcrumb, LanceError
from pennon.schema.check import is_packed
from pennon.schema.field import Field
from pennon.schema.types import logical_type

_VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
_TEXT = (pa.string(), pa.large_string())


def check_array(array: pa.Array, field: Field, path: str) -> pa.Array:
    """Return an array as it is stored: extensions and string views unwrapped, JSON as JSONB.

    Raises ArgumentError if its type is not that of the field, or it has NULLs that the field
    forbids.
    """
    stored = array.storage if isinstance(array, pa.ExtensionArray) else array
    if stored.type in _VIEWS:
        stored = stored.cast(_VIEWS[stored.type])
    expected = {field.logical_type}
    if field.logical_type in ("list", "large_list"):
        expected.add(f"{field.logical_type}.struct")  # pylance's lists of blobs: ledger F-451
    if field.logical_type == "json":
        expected.add("large_binary")
        stored = json_stored(stored) if stored.type in _TEXT else stored
    if expected.isdisjoint((_logical(array.type, path), _logical(stored.type, path))):
        message = f"column {path!r} is {field.logical_type}, but the batch has {array.type}"
        raise ArgumentError(message, where=Breadcrumb(column=path))
    if is_packed(field):
        stored = _check_packed(stored, field, path)
    if array.null_count and not field.nullable:
        message = f"column {path!r} is not nullable, but the batch has {array.null_count} NULL(s)"
        raise ArgumentError(message, where=Breadcrumb(column=path))
    return stored


def _logical(data_type: pa.DataType, path: str) -> str:
    try:
        return logical_type(data_type)
    except LanceError as error:
        raise error.located(Breadcrumb(column=path)) from None


def _check_packed(array: pa.StructArray, field: Field, path: str) -> pa.StructArray:
    """Return a packed struct with its fields as they are stored.

    Raises ArgumentError unless they are those of the schema, in their order.
    """
    want = [(child.name, child.logical_type) for child in field.children]
    have = [(child.name, _logical(child.type, path)) for child in array.type]
    if have != want:
        message = f"column {path!r} is packed as {want}, but the batch has {have}"
        raise ArgumentError(message, where=Breadcrumb(column=path))
    given = [
        without_hidden_json(array.field(number), child, array)
        for number, child in enumerate(field.children)
    ]
    stored = [
        check_array(part, replace(child, nullable=True), f"{path}.{child.name}")
        for part, child in zip(given, field.children, strict=True)
    ]
    if all(map(is_, given, stored)):
        return array
    parts = [pa.field(name, part.type) for (name, _), part in zip(want, stored, strict=True)]
    validity = array.is_valid().buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(pa.struct(parts), len(array), [validity], children=stored)


def child_array(array: pa.StructArray, name: str, path: str) -> pa.Array:
    """Return one field of a struct array; raises ArgumentError if it is missing."""
    number = array.type.get_field_index(name)
    if number < 0:
        have = ", ".join(field.name for field in array.type)
        message = f"column {path!r} has no field {name!r} in the batch; it has {have}"
        raise ArgumentError(message, where=Breadcrumb(column=path))
    return array.field(number)


def without_hidden_json(part: pa.Array, field: Field, around: pa.Array) -> pa.Array:
    """Return what is in ``around``: with JSON that is NULL where a struct or fixed-size list is.

    Under a NULL, Arrow may have any text, which need not be JSON.
    """
    has_lists = not (pa.types.is_struct(around.type) or pa.types.is_fixed_size_list(around.type))
    if has_lists or around.null_count == 0 or not _holds_json(field):
        return part
    shown = around.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_fixed_size_list(around.type):
        size, rows = around.type.list_size, shown
        shown = np.ones(len(part), bool)
        shown[around.offset * size :][: len(rows) * size] = np.repeat(rows, size)
    return with_validity(part, shown & part.is_valid().to_numpy(zero_copy_only=False))


def _holds_json(field: Field) -> bool:
    """Tell whether a field is JSON, or has some below that no lists are around."""
    if field.logical_type == "struct" or field.logical_type.startswith("fixed_size_list:struct:"):
        return any(map(_holds_json, field.children))
    return field.logical_type == "json"


def batch_columns(batch: pa.RecordBatch, fields: Sequence[Field]) -> list[pa.Array]:
    """Return the columns of some fields in a batch; raises ArgumentError if one is missing."""
    schema, names = batch.schema, [field.name for field in fields]
    if schema.names == names:
        return list(batch.columns)
    numbers = [schema.get_field_index(name) for name in names]
    if -1 in numbers:
        name = names[numbers.index(-1)]
        message = f"the batch has no column {name!r}; it has {', '.join(schema.names)}"
        raise ArgumentError(message, where=Breadcrumb(column=name))
    return [batch.column(number) for number in numbers]
