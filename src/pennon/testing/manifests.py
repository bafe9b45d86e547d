"""External manifest stores for tests: one in memory, and one that a wrapped store watches."""

from __future__ import annotations

from dataclasses import dataclass, field

from pennon.errors import AlreadyExistsError, Breadcrumb, NotFoundError
from pennon.table.external import Entry, ManifestStore
from pennon.testing.wrapped import WrappedStore


@dataclass(frozen=True, slots=True)
class MemoryManifests:
    """A `ManifestStore` in a dict; handles that are given one dict are of one table."""

    entries: dict[int, Entry] = field(default_factory=dict)
    branches: dict[str, MemoryManifests] = field(default_factory=dict)

    def get(self, version: int) -> Entry | None:
        """Return what is known of a version."""
        return self.entries.get(version)

    def get_latest(self) -> Entry | None:
        """Return the entry of the highest version."""
        known = self.entries.copy()
        return known[max(known)] if known else None

    def put_if_not_exists(self, entry: Entry) -> None:
        """Add an entry."""
        if self.entries.setdefault(entry.version, entry) is not entry:
            message = "the version is taken"
            raise AlreadyExistsError(message, where=Breadcrumb(file=entry.path))

    def put_if_exists(self, entry: Entry) -> None:
        """Replace the entry of a version."""
        if entry.version not in self.entries:
            message = f"the manifest store knows no version {entry.version}"
            raise NotFoundError(message, where=Breadcrumb(file=entry.path))
        self.entries[entry.version] = entry

    def below(self, folder: str) -> MemoryManifests:
        """Return the manifests of the table in a folder below this one."""
        return self.branches.setdefault(folder, MemoryManifests())


@dataclass(frozen=True, slots=True)
class WrappedManifests:
    """A `ManifestStore` whose verbs are told to a `WrappedStore`, as if they were verbs of its own.

    So a `FaultyStore` fails either, and counts both.
    """

    watcher: WrappedStore
    inner: ManifestStore

    def get(self, version: int) -> Entry | None:
        """Return what is known of a version."""
        self.watcher.before("get", str(version))
        found = self.inner.get(version)
        self.watcher.after("get", str(version))
        return found

    def get_latest(self) -> Entry | None:
        """Return the entry of the highest version."""
        self.watcher.before("get_latest", "")
        found = self.inner.get_latest()
        self.watcher.after("get_latest", "")
        return found

    def put_if_not_exists(self, entry: Entry) -> None:
        """Add an entry."""
        self.watcher.before("put_if_not_exists", entry.path)
        self.inner.put_if_not_exists(entry)
        self.watcher.after("put_if_not_exists", entry.path)

    def put_if_exists(self, entry: Entry) -> None:
        """Replace the entry of a version."""
        self.watcher.before("put_if_exists", entry.path)
        self.inner.put_if_exists(entry)
        self.watcher.after("put_if_exists", entry.path)

    def below(self, folder: str) -> WrappedManifests:
        """Return the manifests of the table in a folder below this one."""
        return WrappedManifests(self.watcher, self.inner.below(folder))
