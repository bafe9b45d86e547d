"""Commits keep acknowledged rows through pauses, rebases, migrations and long jobs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from pennon.core.units import FieldId, FragmentId
from pennon.errors import (
    AlreadyExistsError,
    ArgumentError,
    CommitError,
    CommitStateUnknown,
    FormatError,
    NotFoundError,
    RetryableConflict,
    StoreError,
)
from pennon.io import MemoryStore
from pennon.io.store import Store
from pennon.schema.field import Schema
from pennon.table.commit.loop import commit
from pennon.table.commit.migrate_naming import migrate_to_v2
from pennon.table.commit.options import CommitPolicy
from pennon.table.deletion import read_deletions, write_deletions
from pennon.table.fragment import Fragment
from pennon.table.naming import Naming
from pennon.table.operations import Delete, MapUpdate, Project, Update, UpdateConfig
from pennon.table.roaring import Offsets
from pennon.table.transaction import Transaction
from pennon.table.transaction_wire import parse_transaction, read_transaction
from pennon.table.versions import (
    latest_location,
    latest_version,
    list_locations,
    read_manifest,
)
from pennon.testing import Fault, FaultyStore
from tests.faults.test_commit import Hooked, NoDeletes, files_of, new_store
from tests.unit.table.tables import SCHEMA, FakeTime, append, create_table, new_fragment

ZERO = FragmentId(0)


def rows(*offsets: int) -> Offsets:
    return np.array(offsets, np.uint32)


def delete_of(store: Store, version: int, *offsets: int) -> Transaction:
    """Return a delete of rows of fragment 0, planned on a version; its file is written."""
    fragment = read_manifest(store, version).fragments[0]
    dead = np.union1d(read_deletions(store, fragment), rows(*offsets)).astype(np.uint32)
    deletion = write_deletions(store, ZERO, version, dead)
    return Transaction(version, Delete((replace(fragment, deletion_file=deletion),), ()))


def dead_rows(store: Store) -> list[int]:
    first: Fragment = read_manifest(store).fragments[0]
    return read_deletions(store, first).tolist()


@pytest.mark.parametrize("removed", [1, 3])
def test_commit_below_the_newest_version_is_a_conflict(removed: int) -> None:
    """The writer slept before its write; others went on, and clean-up freed the name."""
    store = new_store(f"buried{removed}")
    clock = FakeTime()

    def meanwhile() -> None:
        clock.now += 60
        for version in range(2, 8):
            commit(store, append(version))
        for version in range(3, 3 + removed):
            store.delete(Naming.V2.manifest_path(version))

    with pytest.raises(RetryableConflict, match="does not descend"):
        commit(NoDeletes(Hooked(store, "put_if_absent", meanwhile)), append(2), clock.options())
    assert latest_version(store) == 8


def test_commit_with_cleaned_up_version_has_unknown_state() -> None:
    """It may have counted: others may have followed it."""
    store = new_store("cleaned up at once")
    clock = FakeTime()

    def meanwhile() -> None:
        clock.now += 60
        for version in range(3, 6):
            commit(store, append(version))
        for version in range(1, 5):
            store.delete(Naming.V2.manifest_path(version))

    hooked = Hooked(store, "put_if_absent", meanwhile, late=True)
    with pytest.raises(CommitStateUnknown, match="was cleaned up by now, the newest is 6"):
        commit(NoDeletes(hooked), append(2), clock.options())


def test_commit_below_the_newest_version_without_pause_is_a_conflict() -> None:
    """A clean-up need not wait, and where to look again is no request one always does."""
    store = new_store("buried at once")

    def meanwhile() -> None:
        for version in range(2, 5):
            commit(store, append(version))
        for version in (3, 4):
            store.delete(Naming.V2.manifest_path(version))

    with pytest.raises(RetryableConflict, match="does not descend"):
        commit(NoDeletes(Hooked(store, "put_if_absent", meanwhile)), append(2))
    assert latest_version(store) == 5


def test_concurrent_creates_with_different_naming_schemes_have_one_winner() -> None:
    store = new_store("two names", 0)
    racing = Hooked(store, "put_if_absent", lambda: create_table(store, 7))
    with pytest.raises(AlreadyExistsError):
        create_table(racing, 5, naming=Naming.V1)
    assert read_manifest(store).fragments[0].physical_rows == 7


def test_commit_followed_by_other_versions_succeeds() -> None:
    store = new_store("at once")

    def others() -> None:
        for version in (3, 4):
            commit(store, append(version))

    made = commit(Hooked(store, "put_if_absent", others, late=True), append(2))
    assert (made.version, latest_version(store)) == (3, 5)


def test_deletions_are_united_on_every_attempt() -> None:
    store = new_store("united")
    mine = delete_of(store, 2, 1)
    commit(store, delete_of(store, 2, 2))

    def another() -> None:
        commit(store, delete_of(store, 3, 5))

    racing = NoDeletes(Hooked(store, "put_if_absent", another))
    made = commit(racing, mine, FakeTime().options(), {ZERO: rows(1)})
    assert (made.version, dead_rows(store)) == (5, [1, 2, 5])
    wire = read_transaction(store, made)
    assert wire is not None
    written = parse_transaction(wire)
    assert (written.uuid, written.read_version) == (mine.uuid, 4)
    again = commit(store, mine, None, {ZERO: rows(1)})
    assert (again.version, latest_version(store)) == (5, 5)


def test_commit_with_reused_uuid_makes_a_new_version() -> None:
    store = new_store("reused")
    mine = delete_of(store, 2, 1)
    commit(store, mine)
    other = replace(mine, operation=Delete((), (FragmentId(1),)))
    assert commit(store, other).version == 4


def test_one_row_deleted_twice_is_retryable() -> None:
    store = new_store("twice")
    mine = delete_of(store, 2, 1, 2)
    commit(store, delete_of(store, 2, 2, 3))
    with pytest.raises(RetryableConflict, match="row 2 of fragment 0"):
        commit(store, mine, None, {ZERO: rows(1, 2)})
    with pytest.raises(RetryableConflict, match="conflicts with delete"):
        commit(store, mine)
    assert dead_rows(store) == [2, 3]


def test_concurrent_deletes_of_all_rows_remove_the_fragment() -> None:
    store = new_store("nothing left")
    mine = delete_of(store, 2, *range(5))
    commit(store, delete_of(store, 2, *range(5, 10)))
    made = commit(store, mine, None, {ZERO: rows(*range(5))})
    assert [fragment.id for fragment in made.fragments] == [1]


def test_update_is_rebased_over_concurrent_deletes() -> None:
    store = new_store("update")
    gone = delete_of(store, 2, 1).operation
    assert isinstance(gone, Delete)
    mine = Transaction(2, Update((), gone.updated, (new_fragment(1, "moved.lance"),)))
    commit(store, delete_of(store, 2, 4))
    commit(store, append(3))
    commit(store, mine, None, {ZERO: rows(1)})
    assert dead_rows(store) == [1, 4]
    assert files_of(store).count("moved.lance") == 1


def old_names(name: str, versions: int = 3) -> MemoryStore:
    store = new_store(name, 0)
    create_table(store, naming=Naming.V1)
    for version in range(1, versions):
        commit(store, append(version))
    return store


def names_of(store: Store) -> set[Naming]:
    return {location.naming for location in list_locations(store)}


def test_migration_to_v2_names_keeps_all_versions() -> None:
    store = old_names("migration")
    before = [read_manifest(store, version) for version in (1, 2, 3)]
    assert migrate_to_v2(store) == 3
    assert names_of(store) == {Naming.V2}
    assert [read_manifest(store, version) for version in (1, 2, 3)] == before
    assert migrate_to_v2(store) == 0
    assert commit(store, append(3)).version == 4
    assert latest_location(store).naming is Naming.V2


@pytest.mark.parametrize("kind", ["before", "after", "torn"])
def test_interrupted_migration_to_v2_names_is_finished(kind: str) -> None:
    """The table opens at its newest version all the time, and another run ends it."""
    for nth in range(1, 100):
        store = old_names(f"interrupted {kind}")
        faulty = FaultyStore(store, Fault(nth, kind))
        try:
            migrate_to_v2(faulty)
        except (StoreError, AlreadyExistsError):
            assert latest_version(store) == 3
            assert commit(store, append(3)).version == 4
            assert len(read_manifest(store).fragments) == 4
        migrate_to_v2(store)
        assert names_of(store) == {Naming.V2}
        assert {location.is_mixed for location in list_locations(store)} == {False}
        if not faulty.fired:
            return
    pytest.fail("the faults never ended")


def test_migration_without_copied_manifest_keeps_the_old_one() -> None:
    """A store that keeps its manifests elsewhere, too, takes no second name for a version."""
    store = old_names("keeps")

    class Refuses(NoDeletes):
        def put_if_absent(self, path: str, data: bytes) -> None:
            raise AlreadyExistsError(path)

    with pytest.raises(NotFoundError):
        migrate_to_v2(Refuses(store))
    assert latest_version(store) == 3


def test_a_commit_during_a_migration_is_not_lost() -> None:
    """It saw old names only, and lands beside new ones."""
    store = old_names("meanwhile")
    made = commit(
        Hooked(store, "put_if_absent", lambda: migrate_to_v2(store)),
        append(3, new_fragment(name="mine.lance")),
    )
    assert made.version == 4
    assert latest_location(store).naming is Naming.V2
    assert files_of(store).count("mine.lance") == 1
    migrate_to_v2(store)
    assert names_of(store) == {Naming.V2}


def test_commit_with_v1_name_is_rebased_after_migration() -> None:
    store = old_names("gives way")

    def meanwhile() -> None:
        migrate_to_v2(store)
        commit(store, append(3, new_fragment(name="theirs.lance")))

    racing = Hooked(store, "put_if_absent", meanwhile)
    made = commit(racing, append(3, new_fragment(name="mine.lance")), FakeTime().options())
    assert made.version == 5
    files = files_of(store)
    assert (files.count("mine.lance"), files.count("theirs.lance")) == (1, 1)
    migrate_to_v2(store)
    assert names_of(store) == {Naming.V2}
    assert files_of(store) == files


def test_migration_of_version_with_two_different_manifests_is_refused() -> None:
    """Another library's writer made one of them: nobody may choose."""
    store = old_names("two")
    migrate_to_v2(store)
    stray = store.read_whole(Naming.V2.manifest_path(2)).to_pybytes()
    store.put(Naming.V1.manifest_path(3), stray)
    for _ in range(2):
        with pytest.raises(FormatError, match="version 3 was committed twice"):
            migrate_to_v2(store)
    assert latest_version(store) == 3


def test_commit_after_v1_name_above_v2_names() -> None:
    store = old_names("follows", 2)
    migrated = store.read_whole(Naming.V1.manifest_path(2)).to_pybytes()
    commit(store, append(2, new_fragment(name="late.lance")))
    store.put(Naming.V2.manifest_path(2), migrated)
    assert latest_version(store) == 3
    assert commit(store, append(3)).version == 4
    assert files_of(store).count("late.lance") == 1
    assert store.read_whole(Naming.V2.manifest_path(3)).size
    migrate_to_v2(store)
    assert names_of(store) == {Naming.V2}


def test_commit_of_a_long_job_checks_its_data_files() -> None:
    store = new_store("long job")
    transaction = append(2, new_fragment(name="a.lance"), new_fragment(name="b.lance"))
    store.put("data/a.lance", b"x" * 100)
    now = time.time_ns()
    old = FakeTime().options(planned_ns=now - 3700 * 10**9)
    with pytest.raises(NotFoundError, match=r"1 files .* not there: data/b\.lance"):
        commit(store, transaction, old)
    store.put("data/b.lance", b"x" * 99)
    with pytest.raises(FormatError, match="99 bytes, not 100"):
        commit(store, transaction, old)
    assert latest_version(store) == 2
    young = FakeTime().options(planned_ns=now)
    assert commit(store, transaction, young).version == 3


def test_commit_of_busy_table_stops_at_the_timeout() -> None:
    store = new_store("time over")
    clock = FakeTime()
    calls: list[Callable[[], object]] = []

    class Busy(NoDeletes):
        def before(self, verb: str, path: str) -> None:
            if verb == "put_if_absent":
                calls.append(lambda: None)
                commit(store, append(latest_version(store)))
                clock.now += 10

    with pytest.raises(CommitError, match="not committed within 25"):
        commit(Busy(store), append(2), clock.options(policy=CommitPolicy(timeout_s=25)))
    assert len(calls) == 3


def test_commit_after_concurrent_schema_change_is_retryable() -> None:
    """The caller's own fault is an ArgumentError; what another made of the table is a conflict."""
    store = new_store("no longer fits")
    mine = Transaction(2, UpdateConfig(fields={FieldId(1): MapUpdate({"k": "v"})}))
    with pytest.raises(ArgumentError, match="no field with id 9"):
        commit(store, Transaction(2, UpdateConfig(fields={FieldId(9): MapUpdate({})})))
    commit(store, Transaction(2, Project(Schema(SCHEMA.fields[:1]))))
    with pytest.raises(RetryableConflict, match=r"does not fit version 3 any more: .* id 1"):
        commit(store, mine)
