"""Tables of very many columns: work grows with the columns, not with their square."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pennon
from tests.faults.child import summary_of
from tests.limits.read_calls import READS

FEW, MANY = 1500, 3000


@pytest.fixture(scope="module", params=["2.1", pytest.param("legacy", marks=pytest.mark.slow)])
def tables(request: pytest.FixtureRequest, tmp_path_factory: Any) -> list[str]:
    made = []
    for columns in (FEW, MANY):
        path: Path = tmp_path_factory.mktemp("wide") / "t"
        rows = pa.table({f"c{n}": pa.array([n], pa.int32()) for n in range(columns)})
        pennon.write_dataset(rows, path, data_storage_version=request.param)
        made.append(str(path))
    return made


@pytest.mark.parametrize("read", READS)
def test_reading_all_columns_takes_linear_work(tables: list[str], read: str) -> None:
    calls: Any = summary_of("tests.limits.read_calls", read, *tables)
    few, many = calls
    assert few > FEW
    assert many < 1.3 * few * MANY / FEW, calls
