"""Requests of a commit: without other writers, behind one, and after a lost race."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from pennon.io import MemoryStore
from pennon.io.limits import OBJECT_STORE, FetchLimits
from pennon.io.store import Store
from pennon.table.commit.loop import commit
from pennon.table.external import ExternalStore
from pennon.table.versions import latest_version
from pennon.testing import MemoryManifests, WrappedManifests, WrappedStore
from tests.unit.table.tables import FakeTime, append, create_table

TRIES = {"put_if_absent", "put_if_not_exists"}


class Far(WrappedStore):
    """A store in a bucket, as far as requests go; a rival comes before a verb is asked first."""

    def __init__(self, inner: Store, rival: Callable[[], object] | None = None) -> None:
        super().__init__(inner)
        self.rivals = [] if rival is None else [rival]
        self.verbs: Counter[str] = Counter()

    @property
    def limits(self) -> FetchLimits:
        """Return what makes it a far one."""
        return OBJECT_STORE

    def before(self, verb: str, path: str) -> None:
        if verb in TRIES and self.rivals:
            self.rivals.pop()()
        self.verbs[verb] += verb != "open"  # whose size was listed


class Kind:
    """A table, and its store seen through another."""

    def __init__(self, *, external: bool) -> None:
        self.objects, self.external = MemoryStore(f"requests {external}"), external
        for path in [path for path, _ in self.objects.list_names("")]:
            self.objects.delete(path)
        self.manifests = MemoryManifests()
        self.store = self.seen_through(WrappedStore(self.objects))
        create_table(self.store)

    def seen_through(self, watcher: WrappedStore) -> Store:
        if not self.external:
            return watcher
        manifests = WrappedManifests(watcher, self.manifests)
        return ExternalStore(watcher, manifests, self.objects.uri)

    def rival(self) -> None:
        commit(self.store, append(latest_version(self.store)))


@pytest.fixture(params=[False, True], ids=["alone", "external"])
def table(request: pytest.FixtureRequest) -> Kind:
    return Kind(external=request.param)


def requests(table: Kind, far: Far) -> int:
    made = commit(table.seen_through(far), append(1), FakeTime().options())
    assert made.version == latest_version(table.store)
    return far.verbs.total()


def test_commit_without_concurrent_writers_counts_requests(table: Kind) -> None:
    """List, newest manifest, transaction, put; a manifest store: who is newest, and five steps."""
    assert requests(table, Far(table.objects)) == (10 if table.external else 4)


@pytest.mark.parametrize("rivals", [1, 2])
def test_commit_after_concurrent_versions_counts_requests(table: Kind, rivals: int) -> None:
    """Each but the newest, which is read anyway, is one request more."""
    for _ in range(rivals):
        table.rival()
    assert requests(table, Far(table.objects)) == (10 if table.external else 4) + rivals - 1


def test_commit_after_a_lost_race_counts_requests(table: Kind) -> None:
    """The put that is refused, whose it is, and list and newest manifest once more."""
    far = Far(table.objects, table.rival)
    assert requests(table, far) == (18 if table.external else 8)
    assert far.verbs["put"] == (1 + 2 * table.external)
    assert far.verbs["delete"] == table.external


def test_commit_of_writer_far_behind_lists_once(table: Kind) -> None:
    """What is listed is not listed again."""
    for _ in range(6):
        table.rival()
    far = Far(table.objects)
    assert requests(table, far) == (17 if table.external else 10)
    assert far.verbs["list"] == 1
