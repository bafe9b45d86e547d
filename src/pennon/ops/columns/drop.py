"""Taking columns out of the schema; the data files keep them until rows are rewritten."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pennon.core.units import FieldId
from pennon.errors import InvalidSchemaError
from pennon.ops.columns.commits import commit_schema
from pennon.ops.columns.names import find_column
from pennon.scan.snapshot import Snapshot
from pennon.schema.field import Field, Schema
from pennon.table.manifest import Manifest


def without_columns(schema: Schema, paths: Iterable[str]) -> Schema:
    """Return the schema without the columns, or fields inside them, at these paths.

    A struct or list that loses all that is in it goes, too.  Raises NotFoundError for a column that
    is not there, InvalidSchemaError if none is left.
    """
    gone = frozenset(find_column(schema, path)[-1].id for path in paths)
    fields = tuple(kept for top in schema.fields if (kept := _without(top, gone)) is not None)
    if not fields:
        message = "Cannot drop all columns from a dataset"
        raise InvalidSchemaError(message)
    return replace(schema, fields=fields)


def _without(field: Field, gone: frozenset[FieldId]) -> Field | None:
    if field.id in gone:
        return None
    kept = [_without(child, gone) for child in field.children]
    children = tuple(child for child in kept if child is not None)
    if field.children and not children:
        return None
    return field if children == field.children else replace(field, children=children)


def drop_columns(snapshot: Snapshot, paths: Iterable[str]) -> Manifest:
    """Drop columns, and commit."""
    return commit_schema(snapshot, without_columns(snapshot.manifest.schema, paths))
