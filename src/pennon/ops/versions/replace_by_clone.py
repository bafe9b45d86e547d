"""Clones that take the place of a table: a version of another one becomes the newest of this.

The table keeps its older versions.  Places of files that it did not know come in a version before, which changes
no row; then an overwrite brings fragments, schema and config at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pennon.errors import ArgumentError, UnsupportedError
from pennon.ops.base_paths import add_bases
from pennon.ops.commit import commit_transaction
from pennon.ops.row_counts import counted
from pennon.ops.versions.deep_clone import CopyTask, copied_fragment, files_of_rows
from pennon.scan.snapshot import Snapshot
from pennon.schema.blob import has_blobs_v2
from pennon.schema.version import V0_1
from pennon.table.base_paths import absolute_uri
from pennon.table.blob_table import check_no_blob_table
from pennon.table.flags import check_writable
from pennon.table.fragment import BasePath, Fragment
from pennon.table.manifest import Manifest
from pennon.table.operations import Overwrite
from pennon.table.storage_version import storage_version
from pennon.table.transaction import Transaction


def plan_replacing_copy(source: Snapshot, target: Snapshot) -> CopyTask:
    """Return what copies the files of a version's rows beside those of a table; indices stay behind.

    Raises what `replace_by_clone` raises, before anything is copied.
    """
    _check(source, target, is_shallow=False)
    files = {
        path: own
        for each in source.manifest.fragments
        for path, own in files_of_rows(source, each).items()
    }
    return CopyTask(source.store, target.store, tuple(files.items()))


def replace_by_clone(
    source: Snapshot,
    target: Snapshot,
    *,
    is_shallow: bool,
    config: Mapping[str, str],
    properties: Mapping[str, str],
    planned_ns: int,
) -> Manifest:
    """Make a version the newest one of another table, and return it; a deep clone's files are copied already.

    ``config`` is set beside the entries of both tables.  Rows get new row ids, and indices stay behind.
    Raises ArgumentError for a table in its own place, UnsupportedError for files of version 0.1, and for blobs
    that lie in other places.
    """
    _check(source, target, is_shallow=is_shallow)
    if is_shallow:
        places = _places(source)
        target = _with_bases(target, places.values())
        known = {_what(base): base.id for base in target.manifest.base_paths}
        own = absolute_uri(target.store), True
        ids = {
            place: None if _what(base) == own else known[_what(base)]
            for place, base in places.items()
        }
        fragments = tuple(_placed(each, ids) for each in _counted(source))
    else:
        fragments = tuple(map(copied_fragment, _counted(source)))
    manifest = source.manifest
    operation = Overwrite(
        tuple(map(_without_ids, fragments)),
        manifest.schema,
        fields_wire=manifest.fields_wire,
        config_upserts={**manifest.config, **config},
    )
    return commit_transaction(
        target.store,
        Transaction(target.manifest.version, operation, properties=dict(properties)),
        base=target.manifest,
        planned_ns=planned_ns,
        file_version=storage_version(manifest),
    )


def _check(source: Snapshot, target: Snapshot, *, is_shallow: bool) -> None:
    check_writable(source.manifest)
    check_no_blob_table(source.manifest)
    if absolute_uri(source.store) == absolute_uri(target.store):
        message = f"{target.store.uri!r} is no clone of itself; restore the version instead"
        raise ArgumentError(message)
    if storage_version(source.manifest) == V0_1:
        message = "a clone of files of version 0.1 replaces no table; clone to a new place"
        raise UnsupportedError(message)
    if has_blobs_v2(source.manifest.schema) and (is_shallow or source.manifest.base_paths):
        message = "blobs of a clone that replaces a table must be copied, and not lie elsewhere"
        raise UnsupportedError(message)


def _counted(source: Snapshot) -> tuple[Fragment, ...]:
    return tuple(counted(source, each) for each in source.manifest.fragments)


def _places(source: Snapshot) -> dict[int | None, BasePath]:
    """Return where files lie that a shallow clone names, by the ids of base paths in the source."""
    used = {file.base_id for each in source.manifest.fragments for file in each.files}
    deletions = (each.deletion_file for each in source.manifest.fragments)
    used |= {each.base_id for each in deletions if each is not None}
    known: dict[int | None, BasePath] = {base.id: base for base in source.manifest.base_paths}
    known[None] = BasePath(0, absolute_uri(source.store), is_dataset_root=True)
    return {place: known[place] for place in used}


def _with_bases(target: Snapshot, places: Iterable[BasePath]) -> Snapshot:
    """Return the table with the places of files among its base paths."""
    known = {_what(base) for base in target.manifest.base_paths}
    known.add((absolute_uri(target.store), True))
    new = [replace(base, id=0, name=None) for base in places if _what(base) not in known]
    if not new:
        return target
    return add_bases(target, tuple(new), {})


def _what(base: BasePath) -> tuple[str, bool]:
    """Return what tells a place from others: its path, and whether files lie in a folder of it."""
    return base.path, base.is_dataset_root


def _placed(fragment: Fragment, ids: Mapping[int | None, int | None]) -> Fragment:
    files = tuple(replace(file, base_id=ids[file.base_id]) for file in fragment.files)
    deletion = fragment.deletion_file
    if deletion is not None:
        deletion = replace(deletion, base_id=ids[deletion.base_id])
    return replace(fragment, files=files, deletion_file=deletion)


def _without_ids(fragment: Fragment) -> Fragment:
    """Return a fragment without the ids and versions of rows, which are those of another table."""
    return replace(fragment, row_ids=None, created_at_versions=None, last_updated_at_versions=None)
