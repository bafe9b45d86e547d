"""From naming scheme V1 to V2, while others read and write.

Every manifest is copied to its new name, newest first, and only then the old names go.  Meanwhile
names of both schemes lie there; where a version has two, the new one counts.

A writer that saw only old names may put another one beside the new ones.  So whoever commits under
an old name looks again afterwards: if there are new names by now, its commit counts when its new
name is its own, too (`settle`).  And a writer that finds an old name above all new ones copies it
first (`copy_newest`), so that its own version follows that one.

Other libraries' writers do not look again.  They must not write while a table is migrated.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from pennon.errors import AlreadyExistsError, Breadcrumb, FormatError, NotFoundError
from pennon.io.store import Deletes, Lists
from pennon.table.commit.put_manifest import CommitStore
from pennon.table.commit.rebase import same_intent
from pennon.table.manifest_wire import parse_manifest_file
from pennon.table.naming import VERSIONS, Naming, parse_manifest_name
from pennon.table.transaction_wire import parse_transaction, read_transaction
from pennon.table.versions import ManifestLocation, list_locations, read_manifest_at


class MigrateStore(CommitStore, Deletes, Protocol):
    """The store operations that a migration of manifest names uses."""


def migrate_to_v2(store: MigrateStore) -> int:
    """Give all manifests their names of scheme V2; return how many had the old ones.

    It may be called again at any time, above all when it was interrupted.  Raises FormatError if a
    version has two names and different contents; then both stay.
    """
    moved = 0
    while True:
        old = sorted(_old_versions(store), reverse=True)
        if not old:
            return moved
        for version in old:
            _copy(store, version)
        for version in reversed(old):
            if _is_copied(store, version):
                store.delete(Naming.V1.manifest_path(version))
        moved += len(old)


def copy_newest(store: CommitStore, newest: ManifestLocation) -> ManifestLocation:
    """Return where a writer finds the newest version of a table that has names of both schemes."""
    if newest.naming is Naming.V2:
        return newest
    _copy(store, newest.version)
    path = Naming.V2.manifest_path(newest.version)
    return replace(newest, path=path, naming=Naming.V2, size_bytes=None)  # it may be another's


def _copy(store: CommitStore, version: int) -> None:
    with suppress(AlreadyExistsError, NotFoundError):
        data = store.read_whole(Naming.V1.manifest_path(version)).to_pybytes()
        store.put_if_absent(Naming.V2.manifest_path(version), data)


def _is_copied(store: CommitStore, version: int) -> bool:
    """Tell whether the old name can go: not if another migration has taken it away already.

    Where another version was made under the new name meanwhile, the one under the old name counts for
    nothing, and its writer has tried again.  Raises FormatError if it has not (yet), NotFoundError if
    there is no copy.
    """
    names = Naming.V1.manifest_path(version), Naming.V2.manifest_path(version)
    copy = store.read_whole(names[1]).to_pybytes()
    try:
        old = store.read_whole(names[0]).to_pybytes()
    except NotFoundError:
        return False
    if old != copy and not _is_made_later(store, old, version):
        message = (
            f"version {version} was committed twice, as {names[0]} and as {names[1]}, by writers"
            " that did not know of each other; the second counts, and the first can be deleted"
        )
        raise FormatError(message, where=Breadcrumb(file=names[0]))
    return True


def _is_made_later(store: CommitStore, old: bytes, version: int) -> bool:
    """Tell whether the transaction of a manifest made a version after ``version``."""
    wire = parse_manifest_file(old).transaction
    if wire is None:
        return False
    transaction = parse_transaction(wire)
    for location in list_locations(store):
        if location.version > version:
            made = read_transaction(store, read_manifest_at(store, location))
            if made is not None and same_intent(transaction, made):
                return True
    return False


def _old_versions(store: Lists) -> Iterable[int]:
    for path, _ in store.list_names(VERSIONS):
        parsed = parse_manifest_name(path) if path.count("/") == 1 else None
        if parsed is not None and parsed[0] is Naming.V1:
            yield parsed[1]
