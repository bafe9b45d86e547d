"""Committing what was planned on columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pennon.ops.commit import commit_on
from pennon.scan.snapshot import Snapshot
from pennon.schema.field import Schema
from pennon.table.apply.ids import with_fresh_ids
from pennon.table.commit.options import LONG_AGO
from pennon.table.fields_wire import carry_over
from pennon.table.fragment import Fragment
from pennon.table.manifest import Manifest
from pennon.table.operations import Merge, Operation, Project, Update


def commit_operation(
    snapshot: Snapshot, operation: Operation, properties: Mapping[str, str] | None = None
) -> Manifest:
    """Commit an operation that was planned on a version; return the manifest of the new one."""
    return commit_on(snapshot, operation, properties=properties, planned_ns=LONG_AGO)


def commit_columns(
    snapshot: Snapshot,
    fragments: Iterable[Fragment],
    schema: Schema,
    properties: Mapping[str, str] | None = None,
) -> Manifest:
    """Give the table a new schema, and its fragments the data files of that."""
    keeps = _keeps_nullability(snapshot, schema)
    wire = carry_over(snapshot.manifest.fields_wire, schema)
    merge = Merge(tuple(fragments), schema, wire, preserves_nullability=keeps)
    return commit_operation(snapshot, merge, properties)


def commit_grown(
    snapshot: Snapshot,
    update: Update,
    fragments: Iterable[Fragment],
    schema: Schema,
    properties: Mapping[str, str],
    *,
    planned_ns: int,
) -> Manifest:
    """Give the table a new schema, and move rows as an update does, at once.

    ``fragments`` are those of the version, with the files of columns that were written anew.  An update says
    nothing of a schema, so this is a merge of columns, which brings all fragments; it follows no other writer's
    change of rows.
    """
    manifest = snapshot.manifest
    changed = {each.id: each for each in update.updated}
    gone = set(update.removed_ids)
    kept = (changed.get(each.id, each) for each in fragments if each.id not in gone)
    new = with_fresh_ids(update.new, manifest.last_fragment_id)
    merge = Merge(
        (*kept, *new),
        schema,
        carry_over(manifest.fields_wire, schema),
        preserves_nullability=_keeps_nullability(snapshot, schema),
    )
    return commit_on(snapshot, merge, properties=properties, planned_ns=planned_ns, keeps_rows=True)


def commit_schema(snapshot: Snapshot, schema: Schema) -> Manifest:
    """Give the table a new schema over the data files that it has."""
    keeps = _keeps_nullability(snapshot, schema)
    wire = carry_over(snapshot.manifest.fields_wire, schema)
    return commit_operation(snapshot, Project(schema, wire, preserves_nullability=keeps))


def _keeps_nullability(snapshot: Snapshot, schema: Schema) -> bool:
    """Tell whether no field is never NULL that was not so, or not there, before."""
    required = {field.id for field in snapshot.manifest.schema.walk() if not field.nullable}
    return all(field.nullable or field.id in required for field in schema.walk())
