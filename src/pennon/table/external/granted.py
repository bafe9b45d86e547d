"""The versions of one table, as its manifest store grants them."""

from __future__ import annotations

from contextlib import suppress

from pennon.errors import AlreadyExistsError, Breadcrumb, LanceError, NotFoundError, StoreError
from pennon.io.store import Store
from pennon.table.external.finish import finish, finish_with, read_if_there
from pennon.table.external.manifests import Entry, ManifestStore
from pennon.table.external.staging import final_path, is_staged, new_staging_path
from pennon.values import dataclass


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
        (`pennon.table.migration`), a version has the same bytes under its other name.
        """
        taken = self.manifests.get(entry.version)
        if taken is None or taken.path == entry.path:
            return taken is not None
        if final_path(taken) == final_path(entry):
            return False
        body = self.store.read_whole(self._finish(taken).path)
        return bytes(body) == data
