"""Changes of the table's config, and of the metadata of the table, its schema and its fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pennon.core.units import FieldId
from pennon.errors import ArgumentError
from pennon.ops.columns.names import find_column
from pennon.schema.field import Schema
from pennon.table.operations import MapUpdate, UpdateConfig


def map_update(values: Mapping[Any, Any], *, replace: bool = False) -> MapUpdate:
    """Return the changes of a map; None takes a key away.

    Raises TypeError for keys or values that are not text.
    """
    for key, value in values.items():
        if not isinstance(key, str) or not (value is None or isinstance(value, str)):
            message = f"metadata is text, but there is {key!r}: {value!r}"
            raise TypeError(message)
    return MapUpdate(dict(values), replace)


def field_updates(
    schema: Schema, values: Mapping[str, Mapping[str, str | None]], *, replace: bool = False
) -> UpdateConfig:
    """Return the changes of the metadata of fields, which are named by their paths.

    Raises NotFoundError for a field that is not there, ArgumentError for one that is named twice.
    """
    updates: dict[FieldId, MapUpdate] = {}
    for path, entries in values.items():
        field = find_column(schema, path)[-1]
        if field.id in updates:
            message = f"the field {path!r} is named twice"
            raise ArgumentError(message)
        updates[field.id] = map_update(entries, replace=replace)
    return UpdateConfig(fields=updates)
