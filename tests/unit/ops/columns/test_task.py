"""Common parts of the tasks that write columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.errors import SchemaMismatchError
from pennon.ops.columns.add import commit_add, plan_sql_columns
from pennon.ops.columns.task import (
    FEW_ROWS,
    MOST_ROWS_AT_ONCE,
    SMALL_BYTES,
    _gathered,
    check_made,
    rows_at_once,
)
from pennon.schema.arrow import schema_from_arrow


def _batches(count: int, value: bytes) -> list[pa.RecordBatch]:
    return [pa.record_batch({"b": [value + bytes([n % 256])]}) for n in range(count)]


def test_column_task_joins_small_batches() -> None:
    made = list(_gathered(_batches(FEW_ROWS + 10, b"")))
    assert [batch.num_rows for batch in made] == [FEW_ROWS, 10]
    assert [row["b"][0] for batch in made for row in batch.slice(0, 3).to_pylist()] == [
        *(0, 1, 2, FEW_ROWS % 256, FEW_ROWS % 256 + 1, FEW_ROWS % 256 + 2)
    ]


def test_column_task_buffers_few_bytes() -> None:
    made = list(_gathered(_batches(20, b"x" * (SMALL_BYTES // 4))))
    assert max(batch.num_rows for batch in made) == 4
    assert sum(batch.num_rows for batch in made) == 20
    (large,) = _gathered(large_ones := _batches(1, b"x" * SMALL_BYTES))
    assert large is large_ones[0]


def test_column_task_batches_have_fewer_wide_rows() -> None:
    assert rows_at_once(pa.schema([("a", pa.int8())])) == MOST_ROWS_AT_ONCE
    wide = rows_at_once(pa.schema([("v", pa.list_(pa.float64(), 10_000))]))
    assert 100 < wide < 1000
    assert rows_at_once(pa.schema([("v", pa.list_(pa.float64(), 10_000_000))])) == 1


def test_add_columns_checks_row_count_and_schema_of_results() -> None:
    schema = schema_from_arrow(pa.schema([("a", pa.int8()), ("b", pa.int8())]))
    check_made(pa.record_batch({"b": [1], "a": [2]}), schema, 1)
    with pytest.raises(SchemaMismatchError, match="2 rows, but they have 1"):
        check_made(pa.record_batch({"b": [1], "a": [2]}), schema, 2)
    with pytest.raises(SchemaMismatchError, match="announced"):
        check_made(pa.record_batch({"b": [1]}), schema, 1)


@pytest.mark.parametrize("is_large", [False, True])
def test_column_task_of_large_fragments_uses_one_thread(
    tmp_path: Path, is_large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether their columns are made on threads or not, they are the same."""
    data = pa.table({"a": pa.array(range(1000), pa.int64())})
    dataset = pennon.write_dataset(data, tmp_path, max_rows_per_file=300)
    plan = plan_sql_columns(dataset.snapshot, {"b": "a * 2"}, batch_rows=7)
    assert plan.task is not None
    monkeypatch.setattr("pennon.ops.columns.task.LARGE_BYTES", 0 if is_large else 1 << 40)
    assert (plan.task.threads == 1) is is_large
    commit_add(plan, [plan.task.run(number) for number in range(plan.task.count)])
    found = pennon.dataset(tmp_path).to_table()["b"].to_pylist()
    assert found == list(range(0, 2000, 2))
