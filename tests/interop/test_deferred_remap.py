"""Pennon compacts and leaves the indices as they are: both find the rows, and both go on from there."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import lance.optimize
import pyarrow as pa
import pytest

import pennon
from pennon.errors import RetryableConflict, UnsupportedError
from pennon.optimize import Compaction, RewriteResult
from pennon.proto.table_pb2 import FragmentReuseIndexDetails
from pennon.table.indices import FRAGMENT_REUSE, Index
from pennon.table.indices_wire import parse_indices
from tests.interop.indexed_tables import Tables, differences
from tests.interop.test_moved_rows import check, indexed

DEFERRED: Any = {"defer_index_remap": True}
TheirCompaction: Any = lance.optimize.Compaction
TheirResult: Any = lance.optimize.RewriteResult


def put_off(folder: str, target_rows_per_fragment: int = 1000) -> None:
    pennon.dataset(folder).optimize.compact_files(
        defer_index_remap=True, target_rows_per_fragment=target_rows_per_fragment
    )


def check_both(folder: str, tables: Tables) -> None:
    """Check that pylance finds with its indices what is there, and Pennon, too."""
    check(folder, tables, 6)
    theirs = lance.dataset(folder)
    theirs.validate()
    for _ in range(12):
        condition = tables.leaf()
        plain, found = (
            theirs.to_table(["id"], condition, use_scalar_index=uses)["id"].to_pylist()
            for uses in (False, True)
        )
        assert sorted(found) == sorted(plain), condition


def entry(folder: str) -> Index:
    indices = parse_indices(pennon.dataset(folder).snapshot.manifest.indices)
    return next(index for index in indices if index.name == FRAGMENT_REUSE)


def test_deferred_remap_alternates_with_pylance(tmp_path: Path) -> None:
    tables, folder = Tables(77), str(tmp_path / "t.lance")
    indexed(folder, tables)
    pennon.dataset(folder).delete("id % 7 = 3")
    put_off(folder, 70)
    check_both(folder, tables)
    lance.dataset(folder).delete("id % 6 = 1")
    lance.dataset(folder).optimize.compact_files(defer_index_remap=True)
    check_both(folder, tables)
    pennon.write_dataset(tables.rows(40), folder, mode="append")
    pennon.dataset(folder).delete("id % 5 = 2")
    put_off(folder)
    check_both(folder, tables)
    lance.dataset(folder).optimize.optimize_indices()
    put_off(folder)
    check_both(folder, tables)


def test_optimize_indices_after_deferred_remap(tmp_path: Path) -> None:
    tables, folder = Tables(78), str(tmp_path / "t.lance")
    indexed(folder, tables)
    pennon.dataset(folder).delete("id % 7 = 3")
    put_off(folder, 70)
    pennon.write_dataset(tables.rows(40), folder, mode="append")
    pennon.dataset(folder).optimize.optimize_indices()
    ours = pennon.dataset(folder)
    for index in ours.describe_indices():
        if index.name != FRAGMENT_REUSE:
            assert ours.index_statistics(index.name)["num_unindexed_rows"] == 0, index.name
    check_both(folder, tables)
    ours.optimize.compact_files(target_rows_per_fragment=1000)
    check_both(folder, tables)
    put_off(folder, 200)
    pennon.dataset(folder).delete("id % 5 = 3")
    pennon.dataset(folder).optimize.optimize_indices()
    check_both(folder, tables)


def test_fragment_reuse_entry_equals_that_of_pylance(tmp_path: Path) -> None:
    """But for uuid, time, and the names of fragments that each gives."""
    folders = [str(tmp_path / name) for name in ("ours", "theirs")]
    for folder in folders:
        tables = Tables(5)
        indexed(folder, tables)
        lance.dataset(folder).delete("id % 7 = 3")
    put_off(folders[0])
    lance.dataset(folders[1]).optimize.compact_files(
        defer_index_remap=True, target_rows_per_fragment=1000
    )
    ours, theirs = map(entry, folders)
    assert ours.fragment_ids == theirs.fragment_ids
    assert ours.details is not None
    assert theirs.details is not None
    assert ours.details[0] == theirs.details[0]
    messages = [
        FragmentReuseIndexDetails.FromString(each[1]) for each in (ours.details, theirs.details)
    ]
    assert str(messages[0]) == str(messages[1])
    assert ours.dataset_version == theirs.dataset_version
    assert (ours.field_ids, ours.index_version) == (theirs.field_ids, theirs.index_version)


def test_deferred_remap_without_index_makes_no_entry(tmp_path: Path) -> None:
    folder = str(tmp_path / "t.lance")
    lance.write_dataset(Tables(1).rows(30), folder, max_rows_per_file=10)
    put_off(folder)
    table = pennon.dataset(folder)
    assert len(table.get_fragments()) == 1
    assert not table.describe_indices()


def test_deferred_remap_with_large_details_writes_a_file(tmp_path: Path) -> None:
    folder = str(tmp_path / "t.lance")
    data = pa.table({"k": pa.array(range(2_000_000), pa.int64())})
    made = lance.write_dataset(data, folder, max_rows_per_file=1_000_000)
    made.create_scalar_index("k", "BTREE")
    lance.dataset(folder).delete("k % 3 = 1")
    put_off(folder, 3_000_000)
    (found,) = Path(folder).glob("_indices/*/details.binpb")
    assert found.stat().st_size > 200_000
    for dataset in (pennon.dataset(folder), lance.dataset(folder)):
        for condition, count in (("k = 7", 0), ("k < 10", 7), ("k > 1999990", 6)):
            assert dataset.count_rows(condition) == count
        assert "@k_idx(" in dataset.scanner(filter="k = 7").explain_plan()
    lance.dataset(folder).delete("k % 5 = 0")
    put_off(folder, 3_000_000)
    assert {
        each.count_rows("k < 10") for each in (pennon.dataset(folder), lance.dataset(folder))
    } == {5}


def test_deferred_remap_with_stable_row_ids_is_refused(tmp_path: Path) -> None:
    folder = str(tmp_path / "t.lance")
    lance.write_dataset(
        Tables(1).rows(30), folder, max_rows_per_file=10, enable_stable_row_ids=True
    )
    with pytest.raises(
        UnsupportedError, match="defer_index_remap is not for tables with stable row ids"
    ):
        put_off(folder)


@pytest.mark.parametrize("planned_by", ["Pennon", "pylance"])
def test_deferred_remap_results_interchange_with_pylance(tmp_path: Path, planned_by: str) -> None:
    tables, folder = Tables(3), str(tmp_path / "t.lance")
    indexed(folder, tables)
    lance.dataset(folder).delete("id % 4 = 3")
    if planned_by == "Pennon":
        ours = pennon.dataset(folder)
        plan = Compaction.plan(ours, DEFERRED)
        results = [TheirResult.from_json(task.execute(ours).json()) for task in plan.tasks]
        TheirCompaction.commit(lance.dataset(folder), results, DEFERRED)
    else:
        theirs = lance.dataset(folder)
        their_plan = TheirCompaction.plan(theirs, DEFERRED)
        ours_done = [
            RewriteResult.from_json(task.execute(theirs).json()) for task in their_plan.tasks
        ]
        Compaction.commit(pennon.dataset(folder), ours_done, DEFERRED)
    check_both(folder, tables)


# --- beside other commits -------------------------------------------------------------------------


def test_concurrent_deferred_compactions_are_both_committed(tmp_path: Path) -> None:
    folder = str(tmp_path / "t.lance")
    data = pa.table({"k": pa.array(range(80), pa.int64())})
    made = lance.write_dataset(data, folder, max_rows_per_file=10)
    made.create_scalar_index("k", "BTREE")
    table = pennon.dataset(folder)
    plan = Compaction.plan(table, {**DEFERRED, "target_rows_per_fragment": 40})
    first, second = [task.execute(table) for task in plan.tasks]
    lance_result = TheirResult.from_json(first.json())
    TheirCompaction.commit(lance.dataset(folder), [lance_result], DEFERRED)
    Compaction.commit(table, [second])
    for dataset in (pennon.dataset(folder), lance.dataset(folder)):
        assert dataset.to_table(["k"], filter="k IN (3, 44, 79)")["k"].to_pylist() == [3, 44, 79]
        assert dataset.count_rows() == 80
    (index,) = (each for each in pennon.dataset(folder).describe_indices() if each.name == "k_idx")
    assert index.num_rows_indexed == 80


@pytest.mark.parametrize("creator", ["Pennon", "pylance"])
@pytest.mark.parametrize("first", ["index", "compaction"])
def test_index_committed_with_deferred_remap_finds_moved_rows(
    tmp_path: Path, creator: str, first: str
) -> None:
    """Its files name the old rows, and the entry says where they are, whichever came first."""
    folder = str(tmp_path / "t.lance")
    data = pa.table({"k": pa.array(range(40), pa.int64()), "j": pa.array(range(40), pa.int64())})
    lance.write_dataset(data, folder, max_rows_per_file=10).create_scalar_index("k", "BTREE")
    lance.dataset(folder).delete("k % 10 = 3")
    before = lance.dataset(folder)
    made = before.create_index_uncommitted("j", "BTREE", name="j_idx", fragment_ids=[0, 1, 2, 3])
    ours, version = pennon.dataset(folder), before.version
    result = Compaction.plan(ours, DEFERRED).tasks[0].execute(ours)

    def compact() -> None:
        if creator == "pylance":
            Compaction.commit(ours, [result], DEFERRED)
        else:
            TheirCompaction.commit(before, [TheirResult.from_json(result.json())], DEFERRED)

    def index() -> None:
        if creator == "pylance":
            operation = lance.LanceOperation.CreateIndex([made], [])
            lance.LanceDataset.commit(folder, operation, read_version=version)
        else:
            mine = pennon.LanceOperation.CreateIndex([pennon_index(made)], [])
            pennon.LanceDataset.commit(folder, mine, read_version=version)

    steps: list[Callable[[], None]] = [index, compact] if first == "index" else [compact, index]
    for step in steps:
        step()
    for dataset in (pennon.dataset(folder), lance.dataset(folder)):
        for column in ("j", "k"):
            plan = dataset.scanner(filter=f"{column} > 35").explain_plan()
            assert f"@{column}_idx(" in plan
            found = dataset.to_table(["k"], filter=f"{column} IN (3, 17, 39)")["k"].to_pylist()
            assert found == [17, 39]
    described = {
        each.name: each.num_rows_indexed for each in pennon.dataset(folder).describe_indices()
    }
    assert described["j_idx"] == described["k_idx"] == 36


def pennon_index(made: Any) -> pennon.Index:
    return pennon.Index(
        uuid=made.uuid,
        name=made.name,
        fields=list(made.fields),
        dataset_version=made.dataset_version,
        fragment_ids=set(made.fragment_ids),
        index_version=made.index_version,
        created_at=made.created_at,
        index_details=made.index_details,
    )


def test_deferred_compaction_after_concurrent_delete_is_a_conflict(tmp_path: Path) -> None:
    folder = str(tmp_path / "t.lance")
    data = pa.table({"k": pa.array(range(40), pa.int64())})
    lance.write_dataset(data, folder, max_rows_per_file=10).create_scalar_index("k", "BTREE")
    table = pennon.dataset(folder)
    result = Compaction.plan(table, DEFERRED).tasks[0].execute(table)
    lance.dataset(folder).delete("k = 5")
    with pytest.raises(RetryableConflict):
        Compaction.commit(table, [result], DEFERRED)
    assert pennon.dataset(folder).count_rows("k < 10") == 9


def test_deferred_remap_in_random_histories(tmp_path: Path) -> None:
    tables, folder = Tables(900), str(tmp_path / "t.lance")
    indexed(folder, tables)
    rng = random.Random(3)
    steps: list[Callable[[], object]] = [
        *[lambda: put_off(folder, rng.randrange(30, 300))] * 3,
        *[lambda: lance.dataset(folder).optimize.compact_files(defer_index_remap=True)] * 2,
        lambda: pennon.write_dataset(tables.rows(30), folder, mode="append"),
        lambda: lance.write_dataset(tables.rows(30), folder, mode="append"),
        lambda: lance.dataset(folder).delete(f"id % 4 = {rng.randrange(4)}"),
        lambda: pennon.dataset(folder).delete(f"id % 6 = {rng.randrange(6)}"),
        lambda: pennon.dataset(folder).update({"s": "'new'"}, where="id % 8 = 2"),
        lambda: lance.dataset(folder).optimize.optimize_indices(),  # noqa: PLW0108 - of the newest version
    ]
    rng.shuffle(steps)
    for step in steps:
        step()
        assert not differences(folder, tables, 5)
    check_both(folder, tables)
