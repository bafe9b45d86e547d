"""Add columns: write new data files; existing files are unchanged.

The *plan* gives the new fields their ids and says what they are made of; the *task* writes one data
file for each fragment; the *commit* makes the table's schema longer by the new columns.  A column
of NULLs needs no file: a field that lies in no file reads as NULLs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count, repeat

import pyarrow as pa

from pennon.core.units import FieldId
from pennon.errors import Breadcrumb, InvalidSchemaError, UnsupportedError
from pennon.ops.columns.column_file import ColumnFiles
from pennon.ops.columns.column_sources import SqlColumns
from pennon.ops.columns.commits import commit_columns
from pennon.ops.columns.names import check_written, number_new_columns
from pennon.ops.columns.task import ColumnsTask, Maker, rows_at_once
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.check import check_writable, is_packed
from pennon.schema.field import UNASSIGNED, Field, Schema
from pennon.schema.version import V0_1, Ability
from pennon.table.field_ids import highest_field_id
from pennon.table.fragment import Fragment
from pennon.table.manifest import Manifest
from pennon.table.storage_version import storage_version


@dataclass(frozen=True, slots=True)
class AddPlan:
    """New columns for a version: the schema that the table gets, and the task that writes them.

    ``task`` is None where nothing is to be written.
    """

    snapshot: Snapshot
    schema: Schema
    task: ColumnsTask | None

    @property
    def fragments(self) -> tuple[Fragment, ...]:
        """Return the fragments as they are."""
        return tuple(self.snapshot.manifest.fragments)


def plan_columns(
    snapshot: Snapshot, arrow: pa.Schema, maker: Maker, batch_rows: int | None = None
) -> AddPlan:
    """Plan to add columns that a maker makes.

    Raises InvalidSchemaError for names, UnsupportedError for types and file versions.
    """
    plan, files = plan_column_files(snapshot, arrow)
    rows = batch_rows or rows_at_once(maker.inputs.arrow)
    task = ColumnsTask(snapshot, files, maker, rows) if files.schema.fields else None
    return replace(plan, task=task)


def plan_column_files(snapshot: Snapshot, arrow: pa.Schema) -> tuple[AddPlan, ColumnFiles]:
    """Plan to add columns that somebody else writes, and return where and how.

    Raises InvalidSchemaError for names, UnsupportedError for types and file versions.
    """
    new, version = number_new_columns(snapshot.manifest, arrow), storage_version(snapshot.manifest)
    check_written(new, version)
    plan = AddPlan(snapshot, _longer(snapshot, new), None)
    return plan, ColumnFiles.of(snapshot, new, version)


def plan_sql_columns(
    snapshot: Snapshot, texts: Mapping[str, str], batch_rows: int | None = None
) -> AddPlan:
    """Plan to add columns that are computed by SQL expressions over the others.

    Raises ArgumentError for what is no expression over the table's columns.
    """
    version = storage_version(snapshot.manifest)
    maker = SqlColumns.parse(texts, snapshot.manifest.schema, version)
    if maker.is_null and version != V0_1:
        return plan_null_columns(snapshot, maker.schema)
    return plan_columns(snapshot, maker.schema, maker, batch_rows)


def plan_null_columns(snapshot: Snapshot, arrow: pa.Schema) -> AddPlan:
    """Plan to add columns of NULLs, from file version 2.2 on also fields of structs that are there.

    Raises InvalidSchemaError for a column that is never NULL, UnsupportedError at file version 0.1,
    where every column of the schema must lie in a file.
    """
    for field in arrow:
        if not field.nullable:
            message = f"All-null columns must be nullable, but column {field.name!r} is not"
            raise InvalidSchemaError(message)
    if storage_version(snapshot.manifest) == V0_1:
        message = (
            "a column of NULLs cannot be added to a table of file version 0.1, which keeps none"
        )
        raise UnsupportedError(message)
    manifest, version = snapshot.manifest, storage_version(snapshot.manifest)
    if not version.holds(Ability.GROWN_STRUCTS):
        return AddPlan(snapshot, _longer(snapshot, number_new_columns(manifest, arrow)), None)
    grown = grown_schema(manifest, arrow)
    check_writable(grown, version)
    return AddPlan(snapshot, grown, None)


def _longer(snapshot: Snapshot, new: Schema) -> Schema:
    schema = snapshot.manifest.schema
    return replace(schema, fields=(*schema.fields, *new.fields))


def commit_add(
    plan: AddPlan, fragments: Iterable[Fragment], properties: Mapping[str, str] | None = None
) -> Manifest:
    """Make the columns that were written a version of the table.

    Raises RetryableConflict if another writer changed rows meanwhile.
    """
    return commit_columns(plan.snapshot, fragments, plan.schema, properties)


# --- fields that structs get ----------------------------------------------------------------------

_MAY_GROW = ("struct", "list.struct", "large_list.struct")


def grown_schema(manifest: Manifest, arrow: pa.Schema) -> Schema:
    """Return a table's schema with new fields, where those of a name that is there go into it.

    From file version 2.2 on a struct may get fields of NULLs, wherever it nests in structs and lists.  They lie in no
    file, and get the ids that follow all others, in the order of the schema.  Source: ledger F-393.

    Raises InvalidSchemaError for a column that is there already or is never NULL, UnsupportedError
    for a field of a packed struct.
    """
    schema = manifest.schema
    ids = map(FieldId, count(highest_field_id(manifest) + 1))
    fields = _grown(schema.fields, schema_from_arrow(arrow).fields, "")
    return replace(schema, fields=tuple(field.numbered(ids) for field in fields))


def _grown(old: tuple[Field, ...], new: tuple[Field, ...], prefix: str) -> tuple[Field, ...]:
    fields = list(old)
    places = {field.name: place for place, field in enumerate(old)}
    for field in new:
        path = prefix + field.name
        place = places.get(field.name)
        if place is not None:
            fields[place] = _grown_field(fields[place], field, path)
            continue
        if not field.nullable:
            message = f"All-null columns must be nullable, but column {path!r} is not"
            raise InvalidSchemaError(message)
        fields.append(field.renumbered(repeat(UNASSIGNED)))
    return tuple(fields)


def _grown_field(old: Field, new: Field, path: str) -> Field:
    if old.logical_type != new.logical_type or old.logical_type not in _MAY_GROW:
        message = f"Column {path} already exists in the dataset"
        raise InvalidSchemaError(message)
    if is_packed(old):
        message = f"column {path!r} is a packed struct, which gets no more fields; add a column"
        raise UnsupportedError(message, where=Breadcrumb(column=path))
    if old.logical_type == "struct":
        return replace(old, children=_grown(old.children, new.children, f"{path}."))
    (item,), (added,) = old.children, new.children
    return replace(old, children=(_grown_field(item, added, f"{path}.{item.name}"),))
