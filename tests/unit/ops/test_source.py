"""User input as a stream of record batches: pyarrow datasets of wide and of narrow rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

import pennon
from pennon.ops.source import BATCH_BYTES, as_reader


def _vectors(rows: int) -> pa.Table:
    values = pa.array(np.arange(rows * 1024, dtype=np.float32))
    return pa.table({"v": pa.FixedSizeListArray.from_arrays(values, 1024)})


def _texts(rows: int) -> pa.Table:
    """Rows whose width no schema tells."""
    return pa.table({"t": [f"{n:05}" * 800 for n in range(rows)]})


@pytest.mark.parametrize("make", [_vectors, _texts])
def test_dataset_of_wide_rows_is_read_in_small_batches(tmp_path: Path, make: Any) -> None:
    """No batch is larger than the limit, so few rows wait in memory."""
    rows = make(24_000)
    for number in range(4):
        part = rows.slice(number * 6000, 6000)
        pq.write_table(
            part, tmp_path / f"{number}.parquet", row_group_size=6000, use_dictionary=False
        )
    dataset = pads.dataset(tmp_path)
    sizes = [batch.nbytes for batch in as_reader(dataset)]
    assert sum(sizes) >= rows.nbytes
    assert max(sizes) <= BATCH_BYTES * 1.1
    uri = str(tmp_path / "t")
    assert pennon.write_dataset(dataset, uri).to_table().equals(rows)


def test_dataset_of_narrow_rows_is_read_in_large_batches() -> None:
    rows = pa.table({"n": range(300_000)})
    sizes = [batch.num_rows for batch in as_reader(pads.dataset(rows))]
    assert max(sizes) == 131_072


def test_union_and_empty_datasets_are_written(tmp_path: Path) -> None:
    """Datasets of several kinds, and of no rows."""
    rows = _vectors(10)
    pq.write_table(rows, tmp_path / "x.parquet")
    union = pads.dataset([pads.dataset(rows), pads.dataset(tmp_path / "x.parquet")])
    made = pennon.write_dataset(union, str(tmp_path / "u"))
    assert made.to_table().equals(pa.concat_tables([rows, rows]).combine_chunks())
    pq.write_table(rows[:0], tmp_path / "e.parquet")
    empty = pads.dataset(tmp_path / "e.parquet")
    assert pennon.write_dataset(empty, str(tmp_path / "e")).count_rows() == 0
