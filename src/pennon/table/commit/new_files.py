"""The files that a commit names for the first time, and whether they are there.

Clean-up takes a file that no version names for an orphan once it is some days old.  A job that took
longer may have lost files that it wrote at its beginning; they must not be committed.
"""

from __future__ import annotations

from collections.abc import Iterable

from pennon.core.thread_pools import WORK, map_all
from pennon.errors import Breadcrumb, FormatError, NotFoundError
from pennon.io.store import Opens
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

_SHOWN = 10


def check_new_files(store: Opens, operation: Operation, head: Manifest | None) -> None:
    """Raise NotFoundError if a file that an operation brings is not there, FormatError for its size.

    Files of another base path are not looked at.
    """
    files = _files_of(operation)
    known = set() if head is None or not files else _paths(head.fragments)
    new = [(path, size) for path, size in files.items() if path not in known]
    sizes = map_all(lambda each: _size(store, each[0]), new, WORK)
    missing = [path for (path, _), found in zip(new, sizes, strict=True) if found is None]
    if missing:
        names = ", ".join(missing[:_SHOWN])
        message = f"{len(missing)} files to be committed are not there: {names}"
        raise NotFoundError(message, where=Breadcrumb(file=missing[0]))
    for (path, stated), found in zip(new, sizes, strict=True):
        if stated is not None and found != stated:
            message = f"a file to be committed has {found} bytes, not {stated}"
            raise FormatError(message, where=Breadcrumb(file=path))


def _size(store: Opens, path: str) -> int | None:
    try:
        return store.open(path).size_bytes
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
