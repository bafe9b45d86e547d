"""Replace a table by a version of another table: pylance reads and continues it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.errors import ArgumentError, UnsupportedError
from pennon.io import open_store
from pennon.ops.run_tasks import run_tasks
from pennon.ops.versions.replace_by_clone import plan_replacing_copy, replace_by_clone
from pennon.scan.snapshot import Snapshot
from pennon.table.versions import read_manifest


def opened(uri: str, version: int | None = None) -> Snapshot:
    """A version of a table."""
    store = open_store(uri)
    return Snapshot(store, read_manifest(store, version))


def replaced(source: str, target: str, version: int | None = None, *, shallow: bool) -> None:
    """Make a version the newest one of another table."""
    old, new = opened(source, version), opened(target)
    if not shallow:
        task = plan_replacing_copy(old, new)
        run_tasks(task, task.count, what="copying files")
    planned = time.time_ns()
    replace_by_clone(
        old, new, is_shallow=shallow, config={"owner": "me"}, properties={}, planned_ns=planned
    )


def rows_of(uri: str) -> list[tuple[Any, ...]]:
    """The rows as pylance reads them, which also looks the table through."""
    table = lance.dataset(uri)
    table.validate()
    return sorted(zip(*table.to_table().to_pydict().values(), strict=True))


@pytest.fixture
def uris(tmp_path: Path) -> tuple[str, str]:
    """Two tables."""
    return str(tmp_path / "one.lance"), str(tmp_path / "other.lance")


@pytest.mark.parametrize("stable", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("shallow", [True, False], ids=["shallow", "deep"])
def test_replace_by_clone_is_read_by_pylance(
    uris: tuple[str, str], shallow: bool, stable: tuple[bool, bool]
) -> None:
    one, other = uris
    rows = pa.table({"key": list("abcd"), "value": [1, 2, 3, 4]})
    lance.write_dataset(rows, one, max_rows_per_file=2, enable_stable_row_ids=stable[0])
    pennon.dataset(one).delete("key = 'b'")
    numbers = pa.table({"n": [1, 2]})
    lance.write_dataset(numbers, other, enable_stable_row_ids=stable[1])
    replaced(one, other, shallow=shallow)
    assert rows_of(other) == [("a", 1), ("c", 3), ("d", 4)]
    assert lance.dataset(other, version=1).to_table() == numbers
    assert lance.dataset(other).config() == {"owner": "me"}
    lance.dataset(other).delete("key = 'c'")
    replaced(one, other, 1, shallow=shallow)
    assert rows_of(other) == [("a", 1), ("b", 2), ("c", 3), ("d", 4)]
    pennon.dataset(other).update({"value": "7"}, "key = 'a'")
    pennon.dataset(other).optimize.compact_files()
    assert rows_of(other) == [("a", 7), ("b", 2), ("c", 3), ("d", 4)]
    assert rows_of(one) == [("a", 1), ("c", 3), ("d", 4)]
    ids = lance.dataset(other).to_table(columns=[], with_row_id=True)["_rowid"].to_pylist()
    assert len(set(ids)) == 4


@pytest.mark.parametrize("shallow", [True, False], ids=["shallow", "deep"])
def test_replace_of_source_by_its_clone(uris: tuple[str, str], shallow: bool) -> None:
    """It names files of both; none of them becomes another table's."""
    one, other = uris
    pennon.write_dataset(pa.table({"n": range(6)}), one, max_rows_per_file=3)
    pennon.dataset(one).shallow_clone(other, 1)
    pennon.dataset(other).delete("n = 4")
    pennon.write_dataset(pa.table({"n": [9]}), other, mode="append")
    replaced(other, one, shallow=shallow)
    assert rows_of(one) == rows_of(other) == [(0,), (1,), (2,), (3,), (5,), (9,)]


@pytest.mark.parametrize("is_root", [True, False], ids=["table", "folder"])
@pytest.mark.parametrize("shallow", [True, False], ids=["shallow", "deep"])
def test_replace_by_clone_keeps_files_of_base_paths(
    uris: tuple[str, str], tmp_path: Path, shallow: bool, is_root: bool
) -> None:
    """They lie in a folder ``data`` of such a place, or in the place itself."""
    one, other = uris
    place = lance.DatasetBasePath(str(tmp_path / "place"), "place", is_dataset_root=is_root)
    lance.write_dataset(pa.table({"n": [1, 2]}), one, initial_bases=[place], target_bases=["place"])
    lance.dataset(one).delete("n = 1")
    lance.write_dataset(pa.table({"n": [3]}), one, mode="append")
    lance.write_dataset(pa.table({"n": [0]}), other)
    replaced(one, other, shallow=shallow)
    assert rows_of(other) == [(2,), (3,)]


def test_replace_by_clone_of_0_1_or_itself_is_refused(uris: tuple[str, str]) -> None:
    one, other = uris
    pennon.write_dataset(pa.table({"n": [1]}), one, data_storage_version="0.1")
    pennon.write_dataset(pa.table({"n": [2]}), other)
    with pytest.raises(UnsupportedError, match=r"0\.1"):
        replaced(one, other, shallow=True)
    with pytest.raises(ArgumentError, match="no clone of itself"):
        replaced(other, other, 1, shallow=False)
    assert rows_of(other) == [(2,)]
