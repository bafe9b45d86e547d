"""Operations on columns: merge, project, and other files for columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pennon.core.units import FragmentId
from pennon.errors import ArgumentError
from pennon.schema.field import Schema
from pennon.table.apply.checks import (
    check_have_files,
    check_mixture,
    check_no_deletions,
    check_same_types,
    with_known_files,
)
from pennon.table.apply.context import ApplyContext
from pennon.table.apply.ids import with_fresh_ids, with_new_row_ids, without_row_ids
from pennon.table.apply.index_rules import prune_fields, relevant_indices
from pennon.table.apply.moved_rows import with_moved_row_ids
from pennon.table.apply.row_versions import all_updated
from pennon.table.apply.rows import by_id, known
from pennon.table.fragment import TOMBSTONE, DataFileRef, Fragment
from pennon.table.indices_wire import parse_indices, serialize_indices
from pennon.table.manifest import Manifest
from pennon.table.operations import DataReplacement, Merge, Project, Replacement, Update
from pennon.table.storage_version import storage_version


def merge(head: Manifest, operation: Merge, around: ApplyContext) -> Manifest:
    """Give the fragments their further files, and the table its new schema.

    Where it keeps rows (``around``), rows move, too: from fragments that are missing, or have another
    deletion file, to new ones.  Else raises ArgumentError if a fragment is missing.  Raises ArgumentError
    for a fragment with another number of rows.
    """
    check_same_types(head.schema, operation.schema)
    old = by_id(around.completed(head))
    given = by_id(operation.fragments)
    _check_merged(old, given, operation.fragments, may_go=around.keeps_rows)
    check_mixture(operation.fragments, storage_version(head))
    version = head.version + 1
    kept = {number: each for number, each in old.items() if number in given}
    merged = [_merged(each, given[number], version) for number, each in kept.items()]
    added = tuple(f for f in operation.fragments if f.id not in old)
    check_have_files(added)
    if around.keeps_rows:
        check_no_deletions(added)
        merged = [replace(f, deletion_file=given[f.id].deletion_file) for f in merged]
        fresh = with_fresh_ids(added, head.last_fragment_id)
        moved = Update(tuple(number for number in old if number not in given), tuple(merged), added)
        new, next_row_id = with_moved_row_ids(fresh, head, moved, around)
    else:
        fresh = with_fresh_ids(without_row_ids(added), head.last_fragment_id)
        new, next_row_id = with_new_row_ids(fresh, head, stable=head.has_stable_row_ids)
    fragments = tuple(map(_without_dead_files, (*merged, *new)))
    return replace(
        head,
        schema=operation.schema,
        fields_wire=operation.fields_wire,
        fragments=fragments,
        next_row_id=next_row_id,
        indices=_indices(head, operation.schema, fragments),
    )


def _merged(old: Fragment, given: Fragment, version: int) -> Fragment:
    """Return a fragment with its new files; all of its rows count as updated then."""
    if old.files == given.files:
        return old
    return all_updated(replace(old, files=given.files), version)


def _check_merged(
    old: Mapping[FragmentId, Fragment],
    given: Mapping[FragmentId, Fragment],
    fragments: tuple[Fragment, ...],
    *,
    may_go: bool,
) -> None:
    if len(given) != len(fragments):
        message = "two fragments of a merge have one id"
        raise ArgumentError(message)
    missing = [number for number in old if number not in given]
    if missing and not may_go:
        message = f"a merge must keep all fragments; {missing[:20]} are missing"
        raise ArgumentError(message)
    for number, each in given.items():
        if number in old and old[number].physical_rows != each.physical_rows:
            message = (
                f"a merge must keep the rows of fragment {number}, {old[number].physical_rows}, "
                f"not make them {each.physical_rows}"
            )
            raise ArgumentError(message)


def project(head: Manifest, operation: Project, around: ApplyContext) -> Manifest:
    """Give the table a new schema over the same files; files without a column left are left out.

    The message has no metadata of the schema, so it stays what it is.
    """
    check_same_types(head.schema, operation.schema)
    schema = replace(operation.schema, metadata=head.schema.metadata)
    fragments = tuple(with_known_files(each, schema) for each in around.completed(head))
    return replace(
        head,
        schema=schema,
        fields_wire=operation.fields_wire,
        fragments=fragments,
        indices=_indices(head, schema, fragments),
    )


def replace_data(head: Manifest, operation: DataReplacement, around: ApplyContext) -> Manifest:
    """Put files in place of those with the same fields, or beside files that lack these fields.

    All rows of these fragments count as updated then.  Raises ArgumentError for a fragment that is not there, and for a file that fits neither way.
    """
    fields = {each.file.field_ids for each in operation.replacements}
    if len(fields) > 1:
        message = f"all new files must have the same fields, not {sorted(fields)}"
        raise ArgumentError(message)
    fragments = by_id(around.completed(head))
    for each in operation.replacements:
        new = _replaced(known(fragments, each.fragment_id), each)
        kept = with_known_files(new, head.schema)
        fragments[each.fragment_id] = all_updated(kept, head.version + 1)
    unchanged = fragments.keys() - {each.fragment_id for each in operation.replacements}
    replaced = (number for ids in fields for number in ids)
    indices = prune_fields(parse_indices(head.indices), unchanged, replaced, head.schema)
    return replace(head, fragments=tuple(fragments.values()), indices=serialize_indices(indices))


def _replaced(fragment: Fragment, replacement: Replacement) -> Fragment:
    new = replacement.file
    covered = {number for file in fragment.files for number in file.field_ids}
    if covered.isdisjoint(new.field_ids):
        return replace(fragment, files=(*fragment.files, new))
    files = [_same_columns(file, new) or file for file in fragment.files]
    if files == list(fragment.files):
        message = (
            f"no file of fragment {fragment.id} has the fields {list(new.field_ids)} and the file "
            "version of the new one"
        )
        raise ArgumentError(message)
    return _with_files(fragment, files)


def _same_columns(old: DataFileRef, new: DataFileRef) -> DataFileRef | None:
    """Return the new file if it holds what the old one holds."""
    same = (old.field_ids, old.major, old.minor) == (new.field_ids, new.major, new.minor)
    return new if same else None


def _indices(head: Manifest, schema: Schema, fragments: Iterable[Fragment]) -> bytes:
    return serialize_indices(relevant_indices(parse_indices(head.indices), schema, fragments))


def _with_files(fragment: Fragment, files: list[DataFileRef]) -> Fragment:
    return fragment if files == list(fragment.files) else replace(fragment, files=tuple(files))


def _without_dead_files(fragment: Fragment) -> Fragment:
    """Leave out the files whose columns are all dead."""
    alive = [f for f in fragment.files if any(number != TOMBSTONE for number in f.field_ids)]
    return _with_files(fragment, alive)
