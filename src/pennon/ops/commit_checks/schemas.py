"""Comparing the schema of a Merge or a Project with that of the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pennon.core.units import FieldId
from pennon.errors import SchemaMismatchError
from pennon.io.store import Store
from pennon.ops.commit_checks.contents import contents_of
from pennon.scan.snapshot import Snapshot
from pennon.schema.field import Field
from pennon.schema.named_fields import NamedField, named_fields
from pennon.table.field_ids import highest_field_id
from pennon.table.fragment import Fragment
from pennon.table.manifest import Manifest
from pennon.table.operations import Merge, Project

_WAYS = (
    "make the new schema from the table's own (`dataset.lance_schema`), which keeps field ids: a "
    "pyarrow schema has none"
)


def check_merged_schema(head: Manifest, operation: Merge) -> None:
    """Raise SchemaMismatchError unless a Merge leaves every field id what it is.

    A field keeps its id and its name.  A new field has an id that no field ever had; it may take the name of
    an old one if every fragment brings its values.

    Source: ledger F-790 (pylance refuses the same, and lets a field have another name).
    """
    old, new = named_fields(head.schema), named_fields(operation.schema)
    id_of = {each.path: number for number, each in old.items()}
    highest = highest_field_id(head)
    for number, field in new.items():
        known = old.get(number)
        if known is not None:
            if known.path != field.path:
                raise _other_name("Merge", number, known, field)
            continue
        if number <= highest:
            message = (
                f"the Merge gives field id {number} to the new column {field.text}, but a column that was "
                f"dropped had it, and data files hold its values; new columns have ids from {highest + 1} "
                f"on; {_WAYS}"
            )
            raise SchemaMismatchError(message)
        before = id_of.get(field.path)
        if before is not None and not _is_in_all(operation.schema.field(number), operation):
            message = (
                f"the Merge changes the id of column {field.text} from {before} to {number}, but not every "
                f"fragment has a file with the values of the new one; {_WAYS}"
            )
            raise SchemaMismatchError(message)


def _is_in_all(field: Field, operation: Merge) -> bool:
    """Return whether each fragment of a Merge has a file with the field, or with one below it."""
    ids = {each.id for each in field.walk()}
    return all(
        any(not ids.isdisjoint(file.field_ids) for file in fragment.files)
        for fragment in operation.fragments
    )


def check_projected_schema(store: Store, head: Manifest, operation: Project) -> None:
    """Raise SchemaMismatchError if a Project shows one column's values under the name of another.

    It may give a column a name that the table has not.  Two names are swapped by `alter_columns`.
    """
    old, new = named_fields(head.schema), named_fields(operation.schema)
    id_of = {each.path: number for number, each in old.items()}
    unknown = {}
    for number, field in new.items():
        known = old.get(number)
        if known is None:
            unknown[number] = field
        elif known.path != field.path and field.path in id_of:
            raise _other_name("Project", number, known, field)
    if unknown:
        _check_dropped(store, head, unknown, id_of)


def _check_dropped(
    store: Store,
    head: Manifest,
    fields: Mapping[FieldId, NamedField],
    id_of: Mapping[tuple[str | int, ...], FieldId],
) -> None:
    """Raise SchemaMismatchError unless fields that the table has not are dropped ones under their names."""
    held = _held(store, head.fragments, head, set(fields))
    for number, field in fields.items():
        before = held.get(number)
        if before is not None and before != field:
            raise _other_name("Project", number, before, field)
        if field.path in id_of:
            message = (
                f"the Project changes the id of column {field.text} from {id_of[field.path]} to {number}, "
                f"under which there are no values of it; {_WAYS}"
            )
            raise SchemaMismatchError(message)


def _held(
    store: Store, fragments: Iterable[Fragment], head: Manifest, wanted: set[FieldId]
) -> dict[FieldId, NamedField]:
    """Return the names that data files have for fields; one file with each is read."""
    snapshot, found = Snapshot(store, head), dict[FieldId, NamedField]()
    for fragment in fragments:
        for file in fragment.files:
            if not wanted.isdisjoint(file.field_ids):
                contents = contents_of(snapshot, file)
                mine = {} if contents is None else contents.named
                found.update({number: mine[number] for number in wanted & mine.keys()})
                wanted = wanted - set(file.field_ids)
        if not wanted:
            break
    return found


def _other_name(
    operation: str, number: FieldId, before: NamedField, after: NamedField
) -> SchemaMismatchError:
    message = (
        f"the {operation} gives field id {number}, which is column {before.text} ({before.logical_type}), to "
        f"{after.text} ({after.logical_type}), which would show its values; {_WAYS}; columns are renamed by "
        "`alter_columns`"
    )
    return SchemaMismatchError(message)
