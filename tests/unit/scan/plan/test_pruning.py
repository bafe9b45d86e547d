"""Conditions on row ids and addresses prune fragments and rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.core.units import FragmentId
from pennon.dataset.lance_dataset import LanceDataset
from pennon.expr.evaluate import evaluate
from pennon.expr.parse import parse_filter
from pennon.io import open_store
from pennon.scan.plan.pruning import prune_tasks
from pennon.scan.predicate import SqlPredicate
from pennon.scan.projection import MetaColumn, plan_scan_projection
from pennon.scan.read.tasks import NEAR_ROWS, plan_tasks
from pennon.scan.snapshot import Snapshot
from pennon.table.deletion import write_deletions
from pennon.table.fragment import Fragment
from pennon.table.manifest import Manifest
from pennon.table.versions import read_manifest
from pennon.testing import CountingStore

ROWS, SIZE = 40_000, 10_000
TABLE = pa.table({"n": np.arange(ROWS), "t": [f"row {n}" for n in range(ROWS)]})
DEAD = np.arange(2_000, 3_000, dtype=np.uint32)


def _with_deletions(store: Any) -> Manifest:
    """Return the table's manifest, rows 2000 to 2999 of fragment 1 being deleted."""
    manifest = read_manifest(store)
    deleted = write_deletions(store, FragmentId(1), 1, DEAD)
    fragments: list[Fragment] = list(manifest.fragments)
    old = fragments[1]
    fragments[1] = Fragment(old.id, old.files, old.physical_rows, deleted)
    return Manifest(manifest.schema, manifest.version, tuple(fragments))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> LanceDataset:
    folder = tmp_path_factory.mktemp("prune") / "t"
    pennon.write_dataset(TABLE, folder, max_rows_per_file=SIZE)
    store = CountingStore(open_store(folder))
    return LanceDataset.of_snapshot(str(folder), Snapshot(store, _with_deletions(store)))


@pytest.fixture(scope="module")
def rows(table: LanceDataset) -> pa.Table:
    return table.to_table(with_row_id=True, with_row_address=True)


F1 = 1 << 32

CONDITIONS = [
    f"_rowid = {F1 + 5}",
    f"_rowid IN (3, 9999, {F1 + 2_500}, {F1 + 3_000}, {(3 << 32) + 9_999}, {9 << 32})",
    f"_rowaddr >= {F1 + 9_990} AND _rowaddr < {(2 << 32) + 10}",
    f"_rowaddr BETWEEN {F1 + 1_990} AND {F1 + 3_010}",
    f"NOT (_rowaddr > 10 AND _rowaddr < {(3 << 32) + 9_000})",
    f"_rowid = 7 OR _rowaddr = {F1 + 8_000}",
    f"_rowid = 7 AND _rowaddr = {F1 + 8_000}",
    f"_rowaddr < {F1} AND n % 5000 = 3",
    "_rowid % 9999 = 0",
    "_rowid IS NULL",
    "_rowid != 4",
    f"_rowid IN ({', '.join(str(n) for n in range(0, 9_000, 3))})",
    f"_rowid IN ({', '.join(str(F1 + n) for n in range(0, 9_000, 7))}) AND t LIKE '%7'",
]


@pytest.mark.parametrize("text", CONDITIONS)
@pytest.mark.parametrize("bounds", [{}, {"limit": 3, "offset": 1}])
def test_pruning_by_row_id_and_address_equals_full_scan(
    table: LanceDataset, rows: pa.Table, text: str, bounds: dict[str, Any]
) -> None:
    everything = rows.combine_chunks().to_batches()[0]
    condition = parse_filter(text, rows.schema)
    expected = rows.filter(evaluate(condition, everything))
    if bounds:
        expected = expected.slice(1, 3)
    found = table.to_table(filter=text, with_row_id=True, with_row_address=True, **bounds)
    assert found.equals(expected)
    if not bounds:
        assert table.count_rows(text) == expected.num_rows


def _tasks(table: LanceDataset, text: str) -> list[tuple[int, int, int]]:
    schema = plan_scan_projection(table.snapshot.manifest.schema, None, list(MetaColumn)).arrow
    predicate = SqlPredicate.parse(text, schema)
    pruned = prune_tasks(table.snapshot, plan_tasks(table.snapshot), predicate)
    return [(task.fragment.id, task.start, task.end) for task in pruned]


def test_pruning_by_row_id_and_address_ranges(table: LanceDataset) -> None:
    """In live offsets: the thousand rows that are deleted are not counted."""
    assert _tasks(table, f"_rowid = {F1 + 5}") == [(1, 5, 6)]
    assert _tasks(table, f"_rowaddr >= {(3 << 32) + 9_990}") == [(3, 9_990, SIZE)]
    assert _tasks(table, f"_rowaddr = {F1 + 3_000}") == [(1, 2_000, 2_001)]
    assert _tasks(table, f"_rowid = {F1 + 2_500}") == []
    assert _tasks(table, f"_rowid IN (5, {5 + NEAR_ROWS}, 900)") == [
        (0, 5, 6 + NEAR_ROWS),
        (0, 900, 901),
    ]
    assert _tasks(table, "_rowid = 7 AND 1 = 0") == []
    assert len(_tasks(table, "_rowid % 2 = 0")) == 4


def test_pruning_by_row_id_reads_one_fragment(table: LanceDataset) -> None:
    condition = f"_rowid IN ({F1 + 5}, {F1 + 9_000})"
    table.to_table(filter=condition)  # the files' metadata are in the cache from here on
    store = table.snapshot.store
    assert isinstance(store, CountingStore)
    store.reset()
    found = table.to_table(filter=condition)
    assert found["n"].to_pylist() == [SIZE + 5, SIZE + 9_000]
    read = [path for path in store.by_path if store.by_path[path].rounds]
    files = table.snapshot.manifest.fragments[1].files
    assert read == [file.store_path for file in files]
    assert store.counts.asked_bytes < 40_000
    store.reset()
    assert table.to_table(filter=f"_rowaddr = {F1 + 2_500}").num_rows == 0
    assert table.to_table(filter="n > 5 AND false").num_rows == 0
    assert store.counts.rounds == 0


def test_pruning_by_stable_row_ids(tmp_path: Path) -> None:
    written = pennon.write_dataset(
        TABLE, tmp_path / "t", max_rows_per_file=SIZE, enable_stable_row_ids=True
    )
    assert _tasks(written, "_rowid = 25000") == [(2, 0, SIZE)]
    assert written.to_table(filter="_rowid = 25000")["n"].to_pylist() == [25_000]
    assert _tasks(written, f"_rowaddr = {F1}") == [(1, 0, 1)]
