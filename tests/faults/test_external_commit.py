"""Commits through a manifest store: each step fails, loses its answer, or meets another finisher."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from pennon.errors import (
    AlreadyExistsError,
    FormatError,
    NotFoundError,
    StoreError,
    UnsupportedError,
)
from pennon.io.prefix_store import PrefixStore
from pennon.io.store import Store
from pennon.table.commit.loop import commit
from pennon.table.external import Entry
from pennon.table.naming import Naming
from pennon.table.versions import latest_version, list_versions, read_manifest
from pennon.testing import Fault, WrappedStore
from tests.faults.external_table import COMMIT, SECOND, Table
from tests.unit.table.tables import FakeTime, append, create_table, new_fragment

FLIP = "put_if_exists"
_ENOUGH = 1000


class Recorder(WrappedStore):
    """Remembers what was asked of both stores."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.verbs: list[str] = []

    def before(self, verb: str, path: str) -> None:
        kind = "staged" if ".manifest-" in path else "final" if "_versions/" in path else ""
        self.verbs.append(f"{verb} {kind}".strip())


@pytest.mark.parametrize("naming", Naming)
def test_external_commit_steps_in_order(naming: Naming) -> None:
    table = Table(naming)
    recorder = Recorder(table.objects)
    commit(table.seen_through(recorder), append(1))
    assert recorder.verbs == [
        "get_latest",  # nothing is half done
        "list",
        "read final",
        "put",  # the transaction
        "read final",  # nobody made it without the manifest store
        "put staged",
        f"{COMMIT} staged",
        "put_if_absent final",
        f"{FLIP} final",
        "delete staged",
        "get_latest",  # whether others went on, or names have changed
        "list",
    ]
    path = naming.manifest_path(2)
    assert table.manifests.entries[2] == Entry(2, path, table.objects.open(path).size_bytes)
    assert sorted(table.files()) == sorted([naming.manifest_path(1), path])


@pytest.mark.parametrize("steps", range(1, 6))
def test_external_commit_of_dead_writer_is_finished_by_readers(steps: int) -> None:
    table = Table()
    staged = table.leave_half_done(steps)
    is_committed = steps >= 2
    assert latest_version(table.store) == 1 + is_committed
    assert [summary.version for summary in list_versions(table.store)] == [1, 2][: 1 + is_committed]
    if is_committed:
        assert table.manifests.entries[2] == Entry(2, SECOND, staged.size_bytes)
        assert read_manifest(table.objects, 2).fragments[-1].files[0].path == "mine.lance"
    assert (staged.path in table.files()) == (steps in {1, 4})


@pytest.mark.parametrize("steps", range(1, 6))
def test_external_commit_of_dead_writer_is_finished_by_writers(steps: int) -> None:
    table = Table()
    table.leave_half_done(steps)
    done = commit(table.store, append(1, new_fragment(name="next.lance")))
    assert done.version == (3 if steps >= 2 else 2)
    names = [fragment.files[0].path for fragment in done.fragments][1:]
    assert names == (["mine.lance", "next.lance"] if steps >= 2 else ["next.lance"])


@pytest.mark.parametrize("steps", [2, 3])
def test_external_commit_of_dead_writer_is_finished_by_opening_its_path(steps: int) -> None:
    table = Table()
    table.leave_half_done(steps)
    assert table.store.open(SECOND).size_bytes == table.store.read_whole(SECOND).size
    with pytest.raises(NotFoundError):
        table.store.open(Naming.V2.manifest_path(3))


def test_external_commits_of_several_dead_writers_are_finished_oldest_first() -> None:
    table = Table()
    commit(table.store, append(1))
    commit(table.store, append(2))
    for version in (2, 3):
        path = Naming.V2.manifest_path(version)
        table.objects.put(f"{path}-x", table.objects.read_whole(path).to_pybytes())
        table.objects.delete(path)
        table.manifests.entries[version] = Entry(version, f"{path}-x")
    recorder = Recorder(table.objects)
    seen = table.seen_through(recorder)
    assert [summary.version for summary in list_versions(seen)] == [1, 2, 3]
    assert {entry.path for entry in table.manifests.entries.values()} == set(table.files())


@pytest.mark.parametrize("verb", ["read", "put", COMMIT, "put_if_absent", FLIP, "delete"])
@pytest.mark.parametrize("kind", ["before", "after"])
def test_external_commit_with_one_failed_step_is_retried(verb: str, kind: str) -> None:
    """What was committed is acknowledged, whatever failed later; what was not is done again."""
    table = Table()
    faulty = table.faulty(Fault(1, kind, frozenset({verb})))
    transaction = append(1, new_fragment(name="mine.lance"))
    try:
        done = commit(faulty, transaction, FakeTime().options())
    except StoreError:
        assert verb in {"read", "put"}
    else:
        assert done.version == 2
    assert commit(table.store, transaction).version == latest_version(table.store) == 2
    assert table.manifests.entries[2].path == SECOND


@pytest.mark.parametrize("verb", [FLIP, "delete", "put_if_absent"])
def test_external_commit_with_failing_finish_is_committed(verb: str) -> None:
    """The commit is done all the same; readers refuse until they can finish it."""
    table = Table()
    fault = Fault(1, "before", frozenset({verb}), repeat=True)
    assert commit(table.faulty(fault), append(1), FakeTime().options()).version == 2
    if verb == "delete":
        assert latest_version(table.faulty(fault)) == 2
    else:
        with pytest.raises(StoreError, match="version 2 is committed by half"):
            latest_version(table.faulty(fault))
    assert latest_version(table.store) == 2


def test_external_commit_with_lost_answer_and_other_finisher() -> None:
    table = Table()

    class Lost(WrappedStore):
        def after(self, verb: str, path: str) -> None:
            if verb == COMMIT:
                assert latest_version(table.store) == 2
                raise StoreError("the answer was lost")

    assert commit(table.seen_through(Lost(table.objects)), append(1)).version == 2
    assert table.files() == [SECOND, Naming.V2.manifest_path(1)]


@pytest.mark.parametrize("finished", [False, True])
def test_external_commit_repeated_by_the_client_finds_its_entry(finished: bool) -> None:
    """The answer was lost, so botocore put once more, and was told that the version is taken."""
    table = Table()

    class Again(WrappedStore):
        def after(self, verb: str, path: str) -> None:
            if verb == COMMIT:
                assert not finished or latest_version(table.store) == 2
                raise AlreadyExistsError("the version is taken")

    made = commit(table.seen_through(Again(table.objects)), append(1), FakeTime().options())
    assert made.version == latest_version(table.store) == 2
    assert table.files() == [SECOND, Naming.V2.manifest_path(1)]


@pytest.mark.parametrize("naming", Naming)
def test_external_listing_during_clean_up_returns_the_newer_version(naming: Naming) -> None:
    """The entry that was the newest names a manifest that is gone; but a newer one is there."""
    table = Table(naming)

    class Late(WrappedStore):
        def before(self, verb: str, path: str) -> None:
            if verb == "list" and len(table.manifests.entries) == 1:
                commit(table.store, append(1))
                table.objects.delete(naming.manifest_path(1))

    late = table.seen_through(Late(table.objects))
    assert [summary.version for summary in list_versions(late)] == [2]


def test_the_race_for_a_version_is_lost() -> None:
    table = Table()

    class Late(WrappedStore):
        def before(self, verb: str, path: str) -> None:
            if verb == COMMIT and len(table.manifests.entries) == 1:
                commit(table.store, append(1, new_fragment(name="other.lance")))

    late = table.seen_through(Late(table.objects))
    done = commit(late, append(1, new_fragment(name="mine.lance")), FakeTime().options())
    assert done.version == 3
    assert [f.files[0].path for f in done.fragments][1:] == ["other.lance", "mine.lance"]


class Turns(WrappedStore):
    """Lets one thread take one step at a time, when it is told to."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.may_go, self.stands = threading.Semaphore(0), threading.Semaphore(0)

    def before(self, verb: str, path: str) -> None:
        self.stands.release()
        assert self.may_go.acquire(timeout=60)

    def start(self, pool: ThreadPoolExecutor, table: Table) -> Future[int]:
        job: Future[int] = pool.submit(latest_version, table.seen_through(self))
        job.add_done_callback(lambda _: self.stands.release(_ENOUGH))
        return job

    def go(self, steps: int) -> None:
        """Let it take so many steps, or to its end; it stands before the next one then."""
        for _ in range(steps):
            assert self.stands.acquire(timeout=60)
            self.may_go.release()
        assert self.stands.acquire(timeout=60)
        self.stands.release()


@pytest.mark.parametrize("first_steps", range(1, 9))
@pytest.mark.parametrize("second_steps", range(1, 9))
def test_external_commit_finished_by_two_readers_at_once(
    first_steps: int, second_steps: int
) -> None:
    """One takes some steps, then the other, then the first goes to its end, then the other."""
    table = Table()
    staged = table.leave_half_done(2)
    turns = [Turns(table.objects), Turns(table.objects)]
    with ThreadPoolExecutor(2) as pool:
        jobs = [each.start(pool, table) for each in turns]
        for each, steps in zip(turns, (first_steps, second_steps), strict=True):
            each.go(steps)
        for each in turns:
            each.may_go.release(_ENOUGH)
        assert [job.result(60) for job in jobs] == [2, 2]
    assert table.manifests.entries[2] == Entry(2, SECOND, staged.size_bytes)
    assert table.files() == [SECOND, Naming.V2.manifest_path(1)]


@pytest.mark.parametrize("steps", range(1, 9))
def test_external_commit_finished_beside_a_paused_finisher(steps: int) -> None:
    table = Table()
    table.leave_half_done(2)
    slow = Turns(table.objects)
    with ThreadPoolExecutor(1) as pool:
        job = slow.start(pool, table)
        slow.go(steps)
        assert latest_version(table.store) == 2
        assert commit(table.store, append(2)).version == 3
        slow.may_go.release(_ENOUGH)
        assert job.result(60) in {2, 3}
    assert sorted(table.files()) == sorted(map(Naming.V2.manifest_path, (1, 2, 3)))


def test_another_manifest_under_the_final_name_is_never_overwritten() -> None:
    """As when a writer that knows nothing of the manifest store commits at the same time."""
    table = Table()
    table.leave_half_done(2)
    unaware = commit(table.objects, append(1, new_fragment(name="unaware.lance")))
    there = table.objects.read_whole(SECOND)
    for act in (latest_version, lambda store: commit(store, append(1))):
        with pytest.raises((StoreError, FormatError), match="granted this version to one"):
            act(table.store)
    assert table.objects.read_whole(SECOND).equals(there)
    assert read_manifest(table.objects) == unaware


def test_external_commit_after_version_without_entry() -> None:
    table = Table()
    commit(table.objects, append(1))
    assert latest_version(table.store) == 2
    with pytest.raises(AlreadyExistsError):
        table.store.put_if_absent(SECOND, b"mine")
    assert commit(table.store, append(1)).version == 3
    assert sorted(table.manifests.entries) == [1, 3]


@pytest.mark.parametrize(
    "path",
    [
        "_versions/../../etc/passwd",
        f"{Naming.V2.manifest_path(3)}-x",
        Naming.V2.manifest_path(3),
        "_versions/2.txt",
        "data/2.manifest-x",
        f"{SECOND}-../../x",
        "",
    ],
)
def test_external_entry_with_invalid_path_is_refused(path: str) -> None:
    table = Table()
    table.manifests.entries[2] = Entry(2, path)
    with pytest.raises(FormatError, match="manifest store says"):
        latest_version(table.store)


def test_a_staged_manifest_of_another_size_is_refused() -> None:
    table = Table()
    staged = table.leave_half_done(2)
    table.manifests.entries[2] = Entry(2, staged.path, 5)
    with pytest.raises(StoreError, match="5 bytes was committed"):
        latest_version(table.store)
    assert SECOND not in table.files()


def test_external_store_creates_other_objects_without_entries() -> None:
    table = Table()
    table.store.put_if_absent("_refs/tags/x.json", b"{}")
    with pytest.raises(AlreadyExistsError):
        table.store.put_if_absent("_refs/tags/x.json", b"{}")
    assert sorted(table.manifests.entries) == [1]
    assert "_refs/tags/x.json" in [found.path for found in table.store.list("")]


class Unconditional(WrappedStore):
    """A store that cannot create what is absent, for which manifest stores are made."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        raise UnsupportedError("no such verb here")


def test_external_commit_on_store_without_conditional_puts() -> None:
    table = Table()
    store = table.seen_through(Unconditional(table.objects))
    table.leave_half_done(2)
    assert commit(store, append(1)).version == 3
    assert [table.manifests.entries[n].path for n in (2, 3)] == [SECOND, Naming.V2.manifest_path(3)]
    store.put_if_absent("_versions/d9223372036854775809.manifest", b"detached")
    with pytest.raises(UnsupportedError):
        store.put_if_absent("_refs/tags/x.json", b"{}")
    with pytest.raises(UnsupportedError):
        commit(store.inner, append(1))


def test_external_branch_has_its_own_entries() -> None:
    """Also for who goes there from the table's root; what is half done there is finished, too."""
    table = Table()
    branch = PrefixStore(table.store, "tree/one")
    create_table(branch)
    assert commit(branch, append(1)).version == 2
    manifests = table.manifests.branches["tree/one"]
    assert [entry.path for entry in manifests.entries.values()][1] == SECOND
    assert sorted(table.manifests.entries) == [1]
    body = table.objects.read_whole(f"tree/one/{SECOND}").to_pybytes()
    for path in (SECOND, "_versions"):
        table.objects.delete(f"tree/one/{SECOND}")
        table.objects.put(f"tree/one/{SECOND}-x", body)
        manifests.entries[2] = Entry(2, f"{SECOND}-x", len(body))
        if path == SECOND:
            assert branch.read_whole(path).to_pybytes() == body
        else:
            assert latest_version(branch) == 2
        assert manifests.entries[2] == Entry(2, SECOND, len(body))
    table.objects.delete(f"tree/one/{SECOND}")
    with pytest.raises(StoreError, match="knows version 2"):
        latest_version(branch)
    assert latest_version(table.store) == 1
