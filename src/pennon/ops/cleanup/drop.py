"""Dropping a table: everything in its folder goes.

Manifests go first, and of these the newest last: until then the table opens at that version, which is
whole, and after that there is no table.  A drop that is cut short then leaves files that are nobody's.
"""

from __future__ import annotations

from pennon.core.thread_pools import PoolSpec, map_all
from pennon.errors import ArgumentError, Breadcrumb, FormatError, NotFoundError, UnsupportedError
from pennon.io.local import LocalStore
from pennon.io.store import Store
from pennon.table.external import ExternalStore
from pennon.table.manifest import Manifest
from pennon.table.naming import VERSIONS
from pennon.table.versions import list_locations, read_manifest

_AT_ONCE = PoolSpec("clean", 8)


def drop_table(store: Store, *, missing_ok: bool = False) -> None:
    """Delete a table, its branches, and everything else in its folder.

    Raises NotFoundError where nothing is, unless ``missing_ok``; ArgumentError where something is
    that is no table, or a branch of one; UnsupportedError where other stores know its versions.
    """
    if isinstance(store, ExternalStore):
        message = "versions that an external manifest store grants cannot be taken back there"
        raise UnsupportedError(message)
    paths = [path for path, _ in store.list_names("")]
    if not paths:
        if missing_ok:
            return
        message = f"there is nothing at {store.uri!r}"
        raise NotFoundError(message, where=Breadcrumb(file=VERSIONS))
    check_table(store)
    own = [location.path for location in list_locations(store)]
    branches = [path for path in paths if path.startswith("tree/") and f"/{VERSIONS}/" in path]
    map_all(store.delete, branches, _AT_ONCE)
    for path in own:  # the oldest first
        store.delete(path)
    gone = {*branches, *own}
    map_all(store.delete, [path for path in paths if path not in gone], _AT_ONCE)
    if isinstance(store, LocalStore):
        store.delete_empty_folders()


def check_table(store: Store) -> Manifest:
    """Return the newest manifest; raises ArgumentError if there is none that can be read."""
    try:
        manifest = read_manifest(store)
    except (NotFoundError, FormatError) as error:
        message = f"{store.uri!r} is no table, for it has no manifest that can be read; nothing was deleted"
        raise ArgumentError(message) from error
    if manifest.branch is not None:
        message = f"{store.uri!r} is the branch {manifest.branch!r} of a table; drop it by `branches.delete`"
        raise ArgumentError(message)
    return manifest
