"""Commits while the store fails, while answers get lost, and while others commit."""

from __future__ import annotations

import multiprocessing
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from pennon.core.units import DatasetVersion
from pennon.errors import (
    AlreadyExistsError,
    ArgumentError,
    CommitStateUnknown,
    IncompatibleConflict,
    NotFoundError,
    RetryableConflict,
    StoreError,
    UnsupportedError,
)
from pennon.io import MemoryStore, open_store
from pennon.io.store import Store
from pennon.table.commit.loop import commit
from pennon.table.commit.options import CommitOptions, CommitPolicy
from pennon.table.manifest import Manifest
from pennon.table.manifest_wire import serialize_manifest_file
from pennon.table.naming import Naming
from pennon.table.operations import Other
from pennon.table.transaction import Transaction
from pennon.table.versions import latest_version, list_versions, read_manifest
from pennon.testing import Fault, FaultyStore, WrappedStore
from tests.unit.table.tables import (
    FakeTime,
    append,
    create_table,
    new_fragment,
    overwrite,
)

PUT = frozenset({"put_if_absent"})
READ = frozenset({"read"})


class NoDeletes(WrappedStore):
    """A store on which nothing may be deleted."""

    def delete(self, path: str) -> None:
        message = f"{path} was deleted"
        raise AssertionError(message)


class Hooked(WrappedStore):
    """Runs something once, just before or after the first call of a verb on some path."""

    def __init__(
        self, inner: Store, verb: str, hook: Callable[[], object], *, late: bool = False
    ) -> None:
        super().__init__(inner)
        self._verb, self._late = verb, late
        self._hooks = [hook]

    def before(self, verb: str, path: str) -> None:
        if verb == self._verb and not self._late and self._hooks:
            self._hooks.pop()()

    def after(self, verb: str, path: str) -> None:
        if verb == self._verb and self._late and self._hooks:
            self._hooks.pop()()


def files_of(store: Store) -> list[str]:
    """Return the data files of the newest version, one entry each time one is named."""
    return [file.path for f in read_manifest(store).fragments for file in f.files]


def new_store(name: str, versions: int = 2) -> MemoryStore:
    store = MemoryStore(name)
    for path in [info.path for info in store.list("")]:
        store.delete(path)
    if versions:
        create_table(store)
    for version in range(1, versions):
        commit(store, append(version))
    return store


OPERATIONS: dict[str, tuple[int, Callable[[], Transaction]]] = {
    "create": (0, lambda: overwrite(0, new_fragment(name="mine.lance"))),
    "append": (2, lambda: append(2, new_fragment(name="mine.lance"))),
    "append, rebased": (3, lambda: append(1, new_fragment(name="mine.lance"))),
    "overwrite": (2, lambda: overwrite(2, new_fragment(name="mine.lance"))),
}


@pytest.mark.parametrize("kind", ["before", "after", "torn"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_fault_at_any_call_leaves_the_old_or_the_new_version(name: str, kind: str) -> None:
    old, make = OPERATIONS[name]
    for nth in range(1, 100):
        store = new_store(f"fault {name} {kind}", old)
        faulty = FaultyStore(NoDeletes(store), Fault(nth, kind))
        transaction = make()
        try:
            done = commit(faulty, transaction, FakeTime().options())
        except StoreError:
            assert count_versions(store) == old
        else:
            assert done.version == old + 1
            assert read_manifest(store) == done
        again = commit(NoDeletes(store), transaction)
        assert again.version == latest_version(store) == old + 1
        assert files_of(store).count("mine.lance") == 1
        if not faulty.fired:
            assert nth > 3
            return
    pytest.fail("the faults never ended")


def count_versions(store: Store) -> int:
    try:
        return latest_version(store)
    except NotFoundError:
        return 0


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_lost_answer_is_recognised_as_success(name: str) -> None:
    old, make = OPERATIONS[name]
    store = new_store(f"lost {name}", old)
    faulty = FaultyStore(store, Fault(1, "after", PUT))
    done = commit(faulty, make(), FakeTime().options())
    assert (faulty.fired, faulty.calls) == (1, 1)
    assert done.version == latest_version(store) == old + 1


@pytest.mark.parametrize("error", [StoreError, AlreadyExistsError])
def test_commit_retries_a_manifest_write_that_was_not_applied(error: type[StoreError]) -> None:
    """Some stores say 409, "it exists", of a write that they did not apply."""
    store = new_store("resend")
    faulty = FaultyStore(store, Fault(1, "before", PUT, error=lambda: error("409")))
    time = FakeTime()
    assert commit(faulty, append(2), time.options()).version == 3
    assert (faulty.fired, faulty.calls) == (1, 2)
    assert len(time.pauses) == 1


def test_commit_to_store_without_writes_has_unknown_state() -> None:
    store = new_store("dead")
    faulty = FaultyStore(store, Fault(1, "before", PUT, repeat=True))
    transaction = append(2)
    with pytest.raises(CommitStateUnknown, match="version 3"):
        commit(faulty, transaction, FakeTime().options())
    assert latest_version(store) == 2
    assert commit(store, transaction).version == 3


def test_commit_with_unknown_state_can_be_retried() -> None:
    store = new_store("unknown")
    deaf = FaultyStore(
        FaultyStore(store, Fault(1, "after", PUT)), Fault(2, "before", READ, repeat=True)
    )
    transaction = append(2, new_fragment(name="mine.lance"))
    with pytest.raises(CommitStateUnknown):
        commit(deaf, transaction, FakeTime().options())
    commit(store, append(3))
    assert latest_version(store) == 4
    assert commit(store, transaction).version == 3
    assert latest_version(store) == 4
    assert files_of(store).count("mine.lance") == 1


def test_a_lost_answer_and_then_a_newer_version() -> None:
    """Our write did not land, the answer said nothing, and the table went on without us."""
    store = new_store("passed")

    def vanish() -> None:
        manifest = read_manifest(store)
        later = replace(manifest, version=DatasetVersion(4), transaction=None)
        store.put(Naming.V2.manifest_path(4), serialize_manifest_file(later))
        message = "no answer"
        raise StoreError(message)

    with pytest.raises(CommitStateUnknown):
        commit(Hooked(store, "put_if_absent", vanish), append(2), FakeTime().options())


def test_commit_to_store_without_put_if_absent_is_refused() -> None:
    def refuse() -> UnsupportedError:
        return UnsupportedError("no put-if-absent here")

    store = new_store("blind")
    with pytest.raises(UnsupportedError, match="put-if-absent"):
        commit(FaultyStore(store, Fault(1, "before", PUT, error=refuse)), append(2))
    assert latest_version(store) == 2


def test_commit_with_uuid_of_another_transaction_is_not_a_success() -> None:
    store = new_store("uuid")
    first = append(2)
    other = replace(append(2), uuid=first.uuid)
    hooked = Hooked(store, "put_if_absent", lambda: commit(store, first))
    assert commit(hooked, other, FakeTime().options()).version == 4
    assert latest_version(store) == 4


@pytest.mark.parametrize("between", [1, 2])
def test_append_after_concurrent_appends_is_rebased(between: int) -> None:
    store = new_store("rebase")

    def others() -> None:
        for version in range(between):
            commit(store, append(2 + version, new_fragment(name=f"other{version}.lance")))

    done = commit(
        Hooked(store, "put_if_absent", others),
        append(2, new_fragment(name="mine.lance")),
        FakeTime().options(),
    )
    assert done.version == 3 + between
    names = files_of(store)[2:]
    assert names == [*(f"other{version}.lance" for version in range(between)), "mine.lance"]
    assert [fragment.id for fragment in done.fragments] == list(range(3 + between))
    assert len(list(store.list("_transactions"))) == 3 + between


@pytest.mark.parametrize(
    ("mine", "theirs", "conflict"),
    [
        (append, overwrite, IncompatibleConflict),
        (overwrite, overwrite, RetryableConflict),
        (overwrite, append, None),
    ],
)
@pytest.mark.parametrize("verb", ["list", "put", "put_if_absent"])
def test_conflicting_commit_at_every_phase(
    verb: str,
    mine: Callable[[int], Transaction],
    theirs: Callable[[int], Transaction],
    conflict: type[RetryableConflict] | None,
) -> None:
    store = new_store("phase")
    hooked = Hooked(NoDeletes(store), verb, lambda: commit(store, theirs(2)))
    if conflict is None:
        assert commit(hooked, mine(2), FakeTime().options()).version == 4
        return
    with pytest.raises(conflict, match="version 3") as caught:
        commit(hooked, mine(2), FakeTime().options())
    assert caught.value.other == read_manifest(store).transaction
    assert latest_version(store) == 3


def test_overwrite_without_retries_after_concurrent_commit_conflicts() -> None:
    store = new_store("strict")
    strict = CommitOptions(CommitPolicy(max_retries=0))
    with pytest.raises(RetryableConflict, match="conflict for version 2"):
        commit(store, overwrite(1), strict)
    assert commit(store, overwrite(2), strict).version == 3


def test_stable_row_ids_are_reassigned_after_a_lost_race() -> None:
    store = new_store("ids", 0)
    create_table(store, rows=5, stable_row_ids=True)
    hooked = Hooked(store, "put_if_absent", lambda: commit(store, append(1, new_fragment(7))))
    assert commit(hooked, append(1, new_fragment(2)), FakeTime().options()).next_row_id == 14


def broken_history(manifest: Manifest) -> dict[str, bytes | None]:
    lost = replace(manifest, transaction=None, transaction_file=None)
    flagged = replace(manifest, writer_flags=1 << 30)
    named = replace(lost, transaction_file="1-00000000.txn")
    return {
        "lost": serialize_manifest_file(lost),
        "not there": serialize_manifest_file(named),
        "cleaned up": None,
        "torn": serialize_manifest_file(manifest)[:-9],
        "unknown flag": serialize_manifest_file(flagged),
        "unknown operation": serialize_manifest_file(replace(manifest, transaction=b"\x12\x01u")),
    }


@pytest.mark.parametrize("damage", broken_history(read_manifest(new_store("shape"))))
def test_commit_over_damaged_history_is_a_conflict(damage: str) -> None:
    store = new_store("history", 3)
    path = Naming.V2.manifest_path(2)
    data = broken_history(read_manifest(store, 2))[damage]
    store.delete(path)
    if data is not None:
        store.put(path, data)
    error = UnsupportedError if damage == "unknown flag" else IncompatibleConflict
    with pytest.raises(error):
        commit(store, append(1))
    assert latest_version(store) == 3
    assert commit(store, append(2)).version == 4


def test_commit_retries_with_growing_pauses_up_to_the_limit() -> None:
    store = new_store("race")

    class Busy(WrappedStore):
        def before(self, verb: str, path: str) -> None:
            if verb == "put_if_absent":
                commit(store, append(latest_version(store)))

    time = FakeTime()
    picked: list[int] = []

    def pick(slots: int) -> int:
        picked.append(slots)
        return slots - 1

    with pytest.raises(RetryableConflict, match="5 times"):
        commit(Busy(store), append(2), time.options(policy=CommitPolicy(max_retries=5), pick=pick))
    assert latest_version(store) == 7
    assert picked == [8, 16, 32, 64]
    assert time.pauses == sorted(time.pauses)
    assert len(time.pauses) == 4
    assert max(time.pauses) <= 5.0


def test_commit_of_writer_far_behind_puts_one_manifest() -> None:
    """While it judges many versions others commit; it would lose each race to those who judge none."""
    store = new_store("behind", 9)
    puts: Counter[str] = Counter()

    class Counting(WrappedStore):
        def before(self, verb: str, path: str) -> None:
            puts[verb] += 1

    hooked = Hooked(Counting(store), "read", lambda: commit(store, append(9)), late=True)
    assert commit(hooked, append(1), FakeTime().options()).version == 11
    assert puts["put_if_absent"] == 1


def test_commit_after_long_pause_lists_versions_again() -> None:
    """Else it could re-create a version that was committed and cleaned up while it slept."""
    store = new_store("slept")
    time = FakeTime()
    calls: Counter[str] = Counter()

    class Slow(WrappedStore):
        def before(self, verb: str, path: str) -> None:
            calls[verb] += 1
            if verb == "put":
                time.now += 700

    assert commit(Slow(store), append(2), time.options()).version == 3
    assert (calls["list"], calls["put"], calls["put_if_absent"]) == (3, 1, 1)


def test_commit_after_its_version_was_cleaned_up_is_a_conflict() -> None:
    """Its version is free again, and below the newest one: nobody would ever see its rows."""
    store = new_store("buried")
    time = FakeTime()

    def others() -> None:
        for version in range(2, 8):
            commit(store, append(version))
        for version in range(1, 6):
            store.delete(Naming.V2.manifest_path(version))
        time.now += 400

    hooked = Hooked(store, "put_if_absent", others)
    with pytest.raises(RetryableConflict, match="made long after others"):
        commit(hooked, append(2), time.options())
    assert latest_version(store) == 8


def test_commit_to_shorter_table_at_the_same_place_is_refused() -> None:
    store = new_store("other", 1)
    with pytest.raises(NotFoundError, match="version 5 was read, but 1 is the newest"):
        commit(store, append(5))


def test_create_of_existing_table_is_refused() -> None:
    store = new_store("exists")
    with pytest.raises(AlreadyExistsError, match="memory://exists"):
        commit(store, overwrite(0))
    with pytest.raises(AlreadyExistsError):
        commit(new_store("V1", 1), overwrite(0), CommitOptions(CommitPolicy(naming=Naming.V1)))
    with pytest.raises(ArgumentError):
        commit(new_store("empty", 0), append(0))
    with pytest.raises(UnsupportedError):
        commit(store, Transaction(2, Other("delete")))
    with pytest.raises(NotFoundError):
        commit(MemoryStore("not there"), append(1))


def test_concurrent_creates_have_one_winner(tmp_path: Path) -> None:
    store = open_store(tmp_path / "t.lance")
    gate = threading.Barrier(8)

    def run(number: int) -> str:
        hooked = Hooked(store, "put_if_absent", gate.wait)
        try:
            commit(hooked, overwrite(0, new_fragment(name=f"{number}.lance")))
        except AlreadyExistsError:
            return ""
        return f"{number}.lance"

    with ThreadPoolExecutor(8) as pool:
        names = list(pool.map(run, range(8)))
    assert [name for name in names if name] == files_of(store)
    assert latest_version(store) == 1


def append_some(uri: str, writer: str, times: int) -> list[str]:
    """Append ``times`` fragments; return the names of those that were acknowledged."""
    store = open_store(uri)
    version = 1
    names = []
    for number in range(times):
        name = f"{writer}-{number}.lance"
        version = commit(store, append(version, new_fragment(name=name))).version
        names.append(name)
    return names


@pytest.mark.parametrize("naming", Naming)
def test_threads_and_processes_append_to_one_local_table(tmp_path: Path, naming: Naming) -> None:
    uri = str(tmp_path / "t.lance")
    store = open_store(uri)
    create_table(store, naming=naming)
    (first,) = files_of(store)
    with (
        multiprocessing.get_context("spawn").Pool(4) as processes,
        ThreadPoolExecutor(8) as threads,
    ):
        jobs = [processes.apply_async(append_some, (uri, f"p{i}", 10)) for i in range(4)]
        mine = [threads.submit(append_some, uri, f"t{i}", 5) for i in range(8)]
        acknowledged = [name for job in jobs for name in job.get(120)]
        acknowledged += [name for job in mine for name in job.result(120)]
    assert sorted(files_of(store)) == sorted([first, *acknowledged])
    assert len(acknowledged) == 80
    history = [read_manifest(store, version) for version in range(1, 82)]
    assert [summary.version for summary in list_versions(store)] == list(range(1, 82))
    for older, newer in pairwise(history):
        assert newer.fragments[:-1] == older.fragments
    ids = [fragment.id for fragment in history[-1].fragments]
    assert ids == list(range(81))
    assert not [i for i in store.list("_versions") if ".tmp" in i.path]
