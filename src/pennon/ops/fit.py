"""Fit data to a table: check columns and types, and cast.

The rules of an append, as measured on pylance 14.0.2 (format-facts 0, row 9):

* the order of columns is free, at every level of structs;
* a column that may be NULL may be missing, and reads as NULL;
* a column more than the table has is an error;
* types must be the same: int32 is not cast to int64, nor string to large_string;
* a column marked as never NULL takes data whose schema does not say so, as long as no NULL comes;
* a field below a NULL struct has no value, so a NULL there is allowed even if the field is never NULL;
* field and schema metadata do not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pennon.errors import Breadcrumb, SchemaMismatchError
from pennon.schema.blob import other_threshold
from pennon.schema.blob_arrays import as_storage, with_items
from pennon.schema.blob_parts import BLOB_PARTS
from pennon.schema.check import is_blob, is_blob_v2
from pennon.schema.field import Field, Schema
from pennon.schema.types import BLOB_V2, EXTENSION_NAME

_EXTENSION: Final = EXTENSION_NAME.encode()


def fit_schema(table: Schema, data: Schema, *, may_lack: bool = False) -> Schema:
    """Return the schema of a data file that holds ``data`` in ``table``: with the table's ids.

    Top-level fields stay in the order of the data.  Raises SchemaMismatchError, which names every
    difference; ``may_lack``: that top-level columns are missing is none.
    """
    names = {field.name for field in data.fields}
    wanted = [field for field in table.fields if not may_lack or field.name in names]
    wrong = list(_differences(tuple(wanted), data.fields, ""))
    if wrong:
        listed = "; ".join(wrong)
        known = ", ".join(f"{f.name}: {f.logical_type}" for f in table.fields)
        message = f"the data does not fit the table: {listed}.  The table's columns are {known}"
        raise SchemaMismatchError(message)
    by_name = {field.name: field for field in table.fields}
    fields = tuple(_fit(by_name[field.name], field) for field in data.fields)
    return Schema(fields, table.metadata)


def _differences(table: tuple[Field, ...], data: tuple[Field, ...], prefix: str) -> Iterator[str]:
    wanted = {field.name: field for field in table}
    given = {field.name: field for field in data}
    for name in given.keys() - wanted.keys():
        yield f"unexpected column {prefix + name!r}"
    for name, field in wanted.items():
        if name in given:
            yield from _difference(field, given[name], prefix + name)
        elif not field.nullable:
            yield f"missing column {prefix + name!r}, which is never NULL"


def _difference(table: Field, data: Field, path: str) -> Iterator[str]:
    if table.metadata and is_blob_v2(table):
        yield from _blob_difference(table, data, path)
    elif _kind(table) != _kind(data):
        yield f"column {path!r} is {table.logical_type}, not {data.logical_type}"
    elif table.logical_type == "struct":
        yield from _differences(table.children, data.children, f"{path}.")
    else:
        for mine, theirs in zip(table.children, data.children, strict=True):
            yield from _difference(mine, theirs, f"{path}.{mine.name}")


def _kind(field: Field) -> str:
    """Return the logical type; lists of structs as lists, for pylance says either of blobs in lists."""
    return field.logical_type.removesuffix(".struct")


def _blob_difference(table: Field, data: Field, path: str) -> Iterator[str]:
    """Yield what keeps data from being blobs of a column; it may have fewer parts, or bytes of version 1."""
    parts = tuple((child.name, child.logical_type) for child in data.children)
    is_bytes = data.logical_type == "large_binary" and is_blob(data)
    if not is_bytes and parts not in {BLOB_PARTS[:2], BLOB_PARTS}:
        yield f"column {path!r} has blobs (`pennon.blob_field`), not {data.logical_type}"
        return
    other = other_threshold(table, data)
    if other is not None:
        yield f"of column {path!r}, {other}"


def _fit(table: Field, data: Field) -> Field:
    """Return the table's field without the children that the data lacks."""
    if table.metadata and is_blob_v2(table):
        return table
    if table.logical_type == "struct":
        given = {child.name: child for child in data.children}
        kept = [_fit(child, given[child.name]) for child in table.children if child.name in given]
    else:
        pairs = zip(table.children, data.children, strict=True)
        kept = [_fit(mine, theirs) for mine, theirs in pairs]
    return replace(table, children=tuple(kept))


def fit_batch(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    """Return the batch with exactly the fields of ``target``, which are those it has by name.

    Raises SchemaMismatchError for a NULL in a field that is never NULL.
    """
    arrays, schema = [], batch.schema
    for field in target:
        position = schema.get_field_index(field.name)
        arrays.append(_fit_array(batch.column(position), field, field.name))
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def count_missing(array: pa.Array[Any], inside: pa.BooleanArray | None = None) -> int:
    """Return the number of NULLs in an array, without those of rows where a struct around it is NULL.

    ``inside`` is true where all structs around the array are there; None means everywhere.
    """
    if inside is None or not array.null_count:
        return int(array.null_count)
    missing: Any = pc.and_(array.is_null(), inside)
    return int(missing.true_count)


def _fit_array(
    array: pa.Array[Any], field: pa.Field[Any], path: str, inside: pa.BooleanArray | None = None
) -> pa.Array[Any]:
    """Return an array as ``field`` has it; ``inside`` as in `count_missing`."""
    missing = 0 if field.nullable else count_missing(array, inside)
    if missing:
        message = f"column {path!r} is never NULL, but the data has {missing} NULLs in it"
        raise SchemaMismatchError(message, where=Breadcrumb(column=path))
    if field.metadata and field.metadata.get(_EXTENSION) == BLOB_V2:
        return as_storage(array, path)
    if isinstance(array, pa.StructArray) and pa.types.is_struct(field.type):
        return _fit_struct(array, field, path, inside)
    if array.type == field.type:
        return array
    if isinstance(array, pa.ListArray | pa.LargeListArray) and _has_blobs(field):
        item = field.type.value_field
        return with_items(array, _fit_array(array.flatten(), item, f"{path}.{item.name}"))
    if isinstance(field.type, pa.BaseExtensionType):
        return _fit_extension(array, field)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array.cast(field.type)


def _has_blobs(field: pa.Field[Any]) -> bool:
    """Tell whether a field to be written is a list of blobs, or of structs with blobs in them."""
    kind = field.type
    if field.metadata and field.metadata.get(_EXTENSION) == BLOB_V2:
        return True
    return pa.types.is_nested(kind) and any(
        _has_blobs(kind.field(number)) for number in range(kind.num_fields)
    )


def _fit_struct(
    array: pa.StructArray, field: pa.Field[Any], path: str, around: pa.BooleanArray | None
) -> pa.Array[Any]:
    """Return a struct array with the children of ``field``, in that order."""
    names = {child.name: at for at, child in enumerate(array.type)}
    if array.type == field.type and all(child.nullable for child in field.type):
        return array
    inside = _also_valid(array, around)
    children = [
        _fit_array(array.field(names[child.name]), child, f"{path}.{child.name}", inside)
        for child in field.type
    ]
    if not children:
        return array
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(field.type), mask=mask)


def _also_valid(array: pa.StructArray, around: pa.BooleanArray | None) -> pa.BooleanArray | None:
    """Return where a struct and all structs around it are there; None means everywhere."""
    if not array.null_count:
        return around
    valid = array.is_valid()
    return valid if around is None else pc.and_(valid, around)


def _fit_extension(array: pa.Array[Any], field: pa.Field[Any]) -> pa.Array[Any]:
    storage = array.storage if isinstance(array, pa.ExtensionArray) else array
    wrapped: pa.Array[Any] = field.type.wrap_array(storage.cast(field.type.storage_type))
    return wrapped
