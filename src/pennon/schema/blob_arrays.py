"""Arrays of blob columns of version 2, wherever they stand in a column: found, checked, replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.errors import Breadcrumb, SchemaMismatchError
from pennon.schema.arrow import arrow_metadata, schema_to_arrow, storage_field
from pennon.schema.blob import has_blobs_v2, holds_blobs_v2, whole_v2, with_blobs_v2
from pennon.schema.blob_parts import STORAGE
from pennon.schema.check import is_blob_v2
from pennon.schema.field import Field, Schema

RowNumbers: TypeAlias = npt.NDArray[np.int64]
Change: TypeAlias = Callable[[Any, Field, RowNumbers], Any]
"""Takes the array of a blob column, the column, and the number of the row that each value is in."""


def written_schema(schema: Schema) -> pa.Schema:
    """Return the Arrow schema of rows to be written: of a table's rows, with blobs as `STORAGE`."""
    if not has_blobs_v2(schema):
        return schema_to_arrow(schema)
    fields = [storage_field(with_blobs_v2(field, whole_v2)) for field in schema.fields]
    return pa.schema(fields, metadata=arrow_metadata(schema.metadata))


def as_storage(array: pa.Array[Any], path: str) -> pa.StructArray:
    """Return what a caller gave for a blob column as `STORAGE`: blobs of any form, or large binaries.

    Raises SchemaMismatchError for all else.
    """
    stored = array.storage if isinstance(array, pa.ExtensionArray) else array
    if stored.type.equals(STORAGE):
        return stored
    rows = len(stored)
    if pa.types.is_large_binary(stored.type) or pa.types.is_null(stored.type):
        given = {"data": stored.cast(pa.large_binary())}
    elif isinstance(stored, pa.StructArray):
        given = {part.name: stored.field(number) for number, part in enumerate(stored.type)}
    else:
        given = {}
    if "data" not in given or given.keys() - {part.name for part in STORAGE}:
        message = f"column {path!r} has blobs, which {array.type} cannot be"
        raise SchemaMismatchError(message, where=Breadcrumb(column=path))
    parts = [
        given[part.name].cast(part.type) if part.name in given else pa.nulls(rows, part.type)
        for part in STORAGE
    ]
    mask = stored.is_null() if stored.null_count else None
    return pa.StructArray.from_arrays(parts, fields=list(STORAGE), mask=mask)


def change_blobs(array: Any, field: Field, change: Change, rows: RowNumbers | None = None) -> Any:
    """Return a column with all arrays of blobs in it changed.

    Below structs, what these hide is NULL; below lists it is gone.
    """
    if not holds_blobs_v2(field):
        return array
    rows = np.arange(len(array), dtype=np.int64) if rows is None else rows
    if is_blob_v2(field):
        return change(array, field, rows)
    if isinstance(array, pa.ListArray | pa.LargeListArray):
        items = change_blobs(
            array.flatten(), field.children[0], change, np.repeat(rows, list_lengths(array))
        )
        return with_items(array, items)
    parts = zip(array.flatten(), field.children, strict=True)
    children = [change_blobs(part, child, change, rows) for part, child in parts]
    fields = [part.with_type(child.type) for part, child in zip(array.type, children, strict=True)]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def list_lengths(array: pa.ListArray | pa.LargeListArray) -> RowNumbers:
    """Return how many items each list has; none if it is NULL."""
    lengths: RowNumbers = np.diff(array.offsets.to_numpy()).astype(np.int64)
    if array.null_count:
        lengths[array.is_null().to_numpy(zero_copy_only=False)] = 0
    return lengths


def with_items(array: pa.ListArray | pa.LargeListArray, items: pa.Array[Any]) -> pa.Array[Any]:
    """Return the same lists with other items, as many as `flatten` gave."""
    is_large = pa.types.is_large_list(array.type)
    offsets = np.zeros(len(array) + 1, np.int64 if is_large else np.int32)
    np.cumsum(list_lengths(array), out=offsets[1:])
    item = array.type.value_field.with_type(items.type)
    kind = pa.large_list(item) if is_large else pa.list_(item)
    validity = array.is_valid().buffers()[1] if array.null_count else None
    buffers = [validity, pa.py_buffer(offsets)]
    made: pa.Array[Any] = pa.Array.from_buffers(kind, len(array), buffers, children=[items])
    return made


def change_batch(batch: pa.RecordBatch, schema: Schema, change: Change) -> pa.RecordBatch:
    """Return a batch with all arrays of blobs changed; ``schema`` has its columns, by their names."""
    fields = {field.name: field for field in schema.fields}
    arrays, shown = [], []
    for array, mine in zip(batch.columns, batch.schema, strict=True):
        field = fields.get(mine.name)
        changed = array if field is None else change_blobs(array, field, change)
        arrays.append(changed)
        shown.append(mine if changed is array else pa.field(mine.name, changed.type, mine.nullable))
    made: pa.RecordBatch = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(shown))
    return made
