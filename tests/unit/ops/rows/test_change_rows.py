"""Rows with their change in one pass: deletion files and new rows, and only counts returned."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pennon
from pennon.errors import FormatError, MatchError, SchemaMismatchError
from pennon.ops.commit import commit_on
from pennon.ops.rows.change_rows import Change, Clause, plan_change
from pennon.ops.rows.changed_wire import parse_changed, serialize_changed
from pennon.ops.rows.deletion_vectors import Removals
from pennon.scan.snapshot import Snapshot
from pennon.spark.changes.row_changes import change_operation
from pennon.table.versions import read_manifest
from pennon.testing import CountingStore

CLAUSES = (
    Clause(Change.UPDATE, ("v",)),
    Clause(Change.DELETE),
    Clause(Change.UPDATE, ("v", "t")),
    Clause(Change.INSERT, ("k", "t")),
)


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def snapshot(request: Any, tmp_path: Path) -> Snapshot:
    rows = pa.table({"k": range(20), "v": range(20), "t": pa.array(["x"] * 20).dictionary_encode()})
    options = {"max_rows_per_file": 8, "enable_stable_row_ids": request.param}
    return pennon.write_dataset(rows, tmp_path / "t", **options).snapshot


def batch(rows: Sequence[tuple[int | None, int, int | None, str | None]]) -> pa.RecordBatch:
    """Address, clause, and the values of k, v (the same number) and t."""
    addresses, clauses, numbers, texts = zip(*rows, strict=True)
    return pa.RecordBatch.from_pydict({
        "a": pa.array(addresses, pa.int64()),
        "c": pa.array(clauses, pa.int32()),
        "k": pa.array(numbers, pa.int64()),
        "v": pa.array(numbers, pa.int64()),
        "t": pa.array(texts, pa.string()).dictionary_encode(),
    })  # fmt: skip


def at(fragment: int, offset: int) -> int:
    return fragment << 32 | offset


def test_one_pass_changes_rows_of_many_fragments(snapshot: Snapshot) -> None:
    task = pickle.loads(pickle.dumps(plan_change(snapshot, CLAUSES)))
    changed = task.run([
        batch([(at(0, 1), 0, 100, None), (at(0, 2), 1, None, None)]),
        batch([(at(0, 3), 2, 300, "three"), (at(2, 0), 1, None, None)]),
        batch([(at(2, 1), 1, None, None), (at(2, 2), 1, None, None), (at(2, 3), 1, None, None)]),
        batch([(None, 3, 77, "new"), (None, 3, 78, None)]),
    ])  # fmt: skip
    assert changed.rows == (1, 5, 1, 2)
    assert parse_changed(serialize_changed(changed)) == changed
    assert [(each.fragment_id, each.rows) for each in changed.removals] == [(0, 3), (2, 4)]
    assert [each.left is None for each in changed.removals] == [False, True]
    commit_on(snapshot, change_operation(task, [changed]))
    table = pennon.dataset(snapshot.store.uri)
    rows = [tuple(row.values()) for row in table.to_table().sort_by("k").to_pylist()]
    old = [(k, k, "x") for k in range(16) if k not in (1, 2, 3)]
    assert rows == sorted([
        *old, (1, 100, "x"), (3, 300, "three"), (77, None, "new"), (78, None, None),
    ])  # fmt: skip
    if snapshot.manifest.has_stable_row_ids:
        ids = table.to_table(columns=["k", "_rowid"]).to_pylist()
        kept = {row["k"]: row["_rowid"] for row in ids}
        assert (kept[1], kept[3], kept[9]) == (1, 3, 9)
        assert {kept[77], kept[78]} == {20, 21}


def test_change_of_one_row_by_two_source_rows_is_refused(snapshot: Snapshot) -> None:
    twice = [batch([(at(0, 1), 1, None, None)]), batch([(at(0, 1), 1, None, None)])]
    with pytest.raises(MatchError, match="row 1 of fragment 0"):
        plan_change(snapshot, CLAUSES).run(twice)
    assert plan_change(snapshot, CLAUSES, once=True).run(twice).rows == (0, 1, 0, 0)


def test_rows_in_another_order_are_refused(snapshot: Snapshot) -> None:
    for first, second in (((at(1, 0)), at(0, 0)), (None, at(0, 0))):
        rows = [batch([(first, 3 if first is None else 1, 1, None)]), batch([(second, 1, 1, None)])]
        with pytest.raises(FormatError, match="order of their addresses"):
            plan_change(snapshot, CLAUSES).run(rows)


def test_insert_of_null_in_required_column_is_refused(tmp_path: Path) -> None:
    field = pa.field("k", pa.int64(), nullable=False)
    rows = pa.table({"k": [1], "v": [1]}, pa.schema([field, ("v", pa.int64())]))
    snapshot = pennon.write_dataset(rows, tmp_path / "t").snapshot
    task = plan_change(snapshot, [Clause(Change.INSERT, ("v",))])
    new = batch([(None, 0, 1, None)]).select(["a", "c", "v"])
    with pytest.raises(SchemaMismatchError, match="'k' is never NULL"):
        task.run([new])


def test_change_rows_message_size_is_independent_of_rows(tmp_path: Path) -> None:
    sizes = []
    for rows in (100, 100_000):
        uri = tmp_path / f"t{rows}"
        snapshot = pennon.write_dataset(pa.table({"v": range(rows)}), uri).snapshot
        changes = pa.RecordBatch.from_pydict({
            "a": pa.array(range(0, rows, 2), pa.int64()),
            "c": pa.array([0] * (rows // 2), pa.int32()),
            "v": pa.array([7] * (rows // 2), pa.int64()),
        })  # fmt: skip
        task = plan_change(snapshot, [Clause(Change.UPDATE, ("v",))])
        sizes.append(len(serialize_changed(task.run([changes]))))
    assert abs(sizes[1] - sizes[0]) < 16


@pytest.mark.parametrize("disturbed", [False, True], ids=["alone", "another writer"])
def test_change_rows_reads_deletion_files_after_concurrent_delete_only(
    snapshot: Snapshot, disturbed: bool
) -> None:
    task = plan_change(snapshot, [Clause(Change.DELETE)])
    rows = batch([(at(0, 1), 0, None, None), (at(1, 1), 0, None, None)]).select(["a", "c"])
    changed = task.run([rows])
    assert Removals.of(changed.removals).rows == 2
    if disturbed:
        pennon.dataset(snapshot.store.uri).delete("k = 5")
    store = CountingStore(snapshot.store)
    seen = Snapshot(store, snapshot.manifest)
    commit_on(seen, change_operation(task, [changed]))
    read = [
        path
        for path, each in store.by_path.items()
        if path.startswith("_deletions") and each.rounds
    ]
    assert bool(read) == disturbed
    manifest = read_manifest(snapshot.store)
    assert sum(fragment.num_deleted_rows or 0 for fragment in manifest.fragments) == 2 + disturbed
