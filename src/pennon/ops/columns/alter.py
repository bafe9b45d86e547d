"""Changing columns that are there: their names, whether they may be NULL, their types; dropping them.

Names and nullability are the schema's alone.  A column of another type is written anew, as a field
with a new id; the old data files stay.

A cast inside a struct or list writes the whole top-level column again, for not all readers put its
parts together from several files.  The fields that keep their ids are then dead in the older files,
where -2 stands for them.  The data files keep columns that are dropped until rows are rewritten.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from pennon.core.units import FieldId
from pennon.errors import Breadcrumb, InvalidSchemaError, UnsupportedError
from pennon.ops.columns.alterations import Alteration, alter_schema, with_ascending_ids
from pennon.ops.columns.casts import cast_column
from pennon.ops.columns.column_file import ColumnFiles
from pennon.ops.columns.commits import commit_columns, commit_schema
from pennon.ops.columns.names import check_written, find_column
from pennon.ops.columns.nulls import check_no_nulls
from pennon.ops.columns.task import ColumnsTask, Place, rows_at_once
from pennon.ops.run_tasks import run_tasks
from pennon.scan.projection import Projection, plan_scan_projection
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import field_to_arrow
from pennon.schema.check import check_writable, is_packed
from pennon.schema.field import Field, Schema
from pennon.schema.maps import check_maps
from pennon.schema.version import V0_1
from pennon.table.field_ids import highest_field_id, in_newest_file
from pennon.table.fragment import Fragment
from pennon.table.fragment_wire import parse_fragment_bytes, serialize_fragment_bytes
from pennon.table.manifest import Manifest
from pennon.table.storage_version import storage_version


@dataclass(frozen=True, slots=True)
class CastColumns:
    """Top-level columns as other types; the n-th input becomes the n-th of ``fields``."""

    inputs: Projection
    fields: tuple[Field, ...]
    in_order: bool = field(default=False, init=False)

    def make(self, batch: pa.RecordBatch, _: Place) -> pa.RecordBatch:
        """Cast all columns; raises SchemaMismatchError for a value that does not fit."""
        shown = [field_to_arrow(each) for each in self.fields]
        pairs = zip(batch.columns, batch.schema.names, shown, strict=True)
        columns = [cast_column(array, new.type, name) for array, name, new in pairs]
        return pa.RecordBatch.from_arrays(columns, names=[each.name for each in shown])


@dataclass(frozen=True, slots=True)
class AlterTask:
    """Writes columns of other types for each fragment, and marks what is dead in older files."""

    to_bytes = staticmethod(serialize_fragment_bytes)
    from_bytes = staticmethod(parse_fragment_bytes)

    columns: ColumnsTask
    schema: Schema

    @property
    def count(self) -> int:
        """Return how many fragments there are."""
        return self.columns.count

    def run(self, number: int) -> Fragment:
        """Return the fragment of that number with its new file, and without files of no use."""
        known = frozenset(each.id for each in self.schema.walk())
        return in_newest_file(self.columns.run(number), known)


@dataclass(frozen=True, slots=True)
class AlterPlan:
    """Alterations of a version: the schema after them, and the task, None if nothing is cast."""

    snapshot: Snapshot
    schema: Schema
    task: AlterTask | None


def plan_alter(snapshot: Snapshot, alterations: Sequence[Alteration]) -> AlterPlan:
    """Plan alterations.

    Raises NotFoundError for a column, InvalidSchemaError for names, and for a column that is to be
    never NULL but has a NULL, InvalidSchemaError or UnsupportedError for types.
    """
    manifest = snapshot.manifest
    last_id = highest_field_id(manifest)
    altered = alter_schema(manifest.schema, alterations, last_id)
    if storage_version(manifest) == V0_1:
        altered = with_ascending_ids(manifest.schema, altered, last_id)
    for path in altered.tightened:
        check_no_nulls(snapshot, path)
    task = _plan_casts(snapshot, altered.schema, altered.cast) if altered.cast else None
    return AlterPlan(snapshot, altered.schema, task)


def _plan_casts(
    snapshot: Snapshot, schema: Schema, casts: Iterable[tuple[Field, Field]]
) -> AlterTask:
    version = storage_version(snapshot.manifest)
    pairs = list(casts)
    inputs = plan_scan_projection(Schema(tuple(old for old, _ in pairs)), None)
    new = Schema(tuple(new for _, new in pairs))
    check_written(new, version)
    check_writable(new, version)
    files = ColumnFiles.of(snapshot, new, version)
    return AlterTask(
        ColumnsTask(snapshot, files, CastColumns(inputs, new.fields), rows_at_once(inputs.arrow)),
        schema,
    )


def alter_columns(plan: AlterPlan) -> Manifest:
    """Write the columns whose types change, and commit."""
    if plan.task is None:
        return commit_schema(plan.snapshot, plan.schema)
    fragments = run_tasks(
        plan.task, plan.task.count, what="Casting columns", threads=plan.task.columns.threads
    )
    return commit_columns(plan.snapshot, fragments, plan.schema)


# Dropping


def without_columns(schema: Schema, paths: Iterable[str]) -> Schema:
    """Return the schema without the columns, or fields inside them, at these paths.

    A struct or list that loses all that is in it goes, too.  Raises NotFoundError for a column that
    is not there, InvalidSchemaError if none is left, or a map has no key or no value any more,
    UnsupportedError for a part of a packed struct.
    """
    gone = frozenset(find_column(schema, path)[-1].id for path in paths)
    fields = tuple(kept for top in schema.fields if (kept := _field_without(top, gone)) is not None)
    if not fields:
        message = "Cannot drop all columns from a dataset"
        raise InvalidSchemaError(message)
    left = replace(schema, fields=fields)
    check_maps(left)
    return left


def _field_without(field: Field, gone: frozenset[FieldId]) -> Field | None:
    if field.id in gone:
        return None
    kept = [_field_without(child, gone) for child in field.children]
    children = tuple(child for child in kept if child is not None)
    if field.children and not children:
        return None
    if children == field.children:
        return field
    if is_packed(field) and len(children) < len(field.children):
        message = (
            f"column {field.name!r} is a packed struct, whose fields lie in one value: no reader finds "
            "the others without it; drop all of it"
        )
        raise UnsupportedError(message, where=Breadcrumb(column=field.name))
    return replace(field, children=children)


def drop_columns(snapshot: Snapshot, paths: Iterable[str]) -> Manifest:
    """Drop columns, and commit."""
    return commit_schema(snapshot, without_columns(snapshot.manifest.schema, paths))
