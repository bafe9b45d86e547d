"""Columns by name: those that must be there, and those that must not be there yet."""

from __future__ import annotations

import pyarrow as pa

from pennon.errors import ArgumentError, InvalidSchemaError, NotFoundError, UnsupportedError
from pennon.ops.write import as_version_holds
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.check import check_writable, is_blob_v2
from pennon.schema.field import Field, Schema
from pennon.schema.project import resolve, sorted_paths
from pennon.schema.version import V0_1, FileVersion, check_is_written
from pennon.table.field_ids import highest_field_id
from pennon.table.manifest import Manifest
from pennon.table.storage_version import storage_version

_SHOWN = 30


def find_column(schema: Schema, path: str) -> tuple[Field, ...]:
    """Return the fields along a path; raises NotFoundError that lists the columns.

    Raises InvalidSchemaError for a part of a blob column, which is not a column.
    """
    try:
        found = resolve(schema, path)
    except ArgumentError:
        names = sorted_paths(schema)
        more = ", ..." if len(names) > _SHOWN else ""
        listed = ", ".join(names[:_SHOWN])
        message = f'Column "{path}" does not exist in the dataset; the columns are {listed}{more}'
        raise NotFoundError(message) from None
    if any(map(is_blob_v2, found[:-1])):
        message = f"{path!r} is a part of a blob column, which changes or goes as a whole"
        raise InvalidSchemaError(message)
    return found


def number_new_columns(manifest: Manifest, arrow: pa.Schema) -> Schema:
    """Return new columns with the ids that follow all that the table and its files have.

    Raises InvalidSchemaError for a name that no new column can have, UnsupportedError for fields of
    a struct that is there already, and for types that the table's file version does not hold.
    """
    for field in arrow:
        if field.name in manifest.schema.names:
            _refuse(manifest.schema, field)
    version, first = storage_version(manifest), highest_field_id(manifest) + 1
    new = schema_from_arrow(arrow, first)
    new = as_version_holds(new, version, first + sum(1 for _ in new.walk()))
    check_writable(new, version)
    return Schema(new.fields)


def _refuse(schema: Schema, field: pa.Field) -> None:
    here = next(top for top in schema.fields if top.name == field.name)
    if here.logical_type == "struct" and pa.types.is_struct(field.type):
        message = (
            f"column {field.name!r} is a struct already; a struct gets fields of NULLs alone, from "
            "file version 2.2 on: add_columns(pa.schema(...))"
        )
        raise UnsupportedError(message)
    message = f"Column {field.name} already exists in the dataset"
    raise InvalidSchemaError(message)


def check_written(new: Schema, version: FileVersion) -> None:
    """Raise UnsupportedError unless data files with these columns can be added to a table.

    A table of version 0.1 has one dictionary for all rows of a column, and it is written with them.
    """
    check_is_written(version)
    for field in new.walk():
        if version == V0_1 and field.logical_type.startswith("dict:"):
            message = (
                f"column {field.name!r} is a dictionary, which cannot be added to a table of file "
                "version 0.1; add plain values"
            )
            raise UnsupportedError(message)
