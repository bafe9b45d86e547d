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
answer to step 2 was lost, the committer reads the manifest back (`pennon.table.landing`), which
finishes it, whosesoever it is.  A manifest that lost is left to clean-up.

A folder below that has versions is a table of its own: a branch.

Source: seeds, 002 "External Manifest Store"; commit-and-faults reference, 1.7.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import TypeVar

import pyarrow as pa

from pennon.errors import Breadcrumb, NotFoundError, StoreError, UnsupportedError
from pennon.io.below import BelowStore
from pennon.io.limits import FetchLimits
from pennon.io.store import ObjectInfo, ObjectReader, ObjectWriter, Store
from pennon.table.external.granted import GrantedVersions
from pennon.table.external.manifests import ManifestStore
from pennon.table.external.staging import version_of
from pennon.table.naming import VERSIONS, Naming
from pennon.values import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ExternalStore:
    """The `Store` ``inner``, whose manifests are committed through ``manifests``.

    ``uri`` is what the user wrote, which opens both.
    """

    inner: Store
    manifests: ManifestStore
    uri: str

    @property
    def limits(self) -> FetchLimits | None:
        """Return how the object store likes to be asked."""
        return self.inner.limits

    def open(self, path: str, size_bytes: int | None = None) -> ObjectReader:
        """Open an object; the manifest of a commit that is half done is finished first."""
        return self._finished(path, lambda: self.inner.open(path, size_bytes))

    def read_whole(self, path: str) -> pa.Buffer:
        """Read a whole object; as `open`."""
        return self._finished(path, lambda: self.inner.read_whole(path))

    def identity(self, path: str, size_bytes: int | None = None) -> Hashable:
        """Return the identity that the object has in its store."""
        return self.inner.identity(path, size_bytes)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects under a folder; where versions are listed, they are finished first."""
        return self._checked(prefix, lambda: self.inner.list(prefix), lambda info: info.path)

    def list_names(self, prefix: str) -> Iterator[tuple[str, int | None]]:
        """Yield path and size of the objects under a folder; as `list`."""
        return self._checked(prefix, lambda: self.inner.list_names(prefix), lambda pair: pair[0])

    def open_writer(self, path: str) -> ObjectWriter:
        """Start a new object."""
        return self.inner.open_writer(path)

    def put(self, path: str, data: bytes) -> None:
        """Write a small object whole."""
        self.inner.put(path, data)

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

    def delete(self, path: str) -> None:
        """Delete an object; what the manifest store knows of it stays, and does no harm."""
        self.inner.delete(path)

    def _versions(self, folder: str) -> GrantedVersions:
        """Return the versions of the table in a folder, which is empty for this one."""
        if not folder:
            return GrantedVersions(self.inner, self.manifests)
        return GrantedVersions(BelowStore(self.inner, folder), self.manifests.below(folder))

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
            message = (
                f"the manifest store knows version {newest.version} of this table, but its manifest"
                " is gone: the table was removed and its entries were not, or two tables share one key"
            )
            raise StoreError(message, where=Breadcrumb(file=newest.path))


def grants_versions(store: object) -> bool:
    """Tell whether a manifest store grants the versions of a store, whatever is around it."""
    while store is not None and not isinstance(store, ExternalStore):
        around = (getattr(store, name, None) for name in ("inner", "above", "home"))
        store = next((each for each in around if each is not None), None)
    return store is not None


def _split(path: str) -> tuple[str, str]:
    """Return the folder of the table to which a path belongs, and the path in there.

    Only of manifests must that be known; all else counts as this table's.
    """
    folder, found, name = path.rpartition(f"/{VERSIONS}/")
    return (folder, f"{VERSIONS}/{name}") if found else ("", path)


def _paths_of(version: int) -> set[str]:
    """Return where the manifest of a version may lie: a table may change its naming scheme."""
    return {naming.manifest_path(version) for naming in Naming}
