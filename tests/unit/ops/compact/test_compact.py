"""Compaction of tables keeps rows, order, ids and versions; concurrent changes conflict or are retried."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.errors import ArgumentError, ConflictError, RetryableConflict, UnsupportedError
from pennon.optimize import Compaction, CompactionMetrics, CompactionPlan, RewriteResult
from pennon.table.row_ids.decode_wire import decode_row_versions

SIZES = [10, 20, 100, 10, 10, 10, 100, 5, 5]


def table(path: Path, version: str = "2.1", *, stable: bool = False) -> pennon.LanceDataset:
    """Return a table of small fragments, of which some rows are deleted."""
    first = 0
    for size in SIZES:
        numbers = np.arange(first, first + size)
        data = pa.table({"n": numbers, "s": [f"row {n}" if n % 5 else None for n in numbers]})
        pennon.write_dataset(
            data,
            path,
            mode="append" if first else "create",
            data_storage_version=version,
            enable_stable_row_ids=stable,
        )
        first += size
    dataset = pennon.dataset(path)
    dataset.delete("n % 11 = 3")
    return dataset


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1"])
def test_compaction_keeps_rows_in_fewer_fragments(tmp_path: Path, version: str) -> None:
    dataset = table(tmp_path, version)
    before = dataset.to_table()
    read_version = dataset.version
    metrics = dataset.optimize.compact_files(target_rows_per_fragment=25)
    assert metrics == CompactionMetrics(7, 3, 13, 3)
    assert dataset.version == read_version + 2  # ids are reserved, and then used
    assert dataset.to_table().sort_by("n") == before
    assert [f.count_rows() for f in dataset.get_fragments()] == [91, 91, 27, 27, 9]
    assert [f.num_deletions for f in dataset.get_fragments()] == [9, 9, 0, 0, 0]
    assert dataset.data_storage_version == version
    assert dataset.checkout_version(read_version).to_table() == before
    assert dataset.optimize.compact_files(target_rows_per_fragment=25) == CompactionMetrics()
    assert dataset.version == read_version + 2


def test_compaction_keeps_stable_row_ids_and_row_versions(tmp_path: Path) -> None:
    dataset = table(tmp_path, stable=True)
    before = dataset.to_table(with_row_id=True)
    born = _versions(dataset)
    dataset.optimize.compact_files()
    assert len(dataset.get_fragments()) == 1
    assert dataset.to_table(with_row_id=True) == before
    assert _versions(dataset) == born
    assert dataset._take_rows([before["_rowid"][7].as_py()])["n"].to_pylist() == [8]


def _versions(dataset: pennon.LanceDataset) -> list[tuple[int, int]]:
    """Return the versions of creation and of last change of all live rows."""
    found: list[tuple[int, int]] = []
    for fragment in dataset.get_fragments():
        it, rows = fragment.fragment, fragment.physical_rows
        assert isinstance(it.created_at_versions, bytes)
        assert isinstance(it.last_updated_at_versions, bytes)
        created = decode_row_versions(it.created_at_versions, rows).tolist()
        updated = decode_row_versions(it.last_updated_at_versions, rows).tolist()
        dead = set(dataset.snapshot.deleted(it).tolist())
        found += [
            each for n, each in enumerate(zip(created, updated, strict=True)) if n not in dead
        ]
    return found


def test_plan_execute_commit_across_processes(tmp_path: Path) -> None:
    dataset = table(tmp_path)
    before = dataset.to_table()
    plan = Compaction.plan(dataset, {"target_rows_per_fragment": 25})
    copy = pickle.loads(pickle.dumps(plan))
    assert copy == plan
    assert CompactionPlan.from_json(plan.json()) == plan
    assert repr(plan) == "CompactionPlan(read_version=10, tasks=<3 compaction tasks>)"
    pennon.write_dataset(before.slice(0, 3), tmp_path, mode="append")
    newer = pennon.dataset(tmp_path)
    results = [pickle.loads(pickle.dumps(task.execute(newer))) for task in copy.tasks]
    assert {result.read_version for result in results} == {10}
    assert RewriteResult.from_json(results[0].json()) == results[0]
    assert Compaction.commit(newer, results[1:]) == results[1].metrics + results[2].metrics
    assert Compaction.commit(newer, results[:1]).fragments_added == 1
    assert newer.count_rows() == before.num_rows + 3
    with pytest.raises(ConflictError):
        Compaction.commit(pennon.dataset(tmp_path), results[:1])
    assert Compaction.commit(newer, []) == CompactionMetrics()
    with pytest.raises(ArgumentError, match="two results"):
        Compaction.commit(newer, [results[0], results[0]])


def test_compaction_after_concurrent_delete_conflicts(tmp_path: Path) -> None:
    """Commits through a handle that knows of the delete, too (lance#6653)."""
    dataset = table(tmp_path)
    plan = Compaction.plan(dataset, {})
    results = [task.execute(dataset) for task in plan.tasks]
    other = pennon.dataset(tmp_path)
    other.delete("n = 7")
    for handle in (dataset, pennon.dataset(tmp_path)):
        with pytest.raises(RetryableConflict):
            Compaction.commit(handle, results)
    assert pennon.dataset(tmp_path).count_rows("n = 7") == 0


def test_compaction_task_of_another_table_is_refused(tmp_path: Path) -> None:
    task = Compaction.plan(table(tmp_path / "one"), {}).tasks[0]
    with pytest.raises(ArgumentError, match="no fragment 0 as planned"):
        task.execute(table(tmp_path / "other"))


def test_delete_after_concurrent_compaction_is_retried(tmp_path: Path) -> None:
    dataset = table(tmp_path)
    other = pennon.dataset(tmp_path)
    dataset.optimize.compact_files()
    other.delete("n = 7")  # done again on the new fragments
    assert pennon.dataset(tmp_path).count_rows() == dataset.count_rows() - 1


def test_compaction_of_fully_deleted_fragments(tmp_path: Path) -> None:
    pennon.write_dataset(pa.table({"n": range(10)}), tmp_path, max_rows_per_file=2)
    dataset = pennon.dataset(tmp_path)
    dataset.delete("n < 9")
    dataset.optimize.compact_files()
    assert dataset.to_table()["n"].to_pylist() == [9]


def test_compact_refuses_wrong_versions_and_plans(tmp_path: Path) -> None:
    dataset = table(tmp_path)
    with pytest.raises(UnsupportedError, match="cannot be written yet"):
        dataset.optimize.compact_files(data_storage_version="2.3")
    with pytest.raises(ArgumentError, match="cannot be added"):
        dataset.optimize.compact_files(data_storage_version="0.1")
    dataset.optimize.optimize_indices()  # there is none
    with pytest.raises(ArgumentError, match="no compaction plan"):
        CompactionPlan.from_json("{}")
    dataset.optimize.compact_files(data_storage_version="2.0", num_threads=1, batch_size=3)
    files = [file for fragment in dataset.get_fragments() for file in fragment.data_files()]
    assert {file.file_minor_version for file in files} == {0}


def test_compaction_with_byte_limit_is_idempotent(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for number in range(4):
        rows = pa.table({"b": [rng.bytes(100_000) for _ in range(40)]})
        pennon.write_dataset(rows, tmp_path, mode="append" if number else "create")
    dataset = pennon.dataset(tmp_path)
    dataset.optimize.compact_files(max_bytes_per_file=8_500_000)
    version, count = dataset.version, len(dataset.get_fragments())
    assert count == 2
    assert dataset.optimize.compact_files(max_bytes_per_file=8_500_000) == CompactionMetrics()
    assert dataset.version == version
    pennon.write_dataset(rows, tmp_path, mode="append")
    dataset = pennon.dataset(tmp_path)
    dataset.optimize.compact_files(max_bytes_per_file=8_500_000)
    assert dataset.count_rows() == 200
    assert dataset.optimize.compact_files(max_bytes_per_file=8_500_000) == CompactionMetrics()
