"""Row changes between two versions."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.errors import ArgumentError
from pennon.scan.changes.row_versions import (
    VersionRange,
    changed_fragments,
    deleted_row_ids,
    plan_inserted_rows,
    plan_updated_rows,
    read_changed_rows,
)
from pennon.scan.plan.query import BoundQuery
from pennon.scan.snapshot import Snapshot


def _history(uri: str) -> pennon.LanceDataset:
    """Make versions: 1 and 2 insert three rows each, 3 deletes one, 4 updates one, 5 inserts two."""
    table = pennon.write_dataset(pa.table({"a": [0, 1, 2]}), uri, enable_stable_row_ids=True)
    table.insert(pa.table({"a": [3, 4, 5]}))
    table.delete("a = 4")
    table.update({"a": "a + 100"}, where="a = 0")
    table.insert(pa.table({"a": [6, 7]}))
    return table


def _values(query: BoundQuery) -> list[int]:
    return [value for batch in read_changed_rows(query) for value in batch["a"].to_pylist()]


def _snapshot(uri: Path, version: int) -> Snapshot:
    return pennon.dataset(uri, version=version).snapshot


@pytest.mark.parametrize(
    ("begin", "end", "inserted", "updated"),
    [
        (0, 1, [1, 2, 100], []),
        (1, 2, [3, 5], []),
        (1, 5, [3, 5, 6, 7], [100]),
        (3, 4, [], [100]),
        (4, 5, [6, 7], []),
        (5, 5, [], []),
    ],
)
def test_inserted_and_updated_rows_by_versions(
    tmp_path: Path, begin: int, end: int, inserted: list[int], updated: list[int]
) -> None:
    snapshot, versions = _history(str(tmp_path / "t")).snapshot, VersionRange(begin, end)
    assert sorted(_values(plan_inserted_rows(snapshot, versions))) == inserted
    assert sorted(_values(plan_updated_rows(snapshot, versions))) == updated


def test_a_changes_query_pickles_and_its_tasks_run_apart(tmp_path: Path) -> None:
    snapshot = _history(str(tmp_path / "t")).snapshot
    query = plan_inserted_rows(snapshot, VersionRange(1, 5))
    apart: list[int] = []
    for task in query.scan.tasks:
        there = pickle.loads(pickle.dumps(query))
        apart += _values(replace(there, scan=replace(there.scan, tasks=(task,))))
    assert len(query.scan.tasks) > 1
    assert apart == _values(query)


@pytest.mark.parametrize(
    ("begin", "end", "gone"), [(1, 2, []), (2, 3, [4]), (2, 5, [4]), (1, 5, []), (3, 3, [])]
)
def test_deleted_row_ids_by_versions(tmp_path: Path, begin: int, end: int, gone: list[int]) -> None:
    _history(str(tmp_path / "t"))
    before, after = (_snapshot(tmp_path / "t", version) for version in (begin, end))
    assert deleted_row_ids(before, after).tolist() == gone


def test_deleted_row_ids_leave_out_rows_that_compaction_moved(tmp_path: Path) -> None:
    table = _history(str(tmp_path / "t"))
    table.optimize.compact_files()
    table.delete("a = 7")
    before, after = _snapshot(tmp_path / "t", 5), _snapshot(tmp_path / "t", table.version)
    assert deleted_row_ids(before, after).tolist() == [7]


def test_changed_fragments_have_other_rows(tmp_path: Path) -> None:
    table = _history(str(tmp_path / "t"))
    table.add_columns({"b": "a + 1"})
    added = _snapshot(tmp_path / "t", table.version).manifest
    before, deleted = (_snapshot(tmp_path / "t", version).manifest for version in (2, 3))
    assert [each.id for each in changed_fragments(before, deleted)] == [1]
    assert [each.id for each in changed_fragments(deleted, before)] == [1]
    assert not changed_fragments(_snapshot(tmp_path / "t", 5).manifest, added)


def test_deleted_row_ids_without_stable_ids_are_refused(tmp_path: Path) -> None:
    table = pennon.write_dataset(pa.table({"a": [1]}), tmp_path / "t")
    with pytest.raises(ArgumentError, match=r"stable row ids, which version 1 does not have"):
        deleted_row_ids(table.snapshot, table.snapshot)
