"""IVF_SQ and rows that lie outside of the range that it was trained on."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon

WIDTH = 8


def rows(count: int, by: float = 0.0, seed: int = 0) -> pa.Table:
    values = np.random.default_rng(seed).uniform(-1, 1, (count, WIDTH)).astype(np.float32)
    values += np.float32(by)
    return pa.table({"vec": pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), WIDTH)})


def indexed(path: Path, kind: Any, metric: Any = "l2") -> Any:
    ds = pennon.write_dataset(rows(500), str(path / "t.lance"))
    return ds.create_index("vec", kind, metric=metric, num_partitions=1)


@pytest.mark.parametrize("kind", ["IVF_SQ", "IVF_HNSW_SQ"])
@pytest.mark.parametrize("segments", [0, 1])
def test_optimize_warns_of_rows_outside_the_range_of_sq(
    tmp_path: Path, kind: str, segments: int
) -> None:
    ds = indexed(tmp_path, kind)
    ds.insert(rows(100, by=1, seed=1))
    with pytest.warns(
        UserWarning, match=rf"of the numbers in new rows of index 'vec_idx' .* {kind}"
    ):
        ds.optimize.optimize_indices(num_indices_to_merge=segments)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ds.optimize.optimize_indices(retrain=True)
        ds.insert(rows(100, by=1, seed=2))
        ds.optimize.optimize_indices()


@pytest.mark.parametrize(
    ("kind", "metric", "by"), [("IVF_SQ", "l2", 0), ("IVF_SQ", "cosine", 0), ("IVF_FLAT", "l2", 1)]
)
def test_optimize_warns_of_no_other_rows(tmp_path: Path, kind: str, metric: str, by: float) -> None:
    ds = indexed(tmp_path, kind, metric)
    ds.insert(rows(100, by=by, seed=1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ds.optimize.optimize_indices()
