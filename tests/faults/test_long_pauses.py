"""A writer that sleeps for days in the middle of a commit; found by the simulator (`tests/faults/simulation`)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from pennon.errors import CommitStateUnknown, NotFoundError, RetryableConflict, StoreError
from pennon.io.store import ObjectInfo, Store
from pennon.table.commit.loop import commit
from pennon.table.commit.options import LONG_AGO
from pennon.table.manifest import Manifest
from pennon.table.naming import Naming, transaction_path
from pennon.table.operations import Overwrite
from pennon.table.transaction import Transaction
from pennon.table.transaction_wire import read_transaction, serialize_transaction
from pennon.table.versions import latest_version, read_manifest
from pennon.testing import LatencyStore, WrappedStore
from tests.faults.test_commit import Hooked, new_store
from tests.unit.table.tables import FakeTime, append, new_fragment, overwrite

DAY = 86400.0


def slept(store: Store, clock: FakeTime, seconds: float, *gone: str) -> Hooked:
    """Return a store whose writer sleeps once it has written its transaction; files go meanwhile."""

    def sleep() -> None:
        clock.now += seconds
        for path in gone:
            store.delete(path)

    return Hooked(store, "put", sleep, late=True)


def options_of(clock: FakeTime) -> Callable[[], int]:
    return lambda: int(clock.now * 10**9)


def test_commit_after_long_pause_checks_its_data_files() -> None:
    store = new_store("slept with files")
    store.put("data/mine.lance", b"x" * 100)
    clock = FakeTime()
    sleepy = slept(store, clock, 8 * DAY, "data/mine.lance")
    options = clock.options(planned_ns=1, now_ns=options_of(clock))
    with pytest.raises(NotFoundError, match=r"data/mine\.lance"):
        commit(sleepy, append(2, new_fragment(name="mine.lance")), options)
    assert latest_version(store) == 2


def test_commit_after_long_pause_writes_another_transaction_file() -> None:
    """A clean-up may have taken the old one, or be about to."""
    store = new_store("slept with a transaction")
    mine = append(2)
    clock = FakeTime()
    path = transaction_path(mine.file_name)
    made = commit(slept(store, clock, 8 * DAY, path), mine, clock.options(now_ns=options_of(clock)))
    assert made.version == 3
    assert_has_new_file(store, made, mine)


def assert_has_new_file(store: Store, made: Manifest, mine: Transaction) -> None:
    """A version names a file of its transaction that was written after the pause."""
    assert made.transaction_file not in {None, mine.file_name}
    written = read_transaction(store, replace(made, transaction=None))
    assert written == serialize_transaction(mine)


class PausingLook(LatencyStore):
    """A far store that lists versions days after the transaction's file came, and has lost it meanwhile."""

    def __init__(self, inner: Store, clock: FakeTime, path: str) -> None:
        super().__init__(inner, 0.0)
        self.clock, self.lost = clock, path
        self.has_come = threading.Event()

    def before(self, verb: str, path: str) -> None:
        if verb == "list" and self.clock.now < DAY:
            assert self.has_come.wait(30)
            self.clock.now += 8 * DAY
            self.inner.delete(self.lost)

    def after(self, verb: str, path: str) -> None:
        if path == self.lost:
            self.has_come.set()


def test_commit_after_long_pause_in_its_look_writes_another_transaction_file() -> None:
    """The file is written while versions are listed."""
    store, mine, clock = new_store("slept while it looked"), append(2), FakeTime()
    path = transaction_path(mine.file_name)
    options = replace(clock.options(now_ns=options_of(clock)), base=read_manifest(store))
    made = commit(PausingLook(store, clock, path), mine, options)
    assert made.version == 3
    assert clock.now > 8 * DAY
    assert_has_new_file(store, made, mine)


class Aged(WrappedStore):
    """A store whose data files are of so many days ago, and whose other objects are of now."""

    def __init__(self, inner: Store, days: float) -> None:
        super().__init__(inner)
        self.days = days

    def info(self, path: str) -> ObjectInfo:
        found = super().info(path)
        age = timedelta(days=self.days if path.startswith("data/") else 0)
        return replace(found, modified=found.modified - age)


@pytest.mark.parametrize(("days", "is_refused"), [(5.9, False), (6.1, True)])
def test_commit_of_old_data_files_is_refused_near_clean_up_age(
    days: float, *, is_refused: bool
) -> None:
    """It may have looked before this commit, and slept since."""
    store = Aged(new_store(f"old files {days}"), days)
    store.put("data/mine.lance", b"x" * 100)
    mine = append(2, new_fragment(name="mine.lance"))
    options = FakeTime().options(planned_ns=LONG_AGO)
    if not is_refused:
        assert commit(store, mine, options).version == 3
        return
    with pytest.raises(RetryableConflict, match=r"1 files .* more than 6 days old.*data/mine"):
        commit(store, mine, options)
    assert latest_version(store) == 2


def test_commit_of_old_data_files_in_a_listed_version() -> None:
    """Those of an old version may be committed again, as long as it is there."""
    store = Aged(new_store("old files of an old version", 1), 100.0)
    (old,) = read_manifest(store).fragments
    store.put(old.files[0].store_path, b"x" * 100)
    commit(store, overwrite(1, new_fragment(name="others.lance")))
    again = overwrite(2, replace(old, files=tuple(replace(f, size_bytes=100) for f in old.files)))
    assert commit(store, again, FakeTime().options(planned_ns=LONG_AGO)).version == 3
    store.delete(Naming.V2.manifest_path(1))
    store.delete(Naming.V2.manifest_path(3))
    assert isinstance(again.operation, Overwrite)
    with pytest.raises(RetryableConflict, match="no version names them"):
        commit(
            store, overwrite(2, *again.operation.fragments), FakeTime().options(planned_ns=LONG_AGO)
        )


def test_commit_after_long_pause_does_not_resend_its_manifest() -> None:
    """Clean-up may have taken away what it names meanwhile."""
    store = new_store("slept while it asked")
    clock = FakeTime()

    class Sleepy(WrappedStore):
        def before(self, verb: str, path: str) -> None:
            if verb == "put_if_absent":
                clock.now += 8 * DAY
                message = "no answer"
                raise StoreError(message)

    with pytest.raises(CommitStateUnknown, match="whether version 3 was committed is not known"):
        commit(Sleepy(store), append(2), clock.options())
    assert latest_version(store) == 2


@pytest.mark.parametrize("next_is_there", [True, False])
def test_commit_with_the_next_version_cleaned_up_is_not_called_a_conflict(
    next_is_there: bool,
) -> None:
    """A tag may keep the version, and the next one went: whether it counts cannot be seen any more."""
    store = new_store("kept")
    time = FakeTime()

    def others() -> None:
        for version in range(3, 8):
            commit(store, append(version))
        for version in (1, 2, 5) if next_is_there else (1, 2, 4):
            store.delete(Naming.V2.manifest_path(version))
        time.now += 400

    hooked = Hooked(store, "put_if_absent", others, late=True)
    if next_is_there:
        assert commit(hooked, append(2), time.options()).version == 3
        return
    with pytest.raises(CommitStateUnknown, match="or the version after it, was cleaned up"):
        commit(hooked, append(2), time.options())
