"""Batches and takes of columns that have more than one array can hold."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pennon.errors import ArgumentError
from pennon.scan.read.batches import cut_batches, rebatch
from pennon.scan.run.take import take_batches

HALF = 2**30
"""Two rows of so many bytes or items are one more than 32-bit offsets can count."""


def _text() -> pa.Array[Any]:
    """Return one row of 1 GiB; nothing touches its pages, so they take no memory."""
    offsets = pa.py_buffer(np.array([0, HALF], np.int32))
    return pa.StringArray.from_buffers(1, offsets, pa.py_buffer(np.zeros(HALF, np.uint8)))


def _items() -> pa.Array[Any]:
    return pa.ListArray.from_arrays(pa.array([0, HALF], pa.int32()), pa.nulls(HALF))


@pytest.mark.parametrize("row", [_text(), _items()], ids=["text", "items"])
def test_a_batch_ends_before_its_offsets_overflow(row: pa.Array[Any]) -> None:
    schema = pa.schema([("n", pa.int64()), ("big", row.type)])
    numbers = [pa.array([0, 1]), pa.array([2, 3, 4])]
    columns = [numbers, [row] * 5]
    batches = list(cut_batches(columns, [5], 4, schema))
    assert [batch.num_rows for batch in batches] == [1] * 5
    assert [batch["n"][0].as_py() for batch in batches] == [0, 1, 2, 3, 4]
    with pytest.raises(ArgumentError, match="smaller batch_size"):
        list(rebatch(batches, 4))


def test_batches_across_chunks() -> None:
    """All ways to cut 7 rows into chunks and batches give the rows back."""
    rows = list(range(7))
    for cuts in range(64):
        borders = [0, *(at + 1 for at in range(6) if cuts >> at & 1), 7]
        chunks = [pa.array(rows[low:high]) for low, high in pairwise(borders)]
        for size in range(1, 9):
            schema = pa.schema([("n", pa.int64())])
            got = [b["n"].to_pylist() for b in cut_batches([chunks], [7], size, schema)]
            assert got == [rows[at : at + size] for at in range(0, 7, size)]


def test_take_with_offset_overflow_is_split() -> None:
    def take(numbers: np.ndarray[Any, np.dtype[np.int64]]) -> pa.RecordBatch:
        if len(numbers) > 2:
            message = "offset overflow"
            raise pa.ArrowInvalid(message)
        if 99 in numbers:
            message = "row 99 alone is too large"
            raise pa.ArrowInvalid(message)
        return pa.record_batch({"n": numbers})

    batches = take_batches(take, np.array([3, 1, 3, 0, 2]))
    assert pa.Table.from_batches(batches)["n"].to_pylist() == [3, 1, 3, 0, 2]
    assert [batch.num_rows for batch in take_batches(take, np.empty(0, np.int64))] == [0]
    with pytest.raises(pa.ArrowInvalid, match="row 99"):
        take_batches(take, np.array([1, 2, 99]))
