"""Operations on rows: append, delete, update."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pennon.core.units import FieldId, FragmentId
from pennon.errors import ArgumentError, FormatError, SchemaMismatchError
from pennon.schema.field import Schema
from pennon.table.apply.checks import (
    check_have_files,
    check_keeps_columns,
    check_mixture,
    check_no_deletions,
    missing_field,
    with_known_files,
)
from pennon.table.apply.context import ApplyContext
from pennon.table.apply.ids import with_fresh_ids, with_new_row_ids, without_row_ids
from pennon.table.apply.index_rules import prune_fields, relevant_indices
from pennon.table.apply.moved_rows import extend_indices, with_moved_row_ids
from pennon.table.apply.row_versions import all_updated, some_updated
from pennon.table.fragment import Fragment
from pennon.table.indices_wire import parse_indices, serialize_indices
from pennon.table.manifest import DataFormat, Manifest
from pennon.table.operations import Append, Delete, Update
from pennon.table.storage_version import storage_version


def append(head: Manifest, operation: Append, around: ApplyContext) -> Manifest:
    """Add fragments at the end."""
    check_no_deletions(operation.fragments)
    check_have_files(operation.fragments)
    missing = missing_field(head.schema, operation.fragments)
    if missing is not None:
        message = f"field {missing.name!r} must not be null, but appended files do not have it"
        raise SchemaMismatchError(message)
    version = storage_version(head)
    check_mixture(operation.fragments, version)
    fresh = with_fresh_ids(without_row_ids(operation.fragments), head.last_fragment_id)
    new, next_row_id = with_new_row_ids(fresh, head, stable=head.has_stable_row_ids)
    return replace(
        head,
        fragments=around.completed(head) + new,
        data_format=DataFormat("lance", str(version)),
        next_row_id=next_row_id,
    )


def delete(head: Manifest, operation: Delete, around: ApplyContext) -> Manifest:
    """Give fragments their new deletion files, and leave out fragments without live rows."""
    old = by_id(around.completed(head))
    updated = {
        fragment.id: replace(known(old, fragment.id), deletion_file=fragment.deletion_file)
        for fragment in operation.updated
    }
    fragments = _without(old, operation.deleted_ids, updated)
    indices = relevant_indices(parse_indices(head.indices), head.schema, fragments)
    return replace(head, fragments=fragments, indices=serialize_indices(indices))


def update(head: Manifest, operation: Update, around: ApplyContext) -> Manifest:
    """Change fragments, take some away, and add those that hold rows that moved or are new."""
    check_no_deletions(operation.new)
    check_have_files(operation.new)
    check_mixture(operation.new, storage_version(head))
    old = by_id(around.completed(head))
    updated = {
        fragment.id: _updated(head, known(old, fragment.id), fragment, operation, around)
        for fragment in operation.updated
    }
    kept = _without(old, operation.removed_ids, updated)
    fresh = with_fresh_ids(operation.new, head.last_fragment_id)
    new, next_row_id = with_moved_row_ids(fresh, head, operation, around)
    unchanged = old.keys() - updated.keys()
    known_indices, modified = parse_indices(head.indices), operation.fields_modified
    indices = prune_fields(known_indices, unchanged, modified, head.schema)
    indices = extend_indices(indices, new, operation, stable=head.has_stable_row_ids)
    fragments = (*kept, *new)
    return replace(
        head,
        fragments=fragments,
        next_row_id=next_row_id,
        indices=serialize_indices(relevant_indices(indices, head.schema, fragments)),
    )


def _updated(
    head: Manifest, old: Fragment, new: Fragment, operation: Update, around: ApplyContext
) -> Fragment:
    """Return a fragment with its new files, and the versions that its rows were last updated in.

    Where columns were written anew and nothing says of which rows, all rows are updated.
    """
    changed = _changed(old, new, head.schema, operation.fields_modified)
    bitmap = operation.updated_offsets.get(old.id)
    if bitmap is None and new.files != old.files:
        return all_updated(changed, head.version + 1)
    return some_updated(changed, bitmap, head.version + 1, around)


def _changed(old: Fragment, new: Fragment, schema: Schema, modified: Iterable[FieldId]) -> Fragment:
    """Return a fragment with its new files; rows keep what they are called."""
    check_keeps_columns(old, new, schema, modified)
    changed = replace(old, files=new.files, deletion_file=new.deletion_file)
    return with_known_files(changed, schema)


def by_id(fragments: Iterable[Fragment]) -> dict[FragmentId, Fragment]:
    """Return fragments by their ids, in their order.

    Raises FormatError if two have one id, as Lance 0.16.0 could give it: nobody knows which is meant.
    """
    found: dict[FragmentId, Fragment] = {}
    for fragment in fragments:
        if found.setdefault(fragment.id, fragment) is not fragment:
            message = f"two fragments have the id {fragment.id}; write the rows into a new table"
            raise FormatError(message)
    return found


def known(old: Mapping[FragmentId, Fragment], number: FragmentId) -> Fragment:
    """Return the fragment of that id; raises ArgumentError if there is none."""
    found = old.get(number)
    if found is None:
        message = f"the table has no fragment {number}"
        raise ArgumentError(message)
    return found


def _without(
    old: Mapping[FragmentId, Fragment],
    gone: Iterable[FragmentId],
    updated: Mapping[FragmentId, Fragment],
) -> tuple[Fragment, ...]:
    away = {known(old, number).id for number in gone}
    return tuple(
        updated.get(number, fragment) for number, fragment in old.items() if number not in away
    )
