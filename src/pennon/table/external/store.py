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

Source: seeds, 002 "External Manifest Store"; commit-and-faults reference, 1.7.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from pennon.errors import (
    AlreadyExistsError,
    Breadcrumb,
    LanceError,
    NotFoundError,
    StoreError,
    UnsupportedError,
)
from pennon.io.limits import FetchLimits
from pennon.io.store import ObjectInfo, ObjectReader, ObjectWriter, Store
from pennon.table.external.finish import finish, finish_with, read_if_there
from pennon.table.external.manifests import Entry, ManifestStore
from pennon.table.external.staging import final_path, is_staged, new_staging_path, version_of
from pennon.table.naming import VERSIONS, Naming

T = TypeVar("T")
_DETACHED = f"{VERSIONS}/d"


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
        """Yield the objects under a folder; all commits are finished first."""
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

        Raises AlreadyExistsError if the version is another's, StoreError if that is not known.
        """
        version = version_of(path)
        if version is None:
            self._put_other(path, data)
            return
        if read_if_there(self.inner, path) is not None:
            message = "the version was committed, though the manifest store does not say so"
            raise AlreadyExistsError(message, where=Breadcrumb(file=path))
        entry = Entry(version, new_staging_path(path), len(data))
        self.inner.put(entry.path, data)
        try:
            self.manifests.put_if_not_exists(entry)
        except AlreadyExistsError:
            if not self._gets_another_name(entry, data):
                raise
        with suppress(StoreError, NotFoundError):  # committed all the same; the next one goes on
            finish_with(self.inner, self.manifests, entry, data)

    def delete(self, path: str) -> None:
        """Delete an object; what the manifest store knows of it stays, and does no harm."""
        self.inner.delete(path)

    def _put_other(self, path: str, data: bytes) -> None:
        """Create what is no version's manifest: tags, branches, detached versions."""
        try:
            self.inner.put_if_absent(path, data)
        except UnsupportedError:
            if not path.startswith(_DETACHED):
                raise
            self.inner.put(path, data)  # its name is a random number

    def _gets_another_name(self, entry: Entry, data: bytes) -> bool:
        """Tell whether a version has the same bytes under the name of the other naming scheme.

        Then a table is going over from one scheme to the other (`pennon.table.migration`).
        """
        taken = self.manifests.get(entry.version)
        if taken is None or final_path(taken) == final_path(entry):
            return False
        body = self.inner.read_whole(self._finish(taken).path)
        return bytes(body) == data

    def _finished(self, path: str, read: Callable[[], T]) -> T:
        try:
            return read()
        except NotFoundError:
            version = version_of(path)
            entry = None if version is None else self.manifests.get(version)
            if entry is None or not is_staged(entry):
                raise
        self._finish(entry)
        return read()

    def _finish(self, entry: Entry) -> Entry:
        try:
            return finish(self.inner, self.manifests, entry)
        except LanceError as error:
            message = (
                f"version {entry.version} is committed by half, and finishing it failed: {error}"
            )
            raise StoreError(message, where=Breadcrumb(file=entry.path)) from error

    def _finish_newest(self) -> Entry | None:
        """Finish the newest commits that are half done, oldest first; return the newest entry."""
        newest = entry = self.manifests.get_latest()
        half_done: list[Entry] = []
        while entry is not None and is_staged(entry):
            half_done.append(entry)
            entry = self.manifests.get(entry.version - 1)
        for entry in reversed(half_done):
            newest = self._finish(entry)
        return newest

    def _checked(
        self, prefix: str, names: Callable[[], Iterator[T]], path_of: Callable[[T], str]
    ) -> Iterator[T]:
        """Yield what is listed; of a sorted listing of manifests the newest entry must be a part."""
        if prefix and prefix.rstrip("/") != VERSIONS:
            yield from names()
            return
        newest = self._finish_newest()
        possible = _paths_of(newest) if newest is not None and prefix else set()
        for name in names():
            path = path_of(name)
            if path in possible:
                possible = set()
            elif possible and path > max(possible):
                break
            yield name
        if possible and newest is not None:
            message = (
                f"the manifest store knows version {newest.version} of this table, but its manifest"
                " is gone: the table was removed and its entries were not, or two tables share one key"
            )
            raise StoreError(message, where=Breadcrumb(file=newest.path))


def _paths_of(newest: Entry) -> set[str]:
    """Return where a finished manifest may lie; a table may have changed its naming scheme."""
    return {naming.manifest_path(newest.version) for naming in Naming}
