"""A store whose versions are granted by an external manifest store.

To whoever reads and commits it is a store like any other, which can create a manifest if it is
absent.  What it does to that end is the protocol of the seeds::

    put_if_absent(_versions/N.manifest)         list(_versions/), before anything is listed

    1  put  _versions/N.manifest-{uuid}         the newest entries are finished (steps 3 to 5)
    2  add  N → that path      ← the commit     and the newest of them must be in the listing
    3  create _versions/N.manifest
    4  flip N → the final path                  open(_versions/N.manifest) that is not there
    5  delete the staged copy
                                                its entry is finished, if it has one

After step 2 the version is committed: what fails later is finished by the next one who looks.  If the
answer to step 2 was lost, the committer reads the manifest back (`pennon.table.commit.put_manifest`), which
finishes it, whosesoever it is.  A manifest that lost is left to clean-up.

A folder below that has versions is a table of its own: a branch.

Source: seeds, 002 "External Manifest Store"; commit-and-faults reference, 1.7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.core.units import DatasetVersion
from pennon.errors import (
    AlreadyExistsError,
    Breadcrumb,
    LanceError,
    NotFoundError,
    StoreError,
    UnsupportedError,
)
from pennon.io.forwarding_store import ForwardingStore
from pennon.io.prefix_store import PrefixStore
from pennon.io.store import ObjectInfo, ObjectReader, Store
from pennon.table.external.finish import finish, finish_with, read_if_there
from pennon.table.external.manifests import (
    Entry,
    ManifestStore,
    final_path,
    is_staged,
    new_staging_path,
    version_of,
)
from pennon.table.naming import VERSIONS, Naming

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ExternalStore(ForwardingStore):
    """The `Store` ``inner``, whose manifests are committed through ``manifests``.

    ``given`` is the URI that the user wrote, which opens both.  What the manifest store knows of a
    version stays when its manifest is deleted, and does no harm.
    """

    inner: Store
    manifests: ManifestStore
    given: str

    @property
    def uri(self) -> str:
        """Return the URI that the user wrote."""
        return self.given

    def open(self, path: str, size_bytes: int | None = None) -> ObjectReader:
        """Open an object; the manifest of a commit that is half done is finished first."""
        return self._finished(path, lambda: self.inner.open(path, size_bytes))

    def read_whole(self, path: str) -> pa.Buffer:
        """Read a whole object; as `open`."""
        return self._finished(path, lambda: self.inner.read_whole(path))

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects under a folder; where versions are listed, they are finished first."""
        return self._checked(prefix, lambda: self.inner.list(prefix), lambda info: info.path)

    def list_names(self, prefix: str) -> Iterator[tuple[str, int | None]]:
        """Yield path and size of the objects under a folder; as `list`."""
        return self._checked(prefix, lambda: self.inner.list_names(prefix), lambda pair: pair[0])

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Write an object whole, unless the name is taken; a manifest is committed.

        Raises AlreadyExistsError if the name is taken, StoreError if that is not known.
        """
        folder, name = _split(path)
        version = version_of(name)
        if version is not None:
            self._versions(folder).create(version, name, data)
            return
        try:
            self.inner.put_if_absent(path, data)
        except UnsupportedError:
            if not name.startswith(f"{VERSIONS}/d"):
                raise
            self.inner.put(path, data)  # a detached version: its name is a random number

    def _versions(self, folder: str) -> GrantedVersions:
        """Return the versions of the table in a folder, which is empty for this one."""
        if not folder:
            return GrantedVersions(self.inner, self.manifests)
        return GrantedVersions(PrefixStore(self.inner, folder), self.manifests.below(folder))

    def _finished(self, path: str, read: Callable[[], T]) -> T:
        try:
            return read()
        except NotFoundError:
            folder, name = _split(path)
            version = version_of(name)
            if version is None or not self._versions(folder).finish_one(version):
                raise
        return read()

    def _checked(
        self, prefix: str, names: Callable[[], Iterator[T]], path_of: Callable[[T], str]
    ) -> Iterator[T]:
        """Yield what is listed; of a sorted listing of manifests the newest entry must be a part.

        Or a newer one: others may have gone on meanwhile, and cleaned up.
        """
        folder, name = _split(f"{prefix.rstrip('/')}/_")
        if prefix and name != f"{VERSIONS}/_":
            yield from names()
            return
        newest = self._versions(folder).finish_newest()
        possible = set() if newest is None or not prefix else _paths_of(newest.version)
        for each in names():
            path = _split(path_of(each))[1]
            if possible and newest is not None and (version_of(path) or 0) >= newest.version:
                possible = set()
            elif possible and path > max(possible):
                break
            yield each
        if possible and newest is not None:
            found = next((each for each in names() if _split(path_of(each))[1] in possible), None)
            if (
                found is not None
            ):  # a migration gave it its other name while pages of names were read
                yield found
                return
            message = (
                f"the manifest store knows version {newest.version} of this table, but its manifest"
                " is gone: the table was removed and its entries were not, or two tables share one key"
            )
            raise StoreError(message, where=Breadcrumb(file=newest.path))


@dataclass(frozen=True, slots=True)
class GrantedVersions:
    """The table in ``store``, whose versions ``manifests`` grants."""

    store: Store
    manifests: ManifestStore

    def create(self, version: int, path: str, data: bytes) -> None:
        """Commit a manifest.

        Raises AlreadyExistsError if the version is another's, StoreError if that is not known.
        """
        if read_if_there(self.store, path) is not None:
            message = "the version was committed, though the manifest store does not say so"
            raise AlreadyExistsError(message, where=Breadcrumb(file=path))
        entry = Entry(version, new_staging_path(path), len(data))
        self.store.put(entry.path, data)
        try:
            self.manifests.put_if_not_exists(entry)
        except AlreadyExistsError:
            if not self._is_ours(entry, data):
                raise
        with suppress(StoreError, NotFoundError):  # committed all the same; the next one goes on
            finish_with(self.store, self.manifests, entry, data)

    def finish_one(self, version: int) -> bool:
        """Finish a version, if it is committed by half; return whether it is committed at all.

        One that was finished a moment ago is as good as one that is finished now.
        """
        entry = self.manifests.get(version)
        if entry is not None and is_staged(entry):
            self._finish(entry)
        return entry is not None

    def finish_newest(self) -> Entry | None:
        """Finish the newest versions that are committed by half, oldest first; return the newest."""
        newest = entry = self.manifests.get_latest()
        half_done: list[Entry] = []
        while entry is not None and is_staged(entry):
            half_done.append(entry)
            entry = self.manifests.get(entry.version - 1)
        for entry in reversed(half_done):
            newest = self._finish(entry)
        return newest

    def _finish(self, entry: Entry) -> Entry:
        try:
            return finish(self.store, self.manifests, entry)
        except LanceError as error:
            message = (
                f"version {entry.version} is committed by half, and finishing it failed: {error}"
            )
            raise StoreError(message, where=Breadcrumb(file=entry.path)) from error

    def _is_ours(self, entry: Entry, data: bytes) -> bool:
        """Tell whether a version that is taken is the one that we want to make.

        A client asks again when an answer is lost, and finds what it has put itself: nobody else
        chose that path.  And where a table is going over from one naming scheme to the other
        (`pennon.table.commit.migrate_naming`), a version has the same bytes under its other name.
        """
        taken = self.manifests.get(entry.version)
        if taken is None or taken.path == entry.path:
            return taken is not None
        if final_path(taken) == final_path(entry):
            return False
        return self._bytes_of(self._finish(taken)) == data

    def _bytes_of(self, entry: Entry) -> bytes:
        """Return the manifest of an entry that is finished.

        A migration may have given it its other name meanwhile, which the entry does not say.  Raises StoreError if
        it has neither name: it was cleaned up.
        """
        for path in (entry.path, Naming.V2.manifest_path(DatasetVersion(entry.version))):
            found = read_if_there(self.store, path)
            if found is not None:
                return bytes(found)
        message = f"version {entry.version} was committed, and its manifest is gone"
        raise StoreError(message, where=Breadcrumb(file=entry.path))


def grants_versions(store: object) -> bool:
    """Return whether a manifest store grants the versions of a store, below any wrappers."""
    while isinstance(store, ForwardingStore) and not isinstance(store, ExternalStore):
        store = store.inner
    return isinstance(store, ExternalStore)


def _split(path: str) -> tuple[str, str]:
    """Return the folder of the table to which a path belongs, and the path in there.

    Only of manifests must that be known; all else counts as this table's.
    """
    folder, found, name = path.rpartition(f"/{VERSIONS}/")
    return (folder, f"{VERSIONS}/{name}") if found else ("", path)


def _paths_of(version: int) -> set[str]:
    """Return where the manifest of a version may lie: a table may change its naming scheme."""
    return {naming.manifest_path(version) for naming in Naming}
