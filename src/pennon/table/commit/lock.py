"""Commits under a lock of the caller's (pylance's ``commit_lock``).

For stores that cannot create an object only if its name is free: whoever holds the lock of a version
may look whether there is one, and write it.  Where the store can, the lock is held all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TypeAlias

from pennon.core.fast_dataclass import dataclass
from pennon.errors import AlreadyExistsError, ConflictError, NotFoundError, UnsupportedError
from pennon.io.forwarding_store import ForwardingStore
from pennon.io.prefix_store import PrefixStore
from pennon.io.store import Store
from pennon.table.base_paths import BasedStore
from pennon.table.naming import VERSIONS, parse_manifest_name

CommitLock: TypeAlias = Callable[[int], AbstractContextManager[None]]
"""What gives the lock of a version; it raises `pennon.commit.CommitConflictError` if another has it."""


@dataclass(frozen=True, slots=True)
class LockedStore(ForwardingStore):
    """The `Store` ``inner``, in which a version is made by who holds its lock."""

    inner: Store
    lock: CommitLock

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Write an object whole, unless the name is taken; a version's manifest under its lock."""
        version = _version_of(path)
        if version is None:
            self.inner.put_if_absent(path, data)
            return
        try:
            with self.lock(version):
                self._put(path, data)
        except ConflictError as error:
            if error.message:
                raise
            message = f"the commit lock of version {version} raised CommitConflictError: another writer holds it"
            raise ConflictError(message) from error

    def _put(self, path: str, data: bytes) -> None:
        try:
            self.inner.put_if_absent(path, data)
        except UnsupportedError:
            self._put_alone(path, data)

    def _put_alone(self, path: str, data: bytes) -> None:
        """Write an object unless it exists; a lock keeps other writers out meanwhile."""
        try:
            self.inner.read_whole(path)
        except NotFoundError:
            self.inner.put(path, data)
        else:
            message = f"{path} is there already"
            raise AlreadyExistsError(message)


def locked(store: Store, lock: CommitLock | None) -> Store:
    """Return a table's store, in which versions are made under a lock; as it is without one."""
    if lock is None:
        return store
    if isinstance(store, BasedStore | PrefixStore):
        return replace(store, inner=locked(store.inner, lock))
    inner = store.inner if isinstance(store, LockedStore) else store
    return LockedStore(inner, lock)


def _version_of(path: str) -> int | None:
    """Return the version whose manifest has this path, in the table or a branch; None if it is none's."""
    folder, _, name = path.rpartition("/")
    parsed = parse_manifest_name(name) if folder.split("/")[-1] == VERSIONS else None
    return None if parsed is None else parsed[1]
