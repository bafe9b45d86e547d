"""The sample of vectors that an index is trained on is drawn from all rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import pennon

ROWS, DIM = 4000, 4


@pytest.mark.parametrize("nulls", [0.0, 0.7], ids=["rows at random", "all rows, most of them NULL"])
def test_vector_sample_is_drawn_from_all_rows(tmp_path: Path, nulls: float) -> None:
    rng = np.random.default_rng(0)
    near = (
        np.arange(ROWS) // (ROWS // 4) * 100.0
    )  # a quarter of the rows around each of 0, 100, 200, 300
    vectors = (near[:, None] + rng.normal(size=(ROWS, DIM))).astype(np.float32)
    column = pa.FixedSizeListArray.from_arrays(
        pa.array(vectors.ravel()), DIM, mask=pa.array(rng.random(ROWS) < nulls)
    )
    uri = str(tmp_path / "t.lance")
    dataset = pennon.write_dataset(pa.table({"vec": column}), uri, max_rows_per_file=1500)
    dataset.create_index("vec", "IVF_FLAT", num_partitions=16, sample_rate=50)
    (index,) = dataset.index_statistics("vec_idx")["indices"]
    assert {round(np.mean(each) / 100) for each in index["centroids"]} == {0, 1, 2, 3}
    usable = ROWS - column.null_count
    assert sum(part["size"] for part in index["partitions"]) == usable


def test_vector_sample_of_lists_with_more_vectors_than_needed(tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).normal(size=(3000 * 5, DIM)).astype(np.float32)
    flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIM)
    column = pa.ListArray.from_arrays(pa.array(range(0, len(vectors) + 1, 5), pa.int32()), flat)
    dataset = pennon.write_dataset(pa.table({"vec": column}), str(tmp_path / "t.lance"))
    dataset.create_index("vec", "IVF_FLAT", metric="cosine", num_partitions=4, sample_rate=50)
    (index,) = dataset.index_statistics("vec_idx")["indices"]
    assert sum(part["size"] for part in index["partitions"]) == len(vectors)
