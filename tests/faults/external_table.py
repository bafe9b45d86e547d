"""A table of one version, made through a manifest store, for the tests of such commits."""

from __future__ import annotations

import itertools

from pennon.io import MemoryStore
from pennon.table.commit.loop import commit
from pennon.table.external import Entry, ExternalStore
from pennon.table.naming import Naming
from pennon.testing import Fault, FaultyStore, MemoryManifests, WrappedManifests, WrappedStore
from tests.unit.table.tables import append, create_table, new_fragment

_NAMES = itertools.count()
SECOND = Naming.V2.manifest_path(2)
COMMIT = "put_if_not_exists"


class Table:
    """A table of one version, whose second one is about to be made."""

    def __init__(self, naming: Naming = Naming.V2) -> None:
        self.objects = MemoryStore(f"external commit {next(_NAMES)}")
        self.manifests = MemoryManifests()
        self.store = self.seen_through(WrappedStore(self.objects))
        create_table(self.store, naming=naming)

    def seen_through(self, watcher: WrappedStore) -> ExternalStore:
        return ExternalStore(watcher, WrappedManifests(watcher, self.manifests), self.objects.uri)

    def faulty(self, fault: Fault) -> ExternalStore:
        return self.seen_through(FaultyStore(self.objects, fault))

    def leave_half_done(self, steps: int) -> Entry:
        """Make version 2, as a writer does that dies after so many steps of five."""
        done = commit(self.store, append(1, new_fragment(name="mine.lance")))
        assert done.version == 2
        body = self.objects.read_whole(SECOND).to_pybytes()
        staged = Entry(2, f"{SECOND}-0000", len(body))
        if steps < 5:
            self.objects.put(staged.path, body)
        if steps < 4:
            self.manifests.entries[2] = staged
        if steps < 3:
            self.objects.delete(SECOND)
        if steps < 2:
            del self.manifests.entries[2]
        return staged

    def files(self) -> list[str]:
        return [path for path, _ in self.objects.list_names("_versions")]
