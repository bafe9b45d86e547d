"""Delete, update and merge: tasks that pickle, conflicts, written files, errors."""

from __future__ import annotations

import pickle
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.errors import (
    ArgumentError,
    MatchError,
    RetryableConflict,
    SchemaMismatchError,
)
from pennon.io.memory import MemoryStore
from pennon.ops.merge_insert.clauses import Clauses, Matched, WriteMode
from pennon.ops.merge_insert.merge import commit_merge, moved, patched, plan_merge
from pennon.ops.merge_insert.source import Source
from pennon.ops.rows.delete import commit_delete, delete, plan_delete
from pennon.ops.rows.find_rows import plan_groups
from pennon.ops.rows.update import commit_update, plan_update, update
from pennon.ops.run_tasks import run_tasks
from pennon.ops.write import FileLimits, commit_write, plan_write, write_fragments
from pennon.ops.write import WriteMode as TableMode
from pennon.scan.snapshot import Snapshot
from pennon.table.fragment import DeletionKind
from pennon.table.versions import read_manifest
from pennon.testing import CountingStore

OPTIONS: list[dict[str, Any]] = [{}, {"enable_stable_row_ids": True}]


def table(rows: int, first: int = 0) -> pa.Table:
    numbers = np.arange(first, first + rows)
    return pa.table({"k": numbers, "v": numbers * 10, "t": [f"t{n}" for n in numbers.tolist()]})


@pytest.fixture(params=OPTIONS, ids=["addresses", "stable"])
def dataset(request: Any, tmp_path: Path) -> pennon.LanceDataset:
    return pennon.write_dataset(table(20), tmp_path / "t", max_rows_per_file=8, **request.param)


def another(dataset: pennon.LanceDataset) -> pennon.LanceDataset:
    return pennon.dataset(dataset.uri, version=dataset.version)


def values(dataset: pennon.LanceDataset) -> dict[Any, Any]:
    rows = pennon.dataset(dataset.uri).to_table(["k", "v"]).to_pylist()
    found = {row["k"]: row["v"] for row in rows}
    assert len(found) == len(rows)
    return found


def upsert(dataset: pennon.LanceDataset, data: pa.Table, **options: Any) -> Any:
    builder = dataset.merge_insert("k").when_matched_update_all().when_not_matched_insert_all()
    for name, value in options.items():
        builder = getattr(builder, name)(value)
    return builder.execute(data)


# --- tasks ----------------------------------------------------------------------------------------


def test_delete_tasks_and_results_pickle(dataset: pennon.LanceDataset) -> None:
    task = pickle.loads(pickle.dumps(plan_delete(dataset.snapshot, "k % 3 = 0")))
    removals = [pickle.loads(pickle.dumps(task.run(number))) for number in range(task.count)]
    manifest, rows = commit_delete(task, removals)
    assert (manifest.version, rows) == (2, 7)
    assert sorted(values(dataset)) == [n for n in range(20) if n % 3]


def test_update_tasks_and_results_pickle(dataset: pennon.LanceDataset) -> None:
    task = pickle.loads(pickle.dumps(plan_update(dataset.snapshot, {"v": "v + 1"}, "k < 12")))
    found = [pickle.loads(pickle.dumps(task.run(number))) for number in range(task.count)]
    flat = [each for several in found for each in several]
    move = pickle.loads(pickle.dumps(task.plan_move(flat)))
    commit_update(task, flat, run_tasks(move, move.count, what=""))
    assert values(dataset) == {n: n * 10 + (n < 12) for n in range(20)}


@pytest.mark.parametrize("mode", [WriteMode.AUTO, WriteMode.COLUMNS])
def test_merge_tasks_and_results_pickle(mode: WriteMode, dataset: pennon.LanceDataset) -> None:
    snapshot = dataset.snapshot
    data = pa.table({"k": [3, 30, 12], "v": [-3, -30, -12]})
    source = Source.of(data, snapshot.manifest.schema, ["k"])
    clauses = Clauses(Matched.UPDATE, "source.v < target.v", inserts=mode is WriteMode.AUTO)
    plan = plan_merge(snapshot, source, clauses, mode)
    task = pickle.loads(pickle.dumps(plan.task))
    groups = [pickle.loads(pickle.dumps(task.run(number))) for number in range(task.count)]
    if task.in_place:
        patch = pickle.loads(pickle.dumps(plan.plan_patch(groups)))
        commit_merge(patched(plan, groups, [patch.run(number) for number in range(patch.count)]))
    else:
        write = pickle.loads(pickle.dumps(plan.plan_write(groups)))
        written = [write.run(number) for number in range(write.count)]
        fragments = [each for several, _ in written for each in several]
        removals = [each for _, several in written for each in several]
        commit_merge(moved(plan, groups, fragments, removals))
    new = {30: -30} if mode is WriteMode.AUTO else {}
    assert values(dataset) == {n: n * 10 for n in range(20)} | {3: -3, 12: -12} | new


def test_small_fragments_are_grouped_into_one_task(tmp_path: Path) -> None:
    made = pennon.write_dataset(table(600), tmp_path / "t", max_rows_per_file=1)
    assert plan_groups(made.snapshot) == (range(256), range(256, 512), range(512, 600))
    assert made.update({"v": "-1"}, where="k % 100 = 7") == {"num_rows_updated": 6}
    assert len(made.get_fragments()) == 595
    made.validate()


# --- deletion files -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "kind"), [(5000, DeletionKind.ARROW), (5001, DeletionKind.BITMAP)]
)
def test_kinds_of_deletion_files(rows: int, kind: DeletionKind, tmp_path: Path) -> None:
    made = pennon.write_dataset(table(6000), tmp_path / "t")
    made.delete("k < 100")
    made.delete(f"k < {rows}")
    (fragment,) = made.snapshot.manifest.fragments
    assert fragment.deletion_file is not None
    assert fragment.deletion_file.kind is kind
    assert fragment.deletion_file.num_deleted_rows == rows
    assert made.to_table(["k"]).column("k").to_pylist() == list(range(rows, 6000))


def test_rows_of_one_fragment(dataset: pennon.LanceDataset) -> None:
    fragment = dataset.get_fragments()[1]
    left = fragment.delete_rows([0, 3, 3])
    assert left is not None
    assert (left.id, left.num_deletions, left.num_rows) == (1, 2, 6)
    operation = pennon.LanceOperation.Delete([left], [0], "by hand")
    pennon.LanceDataset.commit(dataset, operation, read_version=1)
    assert sorted(values(dataset)) == [9, 10, *range(12, 20)]
    dataset.checkout_latest()
    (changed, _) = dataset.get_fragments()
    again = changed.delete_rows([0, 1])
    assert again is not None
    assert again.num_deletions == 3
    assert changed.delete("k > 8") is None
    nothing = changed.delete("k < 8")
    assert nothing is not None
    assert nothing.num_deletions == 2
    with pytest.raises(ValueError, match="fragment 1 has 8 rows"):
        changed.delete_rows([8])


# --- conflicts ------------------------------------------------------------------------------------


def test_deletes_of_different_rows_follow_each_other(dataset: pennon.LanceDataset) -> None:
    other = another(dataset)
    dataset.delete("k = 1")
    assert other.delete("k IN (2, 3)", conflict_retries=0) == {"num_deleted_rows": 2}
    assert sorted(values(dataset)) == [0, *range(4, 20)]
    (first, *_) = other.snapshot.manifest.fragments
    assert first.num_deleted_rows == 3


def test_updates_of_different_rows_follow_each_other(dataset: pennon.LanceDataset) -> None:
    other = another(dataset)
    dataset.update({"v": "1"}, where="k = 1")
    assert other.update({"v": "2"}, where="k = 2", conflict_retries=0) == {"num_rows_updated": 1}
    assert values(dataset) == {n: n * 10 for n in range(20)} | {1: 1, 2: 2}


def test_concurrent_updates_of_one_row_are_retried(dataset: pennon.LanceDataset) -> None:
    other = another(dataset)
    dataset.update({"v": "v + 1"}, where="k = 5")
    with pytest.raises(RetryableConflict, match="row 5 of fragment 0"):
        another(other).update({"v": "v + 1"}, where="k = 5", conflict_retries=0)
    assert other.update({"v": "v + 1"}, where="k = 5") == {"num_rows_updated": 1}
    assert values(dataset)[5] == 52


def test_update_skips_concurrently_deleted_rows(dataset: pennon.LanceDataset) -> None:
    other = another(dataset)
    dataset.delete("k = 5")
    assert other.update({"v": "0"}, where="k IN (5, 6)") == {"num_rows_updated": 1}
    assert 5 not in values(dataset)
    assert values(dataset)[6] == 0


def test_update_is_not_retried_after_the_timeout(dataset: pennon.LanceDataset) -> None:
    other = another(dataset)
    dataset.update({"v": "1"}, where="k = 5")
    with pytest.raises(RetryableConflict):
        other.update({"v": "2"}, where="k = 5", retry_timeout=timedelta(0))


def test_new_keys_are_added_once(dataset: pennon.LanceDataset) -> None:
    other = another(dataset)
    assert upsert(dataset, table(4, 18))["num_inserted_rows"] == 2
    with pytest.raises(RetryableConflict, match="adds rows by their keys"):
        upsert(another(other), table(2, 20), conflict_retries=0)
    found = upsert(other, table(4, 18))
    assert (found["num_inserted_rows"], found["num_updated_rows"]) == (0, 4)
    assert sorted(values(dataset)) == list(range(22))


def test_upsert_after_concurrent_delete_commits_without_retry(dataset: pennon.LanceDataset) -> None:
    other = another(dataset)
    dataset.delete("k = 3")
    assert upsert(other, table(2, 20), conflict_retries=0)["num_inserted_rows"] == 2
    assert sorted(values(dataset)) == [0, 1, 2, *range(4, 22)]


def race(uri: str, rounds: int) -> None:
    """Let two threads merge the same keys, new in each round."""

    def work(errors: list[BaseException]) -> None:
        try:
            mine = pennon.dataset(uri)
            for number in range(rounds):
                barrier.wait()
                upsert(mine, table(3, 20 + 2 * number), conflict_retries=50)
        except BaseException as error:  # noqa: BLE001 - told by the main thread
            errors.append(error)
            barrier.abort()

    barrier, errors = threading.Barrier(2), list[BaseException]()
    threads = [threading.Thread(target=work, args=(errors,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_concurrent_merges_insert_each_key_once(dataset: pennon.LanceDataset) -> None:
    race(dataset.uri, 4)
    assert sorted(values(dataset)) == list(range(20 + 2 * 4 + 1))


@pytest.mark.slow
def test_many_concurrent_merges_insert_each_key_once(dataset: pennon.LanceDataset) -> None:
    race(dataset.uri, 200)
    assert sorted(values(dataset)) == list(range(20 + 2 * 200 + 1))


# --- what is read and written ---------------------------------------------------------------------


def counted(rows: int, rows_per_file: int) -> tuple[CountingStore, Snapshot]:
    """Return a table in a store that counts."""
    store = CountingStore(MemoryStore(uuid4().hex))
    data = pa.table({"k": np.arange(rows), "v": np.random.default_rng(0).random(rows)})
    limits = FileLimits(max_rows=rows_per_file)
    plan = plan_write(store, data.schema, TableMode.CREATE, limits=limits)
    commit_write(plan, write_fragments(plan.task, data.to_batches()))
    store.reset()
    return store, Snapshot(store, read_manifest(store))


def written(store: CountingStore, folder: str) -> list[int]:
    """Return the bytes of each file written into a folder."""
    counts = store.by_path.items()
    return [c.written_bytes for path, c in counts if path.startswith(folder) and c.written_bytes]


def check_costs(rows: int, rows_per_file: int) -> None:
    """Change a hundredth of the rows; raise if more is written than that."""
    store, snapshot = counted(rows, rows_per_file)
    hundredth, fragments = rows // 100, rows // rows_per_file
    manifest, deleted = delete(snapshot, "k % 100 = 1")
    assert deleted == hundredth
    assert not written(store, "data/")
    assert len(written(store, "_deletions/")) == fragments
    assert sum(written(store, "_deletions/")) < 5 * hundredth + 600 * fragments
    store.reset()
    _, updated = update(Snapshot(store, manifest), {"v": "0.5"}, "k % 100 = 2")
    assert updated == hundredth
    (size,) = written(store, "data/")
    assert size < 16 * hundredth + 5000


def test_change_writes_only_changed_rows() -> None:
    check_costs(100_000, 10_000)


@pytest.mark.slow
def test_change_writes_only_changed_rows_of_ten_million() -> None:
    check_costs(10_000_000, 1_000_000)


def test_columns_beside_the_condition_are_not_read() -> None:
    store, snapshot = counted(100_000, 100_000)
    delete(snapshot, "k = 77")
    assert store.counts.read_bytes < 500_000


# --- errors ---------------------------------------------------------------------------------------


def unchanged(dataset: pennon.LanceDataset) -> None:
    assert pennon.dataset(dataset.uri).version == dataset.version == 1
    dataset.validate()


@pytest.mark.parametrize("predicate", ["k", "nope = 1", "k +", "", "k = 'x' AND"])
def test_delete_and_update_with_invalid_conditions_are_refused(
    predicate: str, dataset: pennon.LanceDataset
) -> None:
    with pytest.raises(ArgumentError):
        dataset.delete(predicate)
    with pytest.raises(ArgumentError):
        dataset.update({"v": "1"}, where=predicate)
    unchanged(dataset)


@pytest.mark.parametrize(
    ("updates", "said"),
    [
        ({"v": "t"}, "column 'v' cannot be updated"),
        ({"v": "'x'"}, "column 'v' cannot be updated: string does not become int64"),
        ({"v": "make_array(1)"}, "column 'v' cannot be updated"),
        ({"nope": "1"}, "no column 'nope'; there are k, v, t"),
        ({}, "at least one column"),
    ],
)
def test_update_with_values_of_other_types_is_refused(
    updates: dict[str, str], said: str, dataset: pennon.LanceDataset
) -> None:
    with pytest.raises(ArgumentError, match=said):
        dataset.update(updates)
    unchanged(dataset)


def test_updates_are_text(dataset: pennon.LanceDataset) -> None:
    with pytest.raises(TypeError, match="'v' is to be SQL text, got int"):
        dataset.update({"v": 3})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="SQL text or a pyarrow expression"):
        dataset.delete(3)
    with pytest.raises(ArgumentError, match="conflict_retries"):
        dataset.delete("true", conflict_retries=-1)
    unchanged(dataset)


def test_update_and_upsert_of_null_in_required_column_are_refused(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("k", pa.int64()), pa.field("v", pa.int64(), nullable=False)])
    made = pennon.write_dataset(pa.table({"k": [1, 2], "v": [1, 2]}, schema), tmp_path / "t")
    with pytest.raises(SchemaMismatchError, match="column 'v' is never NULL"):
        made.update({"v": "NULL"})
    with pytest.raises(SchemaMismatchError, match="column 'v' is never NULL"):
        upsert(made, pa.table({"k": [3]}))
    assert made.merge_insert("k").when_matched_update_all().execute(pa.table({"k": [1]})) == {
        "num_inserted_rows": 0,
        "num_updated_rows": 1,
        "num_deleted_rows": 0,
    }
    assert values(made) == {1: 1, 2: 2}


def test_merge_insert_with_invalid_arguments_is_refused(dataset: pennon.LanceDataset) -> None:
    with pytest.raises(ArgumentError, match="no column named 'nope'"):
        dataset.merge_insert("nope")
    with pytest.raises(ArgumentError, match="needs a key"):
        dataset.merge_insert()
    with pytest.raises(ArgumentError, match="changes nothing"):
        dataset.merge_insert("k").execute(table(1))
    with pytest.raises(SchemaMismatchError, match="lacks 'k'"):
        upsert(dataset, table(1).select(["v"]))
    with pytest.raises(SchemaMismatchError, match="unexpected column 'q'"):
        upsert(dataset, table(1).append_column("q", [[1]]))
    with pytest.raises(MatchError, match=r"ambiguous.*k = 1"):
        upsert(dataset, pa.concat_tables([table(2), table(2)]).slice(1, 3))
    with pytest.raises(MatchError, match="must not be: k = 0"):
        dataset.merge_insert("k").when_matched_fail().execute(table(2))
    into_base = dataset.merge_insert("k").when_not_matched_insert_all().target_bases(["b"])
    with pytest.raises(ArgumentError, match="no base path 'b'"):
        into_base.execute(table(1))
    unchanged(dataset)


def test_the_primary_key_of_the_schema(tmp_path: Path) -> None:
    marked = {"lance-schema:unenforced-primary-key": "true"}
    schema = pa.schema([pa.field("k", pa.int64(), metadata=marked), pa.field("v", pa.int64())])
    data = pa.table({"k": [1, 2], "v": [1, 2]}, schema)
    made = pennon.write_dataset(data, tmp_path / "t")
    made.merge_insert().when_not_matched_insert_all().execute(pa.table({"k": [2, 3], "v": [9, 9]}))
    assert values(made) == {1: 1, 2: 2, 3: 9}


def test_a_merge_is_committed_later(dataset: pennon.LanceDataset) -> None:
    builder = dataset.merge_insert("k").when_matched_update_all().when_not_matched_insert_all()
    transaction, counts = builder.execute_uncommitted(table(4, 18).set_column(1, "v", [[0] * 4]))
    unchanged(dataset)
    assert counts == {"num_inserted_rows": 2, "num_updated_rows": 2, "num_deleted_rows": 0}
    pennon.LanceDataset.commit(dataset, transaction)
    assert values(dataset) == {n: n * 10 for n in range(18)} | dict.fromkeys(range(18, 22), 0)


def test_plans_are_text(dataset: pennon.LanceDataset) -> None:
    builder = dataset.merge_insert("k").when_matched_update_all("source.v > target.v")
    assert "MergeInsert: on=[k], when_matched=UpdateIf(source.v > target.v)" in (
        builder.explain_plan()
    )
    done = builder.analyze_plan(table(3))
    assert "num_updated_rows=0" in done
    assert "bytes_written=0, num_files_written=0" in done
    unchanged(dataset)


# --- beside other operations ----------------------------------------------------------------------


def test_changes_are_retried_after_a_concurrent_compaction(dataset: pennon.LanceDataset) -> None:
    handles = [another(dataset) for _ in range(3)]
    dataset.delete("k = 0")
    dataset.optimize.compact_files(target_rows_per_fragment=100)
    assert handles[0].delete("k = 1") == {"num_deleted_rows": 1}
    assert handles[1].update({"v": "0"}, where="k < 4") == {"num_rows_updated": 2}
    assert upsert(handles[2], table(4, 18))["num_updated_rows"] == 2
    assert values(dataset) == {n: n * 10 for n in range(2, 22)} | {2: 0, 3: 0}


def test_changes_are_retried_after_concurrent_added_columns(dataset: pennon.LanceDataset) -> None:
    handles = [another(dataset) for _ in range(2)]
    dataset.add_columns({"w": "v + 1"})
    handles[0].update({"v": "0"}, where="k = 1")
    upsert(handles[1], table(1, 2))
    rows = pennon.dataset(dataset.uri).to_table(["k", "w"], filter="k < 4").to_pylist()
    assert {row["k"]: row["w"] for row in rows} == {0: 1, 1: 11, 2: 21, 3: 31}


def test_changes_of_a_branch_are_its_own(dataset: pennon.LanceDataset) -> None:
    trial = dataset.create_branch("trial")
    trial.delete("k < 10")
    trial.update({"v": "0"}, where="k = 10")
    assert upsert(trial, table(2, 19))["num_inserted_rows"] == 1
    assert trial.count_rows() == 11
    again = pennon.dataset(dataset.uri).checkout_version(("trial", None))
    assert sorted(again.to_table(["k"]).column("k").to_pylist()) == list(range(10, 21))
    assert values(dataset) == {n: n * 10 for n in range(20)}
