"""Levels of durability: options, and what a power cut leaves of ten operations."""

from __future__ import annotations

import errno
import os
import pickle
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pennon
from pennon.errors import CommitError
from pennon.io import LocalStore, open_store
from pennon.io.durability import Durability
from pennon.io.remote_options import parse_options
from pennon.io.store import Store
from tests.unit.io.power_cut import watched_disk


def rows(start: int, count: int = 20) -> pa.Table:
    ids = list(range(start, start + count))
    return pa.table({"id": ids, "text": [f"row {each}" for each in ids]})


def opened(uri: str, level: str) -> pennon.LanceDataset:
    return pennon.dataset(uri, storage_options={"durability": level})


def create(uri: str, level: str) -> None:
    pennon.write_dataset(rows(0), uri, storage_options={"durability": level})


def append(uri: str, level: str) -> None:
    options = {"durability": level}
    pennon.write_dataset(
        rows(100), uri, mode="append", max_rows_per_file=5, storage_options=options
    )


def overwrite(uri: str, level: str) -> None:
    options = {"durability": level}
    pennon.write_dataset(rows(500), uri, mode="overwrite", storage_options=options)


def delete(uri: str, level: str) -> None:
    opened(uri, level).delete("id % 3 = 0")


def update(uri: str, level: str) -> None:
    opened(uri, level).update({"text": "'new'"}, where="id < 4")


def merge_insert(uri: str, level: str) -> None:
    merge = opened(uri, level).merge_insert("id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute(rows(15))


def add_columns(uri: str, level: str) -> None:
    opened(uri, level).add_columns({"twice": "id * 2"})


def compact(uri: str, level: str) -> None:
    opened(uri, level).optimize.compact_files(target_rows_per_fragment=1000)


def create_index(uri: str, level: str) -> None:
    opened(uri, level).create_scalar_index("id", "BTREE")


def restore(uri: str, level: str) -> None:
    pennon.dataset(uri, 1, storage_options={"durability": level}).restore()


def tag(uri: str, level: str) -> None:
    opened(uri, level).tags.create("first", 1)


def move_tag(uri: str, level: str) -> None:
    opened(uri, level).tags.update("old", 2)


def create_branch(uri: str, level: str) -> None:
    opened(uri, level).create_branch("side")


def append_to_branch(uri: str, level: str) -> None:
    opened(uri, level).checkout_version(("old", None)).insert(rows(900))


OPERATIONS: list[Callable[[str, str], None]] = [
    *(create, append, overwrite, delete, update, merge_insert, add_columns, compact),
    *(create_index, restore, tag, move_tag, create_branch, append_to_branch),
]


def contents(uri: str) -> list[tuple[Any, ...]]:
    """Return the versions of a table and their rows, and its tags and branches."""
    table = pennon.dataset(uri)
    found: list[tuple[Any, ...]] = []
    for each in table.versions():
        at = pennon.dataset(uri, each["version"])
        at.validate()
        found.append((each["version"], at.to_table().to_pylist()))
        for index in at.describe_indices():
            folder = Path(uri) / "_indices" / index.segments[0].uuid
            files = {file.name: file.read_bytes() for file in folder.iterdir()}
            found.append(("index", each["version"], files))
    tags = [("tag", name, where["version"]) for name, where in table.tags.list().items()]
    branches = [
        ("branch", name, table.checkout_version((name, None)).to_table().to_pylist())
        for name in table.branches.list()
    ]
    return [*found, *sorted(tags), *sorted(branches)]


def versions_of(found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [each for each in found if isinstance(each[0], int)]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table that has two versions, a tag and a branch."""
    folder = tmp_path_factory.mktemp("base") / "disk"
    table = pennon.write_dataset(rows(0), str(folder / "t.lance"), max_rows_per_file=10)
    table.insert(rows(50))
    table.tags.create("old", 1)
    table.create_branch("old", 1)
    return folder


def disk_of(base: Path, tmp_path: Path, operation: Callable[[str, str], None]) -> Path:
    root = tmp_path / "disk"
    if operation is create:
        root.mkdir()
    else:
        shutil.copytree(base, root)
    return root


@pytest.mark.parametrize("level", ["full", "commit"])
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.__name__)
def test_power_cut_at_each_sync_leaves_whole_versions(
    base: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    operation: Callable[[str, str], None],
    level: str,
) -> None:
    root = disk_of(base, tmp_path, operation)
    uri = str(root / "t.lance")
    before = [] if operation is create else contents(uri)
    with watched_disk(root, monkeypatch) as disk:
        operation(uri, level)
    after = contents(uri)
    assert before != after
    for number, cut in enumerate(disk.cuts):
        for kind in ("lost", "torn"):
            left = tmp_path / f"{number}-{kind}"
            cut.leave(kind, left)
            if operation is create and not list(left.glob("t.lance/_versions/*.manifest")):
                assert number < len(disk.cuts) - 1
                continue
            found = contents(str(left / "t.lance"))
            assert all(each in before or each in after for each in found)
            assert all(each in found for each in versions_of(before))
            if number == len(disk.cuts) - 1:
                assert found == after


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.__name__)
def test_operation_with_durability_none_makes_no_sync(
    base: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    operation: Callable[[str, str], None],
) -> None:
    root = disk_of(base, tmp_path, operation)
    uri = str(root / "t.lance")
    with watched_disk(root, monkeypatch) as disk:
        operation(uri, "none")
    assert len(disk.cuts) == 1  # that of the end
    assert contents(uri)
    disk.cuts[0].leave("lost", tmp_path / "left")
    left = tmp_path / "left" / "t.lance"
    assert not left.exists() if operation is create else contents(str(left))


def test_durability_commit_syncs_files_of_one_version_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "t.lance")
    create(uri, "commit")
    with watched_disk(tmp_path, monkeypatch) as disk:
        append(uri, "commit")
    assert len(disk.synced) == 9
    assert str(disk.synced[-1]) == "t.lance/_versions"  # with the name of the manifest, by itself
    assert sorted(str(each.parent) for each in disk.synced[:-1]) == [
        *["t.lance"] * 2,  # its folders of data files and transactions
        "t.lance/_transactions",
        "t.lance/_versions",
        *["t.lance/data"] * 4,
    ]


def test_uncommitted_fragments_are_durable_for_a_commit_of_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "t.lance")
    create(uri, "full")
    with watched_disk(tmp_path, monkeypatch) as disk:
        made = pennon.fragment.write_fragments(
            rows(100), uri, mode="append", storage_options={"durability": "commit"}
        )
    disk.cuts[-1].leave("lost", tmp_path / "left")
    left = str(tmp_path / "left" / "t.lance")
    table = pennon.LanceDataset.commit(left, pennon.LanceOperation.Append(made), read_version=1)
    assert table.to_table(columns=["id"], filter="id >= 100").num_rows == 20


def test_files_written_before_a_fork_are_synced_by_the_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(str(tmp_path / "t.lance"), {"durability": "commit"})
    with watched_disk(tmp_path, monkeypatch) as disk:
        store.put("data/x.lance", b"rows")
        child = os.fork()
        if not child:
            store.put_if_absent("_versions/1.manifest", b"")
            os._exit(0 if Path("t.lance/data/x.lance") in disk.synced else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert disk.synced == []
        store.put_if_absent("_versions/2.manifest", b"")
    assert disk.cuts[-1].lost["t.lance/data/x.lance"] == b"rows"


def test_failed_sync_at_commit_fails_that_commit_and_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, other = str(tmp_path / "t.lance"), str(tmp_path / "other.lance")
    create(uri, "commit")
    failed: list[Path] = []
    real = os.fsync

    def sync(fd: int) -> None:
        path = Path(f"/proc/self/fd/{fd}").readlink()
        if "/t.lance/data/" in str(path) and not failed:
            failed.append(path)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(fd)

    monkeypatch.setattr(os, "fsync", sync)
    for _ in range(2):
        with pytest.raises(CommitError, match=r"could not be synced.*Input/output"):
            append(uri, "commit")
    create(other, "commit")  # another table goes on
    failed[0].unlink()
    append(uri, "commit")
    assert pennon.dataset(uri).count_rows() == 40


def level_of(store: Store) -> Durability:
    assert isinstance(store, LocalStore)
    return store.durability


def test_durability_option_wins_over_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert level_of(open_store(str(tmp_path))) is Durability.FULL
    monkeypatch.setenv("PENNON_DURABILITY", "none")
    assert level_of(open_store(str(tmp_path))) is Durability.NONE
    chosen = open_store(str(tmp_path), {"durability": "commit"})
    assert level_of(chosen) is Durability.COMMIT
    assert pickle.loads(pickle.dumps(chosen)) == chosen


@pytest.mark.parametrize("source", ["storage option 'durability'", "PENNON_DURABILITY"])
def test_unknown_durability_is_an_error_that_names_the_levels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    options = {"durability": "some"} if source.startswith("storage") else None
    monkeypatch.setenv("PENNON_DURABILITY", "some")
    with pytest.raises(ValueError, match=f"{source} is 'some'.*'full', 'commit', 'none'"):
        pennon.write_dataset(rows(0), str(tmp_path / "t.lance"), storage_options=options)


def test_object_stores_ignore_durability() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = pennon.write_dataset(
            rows(0), "memory://durability/t", storage_options={"durability": "none"}
        )
        parse_options({"durability": "none"}, lambda *_: False)
    assert table.count_rows() == 20
