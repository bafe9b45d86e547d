"""Explicit commits of transactions are as safe as operations that plan and commit at once."""

from __future__ import annotations

import pickle
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pennon
from pennon import LanceOperation
from pennon.errors import NotFoundError, RetryableConflict
from pennon.ops.merge_insert.clauses import Clauses, Matched
from pennon.ops.merge_insert.merge import commit_merge, plan_merge, run_merge
from pennon.ops.merge_insert.source import Source
from pennon.ops.rows.delete import commit_delete, plan_delete
from pennon.ops.rows.update import commit_update, plan_update
from pennon.ops.run_tasks import run_tasks

ROWS = 12
HOUR_NS = 3600 * 10**9


def rows(first: int, count: int, value: int = 0) -> pa.Table:
    keys = range(first, first + count)
    return pa.table({"k": list(keys), "v": [value] * count, "w": [value] * count})


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def dataset(tmp_path: Path, request: pytest.FixtureRequest) -> pennon.LanceDataset:
    return pennon.write_dataset(
        rows(0, ROWS), tmp_path / "t", max_rows_per_file=6, enable_stable_row_ids=request.param
    )


def values(dataset: pennon.LanceDataset, column: str = "v") -> dict[int, int]:
    found = pennon.dataset(dataset.uri).to_table()
    assert len(set(found["k"].to_pylist())) == found.num_rows
    return dict(zip(found["k"].to_pylist(), found[column].to_pylist(), strict=True))


def another(dataset: pennon.LanceDataset) -> pennon.LanceDataset:
    return pennon.dataset(dataset.uri, version=dataset.version)


def merged(dataset: pennon.LanceDataset, data: pa.Table) -> Any:
    builder = dataset.merge_insert("k").when_matched_update_all().when_not_matched_insert_all()
    return pickle.loads(pickle.dumps(builder.execute_uncommitted(data)[0]))


def deletion(dataset: pennon.LanceDataset, number: int, where: str) -> LanceOperation.Delete:
    fragment = dataset.get_fragments()[number].delete(where)
    assert fragment is not None
    return LanceOperation.Delete([fragment], [], where)


def commit(dataset: pennon.LanceDataset, what: Any, read_version: int | None = None) -> Any:
    return pennon.LanceDataset.commit(dataset.uri, what, read_version=read_version)


# --- rows of one fragment -------------------------------------------------------------------------


def test_commits_of_changes_of_different_rows_are_merged(dataset: pennon.LanceDataset) -> None:
    base = another(dataset)
    dataset.delete("k = 0")
    base = another(dataset)
    merge, delete = merged(base, rows(1, 2, value=7)), deletion(base, 0, "k = 3")
    dataset.delete("k = 4")
    commit(dataset, merge)
    commit(dataset, delete, base.version)
    assert values(dataset) == {
        k: 7 if k in {1, 2} else 0 for k in range(1, ROWS) if k not in {3, 4}
    }


def test_commits_of_changes_of_one_row_conflict(dataset: pennon.LanceDataset) -> None:
    merge, delete = merged(dataset, rows(1, 2, value=7)), deletion(dataset, 0, "k in (2, 3)")
    another(dataset).delete("k = 2")
    for what, version in ((merge, None), (delete, dataset.version)):
        with pytest.raises(RetryableConflict, match="row 2 of fragment 0"):
            commit(dataset, what, version)
    assert values(dataset) == {k: 0 for k in range(ROWS) if k != 2}


def test_commits_of_merges_with_equal_new_keys_conflict(dataset: pennon.LanceDataset) -> None:
    """Also where the operation is taken out of its transaction."""
    first, second, third = (merged(dataset, rows(50, 2, value=n)) for n in (1, 2, 3))
    update = merged(dataset, rows(0, 1, value=4))
    commit(dataset, first)
    with pytest.raises(RetryableConflict, match="adds rows by their keys"):
        commit(dataset, second)
    with pytest.raises(RetryableConflict, match="adds rows by their keys"):
        commit(dataset, third.operation, third.read_version)
    commit(dataset, update)
    assert values(dataset) == {k: 4 if k == 0 else 0 for k in range(ROWS)} | {50: 1, 51: 1}


# --- planned on an older version than is said -----------------------------------------------------


@pytest.mark.parametrize("detached", [False, True])
def test_commit_of_old_deletion_file_conflicts(
    dataset: pennon.LanceDataset, detached: bool
) -> None:
    late = deletion(dataset, 0, "k = 3")
    dataset.delete("k = 4")
    with pytest.raises(RetryableConflict, match="row 4 of fragment 0 is deleted in version 2"):
        pennon.LanceDataset.commit(dataset, late, read_version=2, detached=detached)
    right = deletion(dataset, 0, "k = 3")
    commit(dataset, right, dataset.version)
    assert values(dataset).keys() == {k for k in range(ROWS) if k not in {3, 4}}


def test_update_columns_commit_keeps_columns_of_concurrent_commits(
    dataset: pennon.LanceDataset,
) -> None:
    def update(column: str, value: int) -> LanceOperation.Update:
        data = pa.table({"k": [1], column: [value]})
        fragment, fields, *_ = base.get_fragments()[0].update_columns(data, "k")
        return LanceOperation.Update([], [fragment], [], fields, update_mode="rewrite_columns")

    base = another(dataset)
    first, second = update("v", 5), update("w", 6)
    done = commit(dataset, first, base.version)
    with pytest.raises(RetryableConflict, match="column 'v' of fragment 0"):
        commit(dataset, second, done.version)
    base = done
    commit(dataset, update("w", 6), done.version)
    assert (values(dataset)[1], values(dataset, "w")[1]) == (5, 6)


def test_commit_over_cleaned_up_version_conflicts(dataset: pennon.LanceDataset) -> None:
    late = deletion(dataset, 0, "k = 3")
    planned_on = dataset.version
    dataset.delete("k = 4")
    for path in (Path(dataset.uri) / "_versions").glob("*.manifest"):
        if path.name.startswith(str(2**64 - 1 - planned_on)):
            path.unlink()
    with pytest.raises(RetryableConflict):
        commit(dataset, late, planned_on)


# --- jobs that take long --------------------------------------------------------------------------


def test_commit_of_files_deleted_by_clean_up_is_refused(dataset: pennon.LanceDataset) -> None:
    """A delete, an update and a merge that began more than an hour ago look for their files."""
    now = time.time_ns()
    delete = plan_delete(dataset.snapshot, "k = 1")
    update = plan_update(dataset.snapshot, {"v": "1"}, "k = 2")
    source = Source.of(rows(3, 1, value=1), dataset.snapshot.manifest.schema, ["k"])
    merge = plan_merge(dataset.snapshot, source, Clauses(matched=Matched.UPDATE))
    for task in (delete, update, merge):
        assert abs(task.planned_ns - now) < HOUR_NS
    delete = replace(delete, planned_ns=now - 2 * HOUR_NS)
    update = replace(update, planned_ns=now - 2 * HOUR_NS)
    merge = replace(merge, planned_ns=now - 2 * HOUR_NS)
    removals = run_tasks(delete, delete.count, what="")
    found = [each for group in run_tasks(update, update.count, what="") for each in group]
    move = update.plan_move(found)
    written = run_tasks(move, move.count, what="")
    done = run_merge(merge)
    for path in [*(Path(dataset.uri) / "_deletions").iterdir(), *_orphans(dataset)]:
        path.unlink()
    with pytest.raises(NotFoundError, match="1 files to be committed are not there"):
        commit_delete(delete, removals)
    with pytest.raises(NotFoundError, match="2 files to be committed are not there"):
        commit_update(update, found, written)
    with pytest.raises(NotFoundError, match="2 files to be committed are not there"):
        commit_merge(done)
    assert values(dataset) == dict.fromkeys(range(ROWS), 0)


def _orphans(dataset: pennon.LanceDataset) -> list[Path]:
    named = {file.path for fragment in dataset.get_fragments() for file in fragment.data_files()}
    return [path for path in (Path(dataset.uri) / "data").iterdir() if path.name not in named]
