"""Commits under a lock of the caller's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.commit import CommitConflictError
from pennon.errors import AlreadyExistsError, UnsupportedError
from pennon.io import MemoryStore
from pennon.io.prefix_store import PrefixStore
from pennon.table.commit.lock import LockedStore, locked
from pennon.table.naming import Naming
from pennon.testing import WrappedStore

TABLE = pa.table({"a": [1, 2, 3]})
MANIFEST = Naming.V2.manifest_path(7)


class PlainStore(WrappedStore):
    """A store that cannot create an object only if its name is free."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        raise UnsupportedError(path)


def recorded(
    events: list[str], error: Exception | None = None
) -> Callable[[int], AbstractContextManager[None]]:
    @contextmanager
    def lock(version: int) -> Iterator[None]:
        if error is not None:
            raise error
        events.append(f"lock {version}")
        try:
            yield
        finally:
            events.append(f"release {version}")

    return lock


def test_commit_lock_is_held_for_each_version(tmp_path: Path) -> None:
    events: list[str] = []
    lock = recorded(events)
    dataset = pennon.write_dataset(TABLE, tmp_path / "t", commit_lock=lock)
    dataset.delete("a = 1")
    again = pennon.dataset(tmp_path / "t", commit_lock=lock)
    again.update({"a": "9"}, where="a = 2")
    pennon.write_dataset(TABLE, again, mode="append")
    assert events == [f"{verb} {n}" for n in (1, 2, 3, 4) for verb in ("lock", "release")]


def test_commit_lock_is_held_for_explicit_commits(tmp_path: Path) -> None:
    events: list[str] = []
    pennon.write_dataset(TABLE, tmp_path / "t")
    fragment = pennon.LanceFragment.create(tmp_path / "t", TABLE)
    operation = pennon.LanceOperation.Append([fragment])
    made = pennon.LanceDataset.commit(
        tmp_path / "t", operation, read_version=1, commit_lock=recorded(events)
    )
    assert made.count_rows() == 6
    assert events == ["lock 2", "release 2"]


@pytest.mark.parametrize("error", [CommitConflictError("taken"), RuntimeError("no server")])
def test_commit_without_the_lock_publishes_no_version(tmp_path: Path, error: Exception) -> None:
    dataset = pennon.write_dataset(TABLE, tmp_path / "t")
    with pytest.raises(type(error), match=str(error)):
        pennon.write_dataset(TABLE, tmp_path / "t", mode="append", commit_lock=recorded([], error))
    assert dataset.latest_version == 1


def test_under_the_lock_a_plain_store_is_good_enough() -> None:
    events: list[str] = []
    store = LockedStore(PlainStore(MemoryStore("memory://plain")), recorded(events))
    store.put_if_absent(MANIFEST, b"first")
    with pytest.raises(AlreadyExistsError):
        store.put_if_absent(MANIFEST, b"second")
    assert store.read_whole(MANIFEST).to_pybytes() == b"first"
    assert events == ["lock 7", "release 7"] * 2
    with pytest.raises(UnsupportedError):
        store.put_if_absent("_refs/tags/one.json", b"")


def test_a_branch_has_the_lock_of_its_table() -> None:
    events: list[str] = []
    root = MemoryStore("memory://root")
    branch = locked(PrefixStore(root, "tree/dev"), recorded(events))
    assert branch == PrefixStore(LockedStore(root, branch.inner.lock), "tree/dev")  # type: ignore[attr-defined]
    branch.put_if_absent(MANIFEST, b"")
    assert events == ["lock 7", "release 7"]


def test_new_commit_lock_replaces_the_old_one() -> None:
    root = MemoryStore("memory://root")
    first, second = recorded([]), recorded([])
    assert locked(locked(root, first), second) == LockedStore(root, second)
    assert locked(root, None) is root


def test_commit_lock_that_raises_a_conflict_without_text_is_named_in_the_error(
    tmp_path: Path,
) -> None:
    lock = recorded([], CommitConflictError())
    with pytest.raises(
        CommitConflictError, match="commit lock of version 1 raised CommitConflictError"
    ):
        pennon.write_dataset(TABLE, tmp_path / "t", commit_lock=lock)
    with pytest.raises(CommitConflictError, match=r"^taken by another job$"):
        pennon.write_dataset(
            TABLE,
            tmp_path / "t",
            commit_lock=recorded([], CommitConflictError("taken by another job")),
        )
