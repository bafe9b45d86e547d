"""Changing the table's config, and the metadata of the table, its schema and its fields.

Of all values None takes a key away; ``replace``: nothing else stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pennon.core.units import FieldId
from pennon.errors import ArgumentError
from pennon.ops.columns.names import find_column
from pennon.ops.commit import commit_on
from pennon.scan.snapshot import Snapshot
from pennon.table.commit.options import LONG_AGO
from pennon.table.manifest import Manifest
from pennon.table.operations import MapUpdate, UpdateConfig


def _map_update(values: Mapping[Any, Any], *, replace: bool) -> MapUpdate:
    """Return the changes of a map.  Raises TypeError for keys or values that are not text."""
    for key, value in values.items():
        if not isinstance(key, str) or not (value is None or isinstance(value, str)):
            message = f"metadata is text, but there is {key!r}: {value!r}"
            raise TypeError(message)
    return MapUpdate(dict(values), replace)


def update_table_metadata(
    snapshot: Snapshot, values: Mapping[str, str | None], *, replace: bool = False
) -> Manifest:
    """Change the table's own metadata; return the version made."""
    return _commit(snapshot, UpdateConfig(table_metadata=_map_update(values, replace=replace)))


def update_config(
    snapshot: Snapshot, values: Mapping[str, str | None], *, replace: bool = False
) -> Manifest:
    """Change the table's config; return the version made."""
    return _commit(snapshot, UpdateConfig(config=_map_update(values, replace=replace)))


def update_schema_metadata(
    snapshot: Snapshot, values: Mapping[str, str | None], *, replace: bool = False
) -> Manifest:
    """Change the schema's metadata; return the version made."""
    return _commit(snapshot, UpdateConfig(schema_metadata=_map_update(values, replace=replace)))


def update_field_metadata(
    snapshot: Snapshot, values: Mapping[str, Mapping[str, str | None]], *, replace: bool = False
) -> Manifest:
    """Change the metadata of fields, which are named by their paths; return the version made.

    Raises NotFoundError for a field that is not there, ArgumentError for one that is named twice.
    """
    updates: dict[FieldId, MapUpdate] = {}
    for path, entries in values.items():
        field = find_column(snapshot.manifest.schema, path)[-1]
        if field.id in updates:
            message = f"the field {path!r} is named twice"
            raise ArgumentError(message)
        updates[field.id] = _map_update(entries, replace=replace)
    return _commit(snapshot, UpdateConfig(fields=updates))


def _commit(snapshot: Snapshot, operation: UpdateConfig) -> Manifest:
    return commit_on(snapshot, operation, planned_ns=LONG_AGO)
