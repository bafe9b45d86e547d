"""Tags and branches that are made of old versions beside a clean-up: each names a version that has its files."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta

import pytest

from pennon import ops
from pennon.errors import NotFoundError, RefExistsError, RetryableConflict
from pennon.ops.versions.refs import hold_versions
from pennon.testing import WrappedStore
from tests.unit.ops.cleanup.beside import DAY, MOST_STEPS, interleavings, new_store
from tests.unit.ops.cleanup.clocked import ClockedStore, CrashError, open_table


def with_moving_tag() -> ClockedStore:
    """Return a table whose newest version has a tag."""
    store = new_store()
    open_table(store).tags.create("x")
    return store


def with_branch() -> ClockedStore:
    """Return a table whose only branch has two versions of its own."""
    store = new_store()
    open_table(store).create_branch("b", 1)
    return store


def create(store: WrappedStore) -> None:
    open_table(store).tags.create("x", 1)  # type: ignore[arg-type] # a store of the same objects


def move(store: WrappedStore) -> None:
    open_table(store).tags.update("x", 1)  # type: ignore[arg-type] # as above


def hold(store: WrappedStore) -> None:
    hold_versions(open_table(store).snapshot, "x", 1)  # type: ignore[arg-type] # as above


def branch(store: WrappedStore) -> None:
    open_table(store).create_branch("x", 1)  # type: ignore[arg-type] # as above


def puts_tag(verb: str, path: str) -> bool:
    return verb.startswith("put") and path.startswith("_refs/tags/")


def names_branch(verb: str, path: str) -> bool:
    return verb.startswith("put") and path.startswith("_refs/branches/")


def puts_branch_manifest(verb: str, path: str) -> bool:
    return verb.startswith("put") and path.startswith("tree/") and path.endswith(".manifest")


@pytest.mark.parametrize("begins", range(1, MOST_STEPS))
@pytest.mark.parametrize(
    ("make", "new"),
    [(create, new_store), (move, with_moving_tag), (hold, new_store)],
    ids=["create", "move", "hold"],
)
def test_tag_beside_clean_up_names_a_whole_version_or_is_refused(
    make: Callable[[WrappedStore], None], new: Callable[[], ClockedStore], begins: int
) -> None:
    for table, problem in interleavings(begins, make, puts_tag, new):
        if problem is None:
            assert table.checkout_version("x").to_table()["n"].to_pylist() == [1, 2]
        else:
            assert {tag["version"] for tag in table.tags.list().values()} <= {3}
        if problem is None and make is hold:
            assert table.checkout_version(2).to_table()["n"].to_pylist() == [3]


@pytest.mark.parametrize("begins", range(1, MOST_STEPS))
@pytest.mark.parametrize("pauses_at", [names_branch, puts_branch_manifest])
def test_branch_beside_clean_up_has_its_files_or_is_refused(
    pauses_at: Callable[[str, str], bool], begins: int
) -> None:
    for table, problem in interleavings(begins, branch, pauses_at):
        if problem is None:
            assert table.checkout_version(("x", None)).to_table()["n"].to_pylist() == [1, 2]
        else:
            assert not table.branches.list()


def test_tag_of_a_version_that_a_clean_up_cut_short_removes_waits_for_the_next_one() -> None:
    store = new_store()
    store.deletes_left = 0
    with pytest.raises(CrashError):
        open_table(store).cleanup_old_versions(older_than=timedelta(0))
    store.deletes_left = None
    with pytest.raises(RetryableConflict, match=r"removing version 1 .*run clean-up again"):
        open_table(store).tags.create("x", 1)
    open_table(store).tags.create("newest")
    open_table(store).cleanup_old_versions(older_than=timedelta(0))
    with pytest.raises(NotFoundError):
        open_table(store).tags.create("x", 1)
    assert not [path for path in store.paths("_versions") if ".tmp_" in path]


def test_plan_of_versions_that_a_later_clean_up_keeps_is_forgotten_after_a_week() -> None:
    store = new_store()
    store.deletes_left = 0
    with pytest.raises(CrashError):
        open_table(store).cleanup_old_versions(older_than=timedelta(0))
    store.deletes_left = None
    lenient = timedelta(days=100)
    open_table(store).cleanup_old_versions(older_than=lenient)
    with pytest.raises(RetryableConflict):
        open_table(store).create_branch("b", 1)
    store.advance(8 * DAY)
    open_table(store).cleanup_old_versions(older_than=lenient)
    made = open_table(store).create_branch("b", 1)
    assert made.to_table()["n"].to_pylist() == [1, 2]


@pytest.mark.parametrize("later", ["", "-later"])
def test_hold_that_a_process_left_keeps_its_versions_for_a_week(later: str) -> None:
    store = new_store()
    store.put(f"_versions/.tmp_hold-1{later}-{uuid.uuid4()}.json", b"{}")
    open_table(store).cleanup_old_versions(older_than=timedelta(0))
    kept = [each["version"] for each in open_table(store).versions()]
    assert kept == ([1, 2, 3] if later else [1, 3])
    store.advance(8 * DAY)
    open_table(store).cleanup_old_versions(older_than=timedelta(0))
    open_table(store).cleanup_old_versions(older_than=timedelta(0))
    assert [each["version"] for each in open_table(store).versions()] == [3]


class LosingHolds(WrappedStore):
    """A store whose clean-up deletes holds before something is named."""

    def before(self, verb: str, path: str) -> None:
        if puts_tag(verb, path) or names_branch(verb, path):
            for info in list(self.inner.list("_versions")):
                if ".tmp_hold-" in info.path:
                    self.inner.delete(info.path)


@pytest.mark.parametrize("make", [create, hold, branch])
def test_name_of_a_version_that_was_held_for_too_long_is_withdrawn(
    make: Callable[[WrappedStore], None],
) -> None:
    store = new_store()
    with pytest.raises(RetryableConflict, match=r"deleted what held version main:1 .*try again"):
        make(LosingHolds(store))
    table = open_table(store)
    assert not table.tags.list()
    assert not table.branches.list()
    make(store)
    assert table.tags.list() or table.branches.list()


def test_tag_that_is_moved_to_a_version_held_for_too_long_stays() -> None:
    store = with_moving_tag()
    with pytest.raises(RetryableConflict, match="deleted what held"):
        move(LosingHolds(store))
    assert open_table(store).tags.list()["x"]["version"] == 3


def test_tag_of_a_branch_is_held_among_the_versions_of_the_branch() -> None:
    store = with_branch()
    of_branch = open_table(store).checkout_version(("b", None))
    of_branch.insert(of_branch.to_table())
    of_branch.tags.create("on-branch", ("b", 1))
    store.advance(DAY)
    open_table(store).checkout_version(("b", None)).cleanup_old_versions(
        older_than=timedelta(0), error_if_tagged_old_versions=False
    )
    found = open_table(store).checkout_version("on-branch")
    assert found.to_table()["n"].to_pylist() == [1, 2]


def test_refused_tag_leaves_no_hold() -> None:
    store = with_moving_tag()
    table = open_table(store)
    for name, version, problem in (("x", 1, RefExistsError), ("y", 9, NotFoundError)):
        with pytest.raises(problem):
            ops.tag_version(table.snapshot, name, version)
    assert not [path for path in store.paths("_versions") if ".tmp_" in path]
