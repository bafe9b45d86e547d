"""Pruning by statistics that pylance wrote leaves out no row of the result."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import pennon
from pennon.dataset.lance_dataset import LanceDataset
from pennon.scan.plan import pruning as prune
from tests.interop.oracle import Oracle
from tests.unit.scan.plan.test_page_statistics import GROUP, ROWS, SEED, random_filter, table_of

FILTERS = 40


def _everything(_snapshot: Any, tasks: Any, *_: Any) -> Any:
    return tasks


def _ids(dataset: LanceDataset, condition: str) -> list[int]:
    found = dataset.to_table(columns=["sorted"], filter=condition, with_row_id=True)
    return list(found["_rowid"].to_pylist())


def test_filters_pruned_by_0_1_statistics_equal_full_scans(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"max_rows_per_group": GROUP, "max_rows_per_file": ROWS // 2}
    table = table_of(random.Random(SEED))
    oracle.write(tmp_path / "t", table, data_storage_version="legacy", **options)
    dataset = pennon.dataset(tmp_path / "t")
    for seed in range(FILTERS):
        condition = random_filter(random.Random(seed))
        pruned = _ids(dataset, condition)
        with monkeypatch.context() as patched:
            patched.setattr(prune, "prune_pages", _everything)
            assert pruned == _ids(dataset, condition), condition
