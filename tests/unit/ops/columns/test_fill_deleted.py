"""Rows in the places of deleted ones."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennon.ops.columns.column_file import ROWS_AT_ONCE, with_deleted_rows
from pennon.scan.deletion_mask import LiveRows

SCHEMA = pa.schema([("n", pa.int64()), ("t", pa.string()), ("l", pa.list_(pa.int8()))])


def _batches(values: list[int], cuts: list[int]) -> list[pa.RecordBatch]:
    table = pa.table(
        {"n": values, "t": [f"t{v}" for v in values], "l": [[v % 100] for v in values]},
        schema=SCHEMA,
    )
    ends = [*sorted(cut % (len(values) + 1) for cut in cuts), len(values)]
    starts = [0, *ends[:-1]]
    return [
        table.slice(start, end - start).combine_chunks().to_batches()[0]
        if end > start
        else SCHEMA.empty_table().to_batches()[0]
        if SCHEMA.empty_table().to_batches()
        else pa.RecordBatch.from_pylist([], SCHEMA)
        for start, end in zip(starts, ends, strict=True)
    ]


@given(
    st.lists(st.booleans(), min_size=1, max_size=60).filter(any),
    st.lists(st.integers(0, 1000), max_size=4),
    st.booleans(),
)
def test_filled_batches_keep_positions_of_live_rows(
    alive: list[bool], cuts: list[int], null: bool
) -> None:
    physical = np.flatnonzero(alive).tolist()
    live = LiveRows.of(len(alive), np.flatnonzero(~np.array(alive)).astype(np.int64))
    made = list(with_deleted_rows(_batches(physical, cuts), live, may_be_null=null))
    rows = pa.Table.from_batches(made, SCHEMA).to_pylist()
    assert len(rows) == len(alive)
    before = physical[0]
    for place, row in enumerate(rows):
        if alive[place]:
            before = place
            assert row == {"n": place, "t": f"t{place}", "l": [place % 100]}
        elif null:
            assert (row["t"], row["l"]) == (None, None)
            assert row["n"] in physical
        else:
            assert row["n"] in physical
            assert row["t"] == f"t{row['n']}"
    assert before == physical[-1]


def test_fill_deleted_without_deletions_copies_no_batch() -> None:
    batches = _batches([1, 2, 3], [1])
    made = list(with_deleted_rows(batches, LiveRows.of(3), may_be_null=True))
    assert all(ours is theirs for ours, theirs in zip(made, batches, strict=True))


def test_filled_batches_of_many_deleted_rows_are_bounded() -> None:
    rows = 3 * ROWS_AT_ONCE
    live = LiveRows.of(rows, np.arange(1, rows))
    made = list(with_deleted_rows(_batches([0], []), live, may_be_null=True))
    assert sum(batch.num_rows for batch in made) == rows
    assert max(batch.num_rows for batch in made) == ROWS_AT_ONCE


@pytest.mark.parametrize("nullable", [True, False])
def test_filled_rows_of_required_column_are_not_null(nullable: bool) -> None:
    schema = pa.schema([pa.field("t", pa.string(), nullable=nullable)])
    batch = pa.record_batch([pa.array(["x"])], schema=schema)
    live = LiveRows.of(2, np.array([1], np.int64))
    (made,) = with_deleted_rows([batch], live, may_be_null=True)
    assert made.column(0).to_pylist() == ["x", None if nullable else "x"]
