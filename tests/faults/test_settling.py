"""A commit that landed is reported as success; found by the simulator (`tests/faults/simulation`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from pennon.errors import CommitStateUnknown, RetryableConflict, StoreError, UnsupportedError
from pennon.io import MemoryStore
from pennon.io.store import ObjectReader, Store
from pennon.table.commit.clock import Clock
from pennon.table.commit.lock import LockedStore
from pennon.table.commit.loop import commit
from pennon.table.commit.migrate_naming import migrate_to_v2
from pennon.table.commit.options import CommitOptions
from pennon.table.external import ExternalStore
from pennon.table.manifest_wire import serialize_manifest_file
from pennon.table.naming import VERSIONS, Naming
from pennon.table.transaction import Transaction
from pennon.table.versions import latest_version, read_manifest
from pennon.testing import Fault, FaultyStore, MemoryManifests, WrappedManifests, WrappedStore
from tests.faults.test_commit import Hooked, new_store
from tests.unit.table.tables import append, create_table


class PutOnly(WrappedStore):
    """A store that cannot create only what is absent."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        message = "no put-if-absent"
        raise UnsupportedError(message)


class Trusting(Hooked):
    """A store that relies on the sizes that it is told, as buckets do."""

    def open(self, path: str, size_bytes: int | None = None) -> ObjectReader:
        assert size_bytes in {None, self.inner.open(path).size_bytes}
        return super().open(path, size_bytes)


def old_table(name: str) -> MemoryStore:
    """Return a table of one version, named by scheme V1."""
    store = new_store(name, 0)
    create_table(store, naming=Naming.V1)
    return store


def committed(store: Store, version: int, transaction: Transaction) -> bool:
    return read_manifest(store, version).transaction_file == transaction.file_name


def test_commit_with_failed_listing_after_it_succeeds() -> None:
    store = new_store("listing fails late")
    mine = append(2)
    others = Hooked(store, "put_if_absent", lambda: commit(store, append(3)), late=True)
    faulty = FaultyStore(others, Fault(3, verbs=frozenset({"list"})))
    assert commit(faulty, mine).version == 3
    assert (faulty.fired, latest_version(store)) == (1, 4)


def test_manifest_finished_twice_without_put_if_absent() -> None:
    """The later one writes the same bytes anew, and the manifest looks younger than its successor."""
    objects, manifests = MemoryStore("finished twice"), MemoryManifests()
    for path in [info.path for info in objects.list("")]:
        objects.delete(path)
    others = ExternalStore(PutOnly(objects), manifests, objects.uri)
    create_table(others)

    def go_on_and_finish_again() -> None:
        final = Naming.V2.manifest_path(2)
        body = objects.read_whole(final).to_pybytes()
        commit(others, append(2))
        objects.put(final, body)

    hooked = Hooked(PutOnly(objects), "delete", go_on_and_finish_again, late=True)
    made = commit(ExternalStore(hooked, manifests, objects.uri), append(1))
    assert (made.version, latest_version(others)) == (2, 3)


@pytest.mark.parametrize("is_copied", [True, False])
def test_a_migration_copies_the_newest_manifest_first(*, is_copied: bool) -> None:
    """So copies are the older the higher their version."""
    store = old_table(f"migrated at once {is_copied}")
    mine = append(1)

    def go_on_and_migrate() -> None:
        commit(store, append(2))
        if is_copied:
            migrate_to_v2(store)
        else:  # it stopped after the first copy
            body = store.read_whole(Naming.V1.manifest_path(3)).to_pybytes()
            store.put(Naming.V2.manifest_path(3), body)

    made = commit(Hooked(store, "put_if_absent", go_on_and_migrate, late=True), mine)
    assert (made.version, latest_version(store)) == (2, 3)
    assert committed(store, 2, mine)


def test_commit_with_v1_name_below_newest_after_migration_conflicts() -> None:
    """The table was migrated, went on, and was cleaned up, while the writer slept."""
    store = old_table("migrated long ago")

    def meanwhile() -> None:
        commit(store, append(1))
        migrate_to_v2(store)
        for version in (2, 3):
            commit(store, append(version))
        store.delete(Naming.V2.manifest_path(2))

    with pytest.raises(RetryableConflict, match="does not descend"):
        commit(Hooked(store, "put_if_absent", meanwhile), append(1))
    assert latest_version(store) == 4


def test_read_with_v1_listing_after_migration_opens_v2_names() -> None:
    store = old_table("migrated after the listing")
    commit(store, append(1))
    hooked = Hooked(store, "list", lambda: migrate_to_v2(store), late=True)
    assert read_manifest(hooked).version == 2
    assert [name for name, _ in store.list_names(VERSIONS)] == [
        Naming.V2.manifest_path(version) for version in (2, 1)
    ]


def test_commit_after_version_with_both_names_reads_the_v2_manifest() -> None:
    """A writer that listed the old name only finds the other when it copies the old one."""
    store = old_table("made twice")
    commit(store, append(1))
    old = read_manifest(store)
    other = replace(old, table_metadata={"longer": "than the other"})
    for version in (1, 2):
        path = Naming.V2.manifest_path(version)
        store.put(path, store.read_whole(Naming.V1.manifest_path(version)).to_pybytes())
    store.delete(Naming.V2.manifest_path(2))

    def make_the_other() -> None:
        store.put(Naming.V2.manifest_path(2), serialize_manifest_file(other))

    made = commit(Trusting(store, "list", make_the_other, late=True), append(2))
    assert (made.version, made.table_metadata) == (3, other.table_metadata)


@pytest.mark.parametrize("refusals", [1, 100])
def test_commit_with_v1_name_while_migration_holds_the_lock(refusals: int) -> None:
    """It gives it back soon; if not, whether the version counts is not known."""
    store = old_table(f"locked while migrated {refusals}")
    calls: list[int] = []
    waits: list[float] = []

    @contextmanager
    def lock(version: int) -> Iterator[None]:
        calls.append(version)
        if 1 < len(calls) <= 1 + refusals:
            message = "another has the lock"
            raise RetryableConflict(message)
        yield

    def copy_first() -> None:
        body = store.read_whole(Naming.V1.manifest_path(1)).to_pybytes()
        store.put(Naming.V2.manifest_path(1), body)

    hooked = Hooked(store, "put_if_absent", copy_first, late=True)
    options = CommitOptions(clock=Clock(sleep=waits.append))
    if refusals == 1:
        assert commit(LockedStore(hooked, lock), append(1), options).version == 2
        assert (calls, len(waits)) == ([2, 2, 2], 1)
        return
    with pytest.raises(CommitStateUnknown, match="counts is not known"):
        commit(LockedStore(hooked, lock), append(1), options)
    assert len(calls) == 1 + len(waits) + 1


@pytest.mark.parametrize("naming", Naming)
def test_commit_with_listing_down_has_unknown_state_under_v1_names(naming: Naming) -> None:
    """Under an old name another may have made the same version under the new one, so it is not known."""
    store = new_store(f"silent after the commit {naming}", 0)
    create_table(store, naming=naming)

    class Silent(WrappedStore):
        landed = False

        def before(self, verb: str, path: str) -> None:
            if verb == "list" and self.landed:
                message = "no answer"
                raise StoreError(message)

        def after(self, verb: str, path: str) -> None:
            self.landed |= verb == "put_if_absent" and path.startswith(f"{VERSIONS}/")

    options = CommitOptions(clock=Clock(sleep=lambda _: None))
    if naming is Naming.V2:
        assert commit(Silent(store), append(1), options).version == 2
        return
    with pytest.raises(CommitStateUnknown, match="version 2 counts is not known: no answer"):
        commit(Silent(store), append(1), options)


def test_manifest_finished_by_another_reader_is_read_again() -> None:
    """It was not there, and is known to be finished: so it is there by now."""
    objects, manifests = MemoryStore("finished meanwhile"), MemoryManifests()
    for path in [info.path for info in objects.list("")]:
        objects.delete(path)
    store = ExternalStore(objects, manifests, objects.uri)
    create_table(store)
    commit(store, append(1))
    final = Naming.V2.manifest_path(2)
    data = objects.read_whole(final).to_pybytes()
    objects.delete(final)
    watcher = Hooked(objects, "get", lambda: objects.put(final, data))
    seen = ExternalStore(watcher, WrappedManifests(watcher, manifests), objects.uri)
    assert seen.read_whole(final).to_pybytes() == data
