"""The files that a commit names for the first time: whether they are there, and will be.

Clean-up takes a file that no version names for an orphan once it is some days old.  A job that took
longer may have lost files that it wrote at its beginning, and a clean-up that has looked already may be
about to delete others, however long it was asleep: neither must be committed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from pennon.core.thread_pools import WORK, map_all
from pennon.errors import Breadcrumb, FormatError, NotFoundError, RetryableConflict
from pennon.io.store import ObjectInfo
from pennon.table.fragment import Fragment
from pennon.table.manifest import Manifest
from pennon.table.operations import (
    Append,
    DataReplacement,
    Delete,
    Merge,
    Operation,
    Overwrite,
    Rewrite,
    Update,
)
from pennon.table.versions import Reads, list_locations, read_manifest_at

ORPHAN_AGE: Final = timedelta(days=7)
"""A younger file that no version names may belong to a writer that has not committed yet."""
_COMMITTED_WITHIN: Final = timedelta(days=1)
"""So long before that age it is refused, which is more than a commit takes from here on."""
_SHOWN = 10


def check_new_files(
    store: Reads, operation: Operation, head: Manifest | None, now: datetime
) -> None:
    """Raise NotFoundError if a file that an operation brings is not there, FormatError for its size.

    ``now`` by the store's clock.  Raises RetryableConflict for files so old that a clean-up may be about to
    delete them.  Files of another base path are not looked at.
    """
    files = _files_of(operation)
    known = set() if head is None or not files else _paths(head.fragments)
    new = [(path, size) for path, size in files.items() if path not in known]
    infos = map_all(lambda each: _info(store, each[0]), new, WORK)
    missing = [path for (path, _), found in zip(new, infos, strict=True) if found is None]
    if missing:
        names = ", ".join(missing[:_SHOWN])
        message = f"{len(missing)} files to be committed are not there: {names}"
        raise NotFoundError(message, where=Breadcrumb(file=missing[0]))
    there = [each for each in infos if each is not None]
    for (path, stated), found in zip(new, there, strict=True):
        if stated is not None and found.size_bytes != stated:
            message = f"a file to be committed has {found.size_bytes} bytes, not {stated}"
            raise FormatError(message, where=Breadcrumb(file=path))
    old = {each.path for each in there if now - each.modified > ORPHAN_AGE - _COMMITTED_WITHIN}
    if old:
        _refuse_orphans(store, old)


def _refuse_orphans(store: Reads, old: set[str]) -> None:
    """Raise RetryableConflict if no version names one of some old files."""
    for location in list_locations(store):
        old = old - _paths(read_manifest_at(store, location).fragments)
        if not old:
            return
    days = (ORPHAN_AGE - _COMMITTED_WITHIN).days
    message = (
        f"{len(old)} files to be committed are more than {days} days old, and no version names them: a clean-up "
        f"may be about to delete them; write them again: {', '.join(sorted(old)[:_SHOWN])}"
    )
    raise RetryableConflict(message)


def _info(store: Reads, path: str) -> ObjectInfo | None:
    try:
        return store.info(path)
    except NotFoundError:
        return None


def _files_of(operation: Operation) -> dict[str, int | None]:
    """Return the files that an operation names, with their sizes where it says them."""
    found: dict[str, int | None] = {}
    for fragment in fragments_of(operation):
        for file in fragment.files:
            if file.base_id is None:
                found[file.store_path] = file.size_bytes
        deletion = fragment.deletion_file
        if deletion is not None and deletion.base_id is None:
            found[deletion.store_path(fragment.id)] = None
    if isinstance(operation, DataReplacement):
        for each in operation.replacements:
            if each.file.base_id is None:
                found[each.file.store_path] = each.file.size_bytes
    return found


def fragments_of(operation: Operation) -> Iterable[Fragment]:
    """Return the fragments that an operation brings, new or changed."""
    match operation:
        case Append(fragments=new) | Overwrite(fragments=new) | Merge(fragments=new):
            return new
        case Delete(updated=updated):
            return updated
        case Update(updated=updated, new=new):
            return (*updated, *new)
        case Rewrite(groups=groups):
            return tuple(fragment for group in groups for fragment in group.new)
        case _:
            return ()


def _paths(fragments: Iterable[Fragment]) -> set[str]:
    found: set[str] = set()
    for fragment in fragments:
        found.update(file.store_path for file in fragment.files if file.base_id is None)
        deletion = fragment.deletion_file
        if deletion is not None and deletion.base_id is None:
            found.add(deletion.store_path(fragment.id))
    return found
