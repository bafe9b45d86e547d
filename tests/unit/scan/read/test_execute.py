"""Scans of several fragments: how their columns are shared out, whatever columns there are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.dataset.lance_dataset import LanceDataset

ROWS = 2_400_000


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> LanceDataset:
    """Return a table of fragments that are each too large to be read together with others."""
    rows = pa.table({"a": np.arange(ROWS), "b": np.arange(ROWS) / 7})
    folder = tmp_path_factory.mktemp("execute") / "t"
    return pennon.write_dataset(rows, folder, max_rows_per_file=ROWS // 3)


def test_scan_without_stored_columns_gives_ids_of_all_rows(dataset: LanceDataset) -> None:
    found = dataset.to_table(columns=[], with_row_id=True, with_row_address=True)
    assert found.schema.names == ["_rowid", "_rowaddr"]
    assert found.num_rows == ROWS
    assert found["_rowid"].equals(found["_rowaddr"])
    batches = dataset.to_batches(columns=[], with_row_id=True)
    assert sum(each.num_rows for each in batches) == ROWS


def test_scan_without_stored_columns_of_a_table_without_rows(tmp_path: Path) -> None:
    empty = pennon.write_dataset(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "t")
    assert empty.to_table(columns=[], with_row_id=True).num_rows == 0


def test_scan_of_large_fragments_gives_all_columns_in_order(dataset: LanceDataset) -> None:
    found = dataset.to_table()
    assert found["a"].to_numpy().tolist() == list(range(ROWS))
    assert np.array_equal(found["b"].to_numpy(), np.arange(ROWS) / 7)
