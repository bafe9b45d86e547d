"""Columns of codes: remembered slices hold no memory of other rows."""

import numpy as np
import pyarrow as pa
import pytest

from pennon.index.vector.code_columns import kept_rows, values_of


def lists(rows: int) -> pa.FixedSizeListArray:
    flat = pa.array(np.arange(4 * rows, dtype=np.float32))
    return pa.FixedSizeListArray.from_arrays(flat, 4)


@pytest.mark.parametrize(("rows", "is_part"), [(100, False), (51, False), (50, True), (10, True)])
def test_remembered_small_slice_of_a_column_is_copied(rows: int, is_part: bool) -> None:
    whole = lists(100)
    for part in (values_of(whole.slice(0, rows)), values_of(whole)[:rows]):
        kept = kept_rows(part)
        assert kept.tolist() == whole[:rows].to_pylist()
        assert np.shares_memory(kept, part) != is_part


@pytest.mark.parametrize(("rows", "is_part"), [(100, False), (50, True)])
def test_remembered_small_slice_of_an_array_is_copied(rows: int, is_part: bool) -> None:
    whole = np.arange(400, dtype=np.float32).reshape(100, 4)
    assert np.shares_memory(kept_rows(whole[:rows]), whole) != is_part


def test_a_column_without_rows_may_have_no_buffer() -> None:
    empty = pa.Array.from_buffers(pa.uint8(), 0, [None, None])
    assert kept_rows(values_of(pa.FixedSizeListArray.from_arrays(empty, 4))).shape == (0, 4)
