"""Clean-up beside pylance's: the same choice of versions and files, and tables that both then read."""

from __future__ import annotations

import shutil
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon

NOW = timedelta(0)
ROW = pa.table({"a": [1]})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a table that both wrote: appends, deletes, an index, an overwrite, an orphan."""
    path = tmp_path / "table"
    for number in range(4):
        library = (lance, pennon)[number % 2]
        data = pa.table({"a": [number] * 10})
        library.write_dataset(
            data,
            str(path),
            mode="append" if number else "create",
            data_storage_version="2.1",
        )
    lance.dataset(path).create_scalar_index("a", "BTREE")
    pennon.write_dataset(pa.table({"a": [7, 8]}), path, mode="append")
    pennon.dataset(path).delete("a = 7")
    lance.dataset(path).delete("a = 1")
    pennon.dataset(path).optimize.compact_files()
    pennon.write_dataset(pa.table({"a": [9]}), path, mode="overwrite")
    lance.write_dataset(pa.table({"a": [10]}), path, mode="append")
    (path / "data" / f"{'0' * 50}.lance").write_bytes(b"x" * 100)
    (path / "notes.txt").write_text("mine")
    time.sleep(0.01)  # files are older than now, in the file system's ticks
    return path


@pytest.mark.parametrize(
    "policy",
    [
        {"older_than": NOW},
        {"older_than": NOW, "delete_unverified": True},
        {"retain_versions": 3},
        {"retain_versions": 3, "older_than": timedelta(days=100)},
        {"versions": [2, 3, 99]},
        {},
    ],
)
def test_clean_up_candidates_equal_pylance(path: Path, policy: dict[str, Any]) -> None:
    given = {**policy, "include_files": True, "max_files": 500}
    theirs = lance.dataset(path).explain_cleanup_old_versions(**given)
    ours = pennon.dataset(path).explain_cleanup_old_versions(**given)
    root = f"{path}/".lstrip("/")
    expected = {(f.path.removeprefix(root), f.kind, f.size_bytes) for f in theirs.candidate_files}
    assert {(f.path, f.kind, f.size_bytes) for f in ours.candidate_files} == expected
    for name in theirs.stats.__dir__():
        if not name.startswith("_"):
            assert getattr(ours.stats, name) == getattr(theirs.stats, name), name
    copy = Path(shutil.copytree(path, path.with_name("copy")))  # times go along
    assert pennon.dataset(path).cleanup_old_versions(**policy) == ours.stats
    lance.dataset(copy).cleanup_old_versions(**policy)
    assert _files(path) == _files(copy)
    lance.dataset(path).validate()
    assert lance.dataset(path).to_table()["a"].to_pylist() == [9, 10]


def _files(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}


def test_clean_up_keeps_tags_and_branches_of_pylance(path: Path) -> None:
    theirs = lance.dataset(path)
    theirs.tags.create("third", 3)
    branch = theirs.create_branch("side", 5)
    lance.write_dataset(pa.table({"a": [77]}), branch, mode="append")
    kept = {version: theirs.checkout_version(version).to_table() for version in (3, 5)}
    side = theirs.checkout_version(("side", None)).to_table()
    with pytest.raises(OSError, match="third"):
        pennon.dataset(path).cleanup_old_versions(older_than=NOW)
    pennon.dataset(path).cleanup_old_versions(older_than=NOW, error_if_tagged_old_versions=False)
    after = lance.dataset(path)
    assert [each["version"] for each in after.versions()] == [3, 5, after.version]
    for version, rows in kept.items():
        assert after.checkout_version(version).to_table() == rows
    assert after.checkout_version(("side", None)).to_table() == side


def test_files_of_versions_equal_pylance(path: Path) -> None:
    ours, theirs = pennon.dataset(path), lance.dataset(path)
    for minimum in (None, 5):
        mine = ours.tracked_files(min_version=minimum).read_all()
        other = theirs.tracked_files(min_version=minimum).read_all()
        assert mine.schema == other.schema
        assert _rows(mine, ["version", "path", "type"]) == _rows(other, ["version", "path", "type"])
    mine, other = ours.all_files().read_all(), theirs.all_files().read_all()
    assert mine.schema == other.schema
    assert _rows(mine, ["path", "size_bytes"]) == _rows(other, ["path", "size_bytes"])


def _rows(table: pa.Table, columns: list[str]) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.select(columns).to_pylist())


def test_auto_cleanup_options_are_stored_for_pylance(tmp_path: Path) -> None:
    """A table can be made that asks for it; pylance does as it is asked, and Pennon does not."""
    uri = str(tmp_path / "t")
    options: Any = {"interval": 2, "older_than_seconds": 0}
    made = pennon.write_dataset(ROW, uri, auto_cleanup_options=options)
    expected = {"lance.auto_cleanup.interval": "2", "lance.auto_cleanup.older_than": "0s"}
    assert made.config() == lance.dataset(uri).config() == expected
    for _ in range(3):
        pennon.write_dataset(ROW, uri, mode="append")
    assert len(pennon.dataset(uri).versions()) == 4
    for _ in range(2):
        lance.write_dataset(ROW, uri, mode="append")
    assert len(pennon.dataset(uri).versions()) < 4
    again = pennon.write_dataset(ROW, uri, mode="overwrite", auto_cleanup_options={})
    assert again.config() == expected
    plain = pennon.write_dataset(ROW, f"{uri}2", auto_cleanup_options={})
    assert plain.config() == {
        "lance.auto_cleanup.interval": "20",
        "lance.auto_cleanup.older_than": f"{14 * 86400}s",
    }
