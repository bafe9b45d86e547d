"""Indices with graphs: made by several threads, and walked by several queries at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon

ROWS, WIDTH, QUERIES, NEAR = 5000, 24, 40, 5


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("kind", ["IVF_HNSW_FLAT", "IVF_HNSW_SQ"])
def test_graph_queries_in_a_batch_equal_single_queries(
    tmp_path: Path, kind: Any, metric: Any
) -> None:
    rng = np.random.default_rng(7)
    vectors = rng.normal(size=(ROWS, WIDTH)).astype(np.float32)
    queries = rng.normal(size=(QUERIES, WIDTH)).astype(np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), WIDTH)
    table = pa.table({"id": np.arange(ROWS), "vec": column})
    ds = pennon.write_dataset(table, str(tmp_path / "t.lance"))
    ds.create_index("vec", kind, metric=metric, num_partitions=1)

    def found(q: np.ndarray, **how: object) -> list[int]:
        nearest = {"column": "vec", "q": q, "k": NEAR, "ef": 100, **how}
        ids: list[int] = ds.to_table(["id"], nearest=nearest)["id"].to_pylist()
        return ids

    together = found(queries)
    assert together == [row for query in queries for row in found(query)]
    right = found(queries, use_index=False, metric=metric)
    hits = [
        len({*together[at : at + NEAR]} & {*right[at : at + NEAR]})
        for at in range(0, len(right), NEAR)
    ]
    assert sum(hits) >= 0.9 * len(right)
