"""Tables of very many columns: work grows with the columns, not with their square."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pennon
from pennon.dataset.lance_dataset import LanceDataset

FEW, MANY = 500, 4000

READS: dict[str, Callable[[LanceDataset], Any]] = {
    "all": lambda table: table.to_table(),
    "chosen": lambda table: table.to_table(columns=table.schema.names),
    "late": lambda table: table.to_table(filter="c1 = 1", late_materialization=True),
}


@pytest.fixture(scope="module", params=["2.1", "legacy"])
def tables(request: pytest.FixtureRequest, tmp_path_factory: Any) -> dict[int, Path]:
    made = {}
    for columns in (FEW, MANY):
        made[columns] = tmp_path_factory.mktemp("wide") / "t"
        rows = pa.table({f"c{n}": pa.array([n], pa.int32()) for n in range(columns)})
        pennon.write_dataset(rows, made[columns], data_storage_version=request.param)
    return made


@pytest.mark.parametrize("read", READS)
def test_reading_all_columns_takes_time_for_each(tables: dict[int, Path], read: str) -> None:
    seconds = {}
    for columns, path in tables.items():
        table = pennon.dataset(path)
        begun = time.process_time()
        found = READS[read](table)
        seconds[columns] = time.process_time() - begun
        assert found.num_columns == columns
        assert found[columns - 1].to_pylist() == [columns - 1]
    assert seconds[MANY] < 6 * seconds[FEW] * MANY / FEW, seconds
