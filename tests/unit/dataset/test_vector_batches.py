"""Many queries at once equal single queries, with any number of threads."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon

ROWS, DIM, QUERIES = 1500, 16, 70
KINDS: dict[str, dict[str, Any]] = {
    "IVF_FLAT": {},
    "IVF_PQ": {"num_sub_vectors": 4},
    "IVF_SQ": {},
    "IVF_RQ": {},
    "IVF_HNSW_FLAT": {},
    "IVF_HNSW_PQ": {"num_sub_vectors": 4},
    "IVF_HNSW_SQ": {},
}


@pytest.mark.parametrize("kind", KINDS)
def test_vector_batch_results_equal_single_queries(kind: Any, tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    means = random.normal(size=(9, DIM)) * 3
    vectors = means[random.integers(0, 9, ROWS)] + random.normal(size=(ROWS, DIM))
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1), pa.float32()), DIM)
    rows = pa.table({"id": range(ROWS), "share": np.arange(ROWS) % 100, "vec": column})
    ds = pennon.write_dataset(rows, tmp_path / "t")
    ds = ds.create_index("vec", kind, num_partitions=12, **KINDS[kind])
    queries = (means[random.integers(0, 9, QUERIES)] + random.normal(size=(QUERIES, DIM))).astype(
        np.float32
    )

    def near(asked: Any, options: dict[str, Any], probes: dict[str, int]) -> pa.Table:
        nearest = {"column": "vec", "q": asked, "k": 7, **probes}
        return ds.to_table(["id"], nearest=nearest, **options)

    some, until_enough = {"nprobes": 5}, {"search_effort": 0}
    shares = [40, 2]  # 2: 30 rows, too few of which are in the partition that is asked first
    filters = [{"filter": f"share < {share}", "prefilter": True} for share in shares]
    for options, probes in itertools.product(({}, *filters), (some, until_enough)):
        batch = near(queries, options, probes)
        numbers = batch["query_index"].to_numpy()
        for at, query in enumerate(queries):
            mine = batch.filter(pa.array(numbers == at)).drop_columns("query_index")
            assert mine == near(query, options, probes), (at, options, probes)
        if probes is until_enough:
            assert len(batch) == 7 * len(queries)


def test_vector_query_over_many_rows_equals_exact_search(tmp_path: Path) -> None:
    """Rows at one distance stay by row id."""
    random = np.random.default_rng(4)
    vectors = random.integers(-2, 3, (7000, 256)).astype(np.float32)
    vectors[4000:] = vectors[:3000]
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), 256)
    ds = pennon.write_dataset(pa.table({"id": range(7000), "vec": column}), tmp_path / "t")
    ds = ds.create_index("vec", "IVF_FLAT", num_partitions=9)
    for query in vectors[[5, 1999, 3500]]:
        for k in (1, 12, 5000):
            nearest = {"column": "vec", "q": query, "k": k, "nprobes": 9}
            found = ds.to_table(["id"], nearest=nearest)
            assert found == ds.to_table(["id"], nearest={**nearest, "use_index": False})


def test_queries_near_partitions_of_no_rows(tmp_path: Path) -> None:
    vectors = np.random.default_rng(5).normal(size=(300, 8)).astype(np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), 8)
    ds = pennon.write_dataset(pa.table({"id": range(300), "vec": column}), tmp_path / "t")
    far = np.full((3, 8), 1e4, np.float32) * np.array([[1], [2], [-1]], np.float32)
    centroids = np.concatenate([vectors[:2], far])
    ds = ds.create_index("vec", "IVF_FLAT", num_partitions=5, ivf_centroids=centroids)
    queries = np.concatenate([far] * 10)
    for asked in (queries, queries[0]):
        nearest = {"column": "vec", "q": asked, "k": 3, "minimum_nprobes": 1, "maximum_nprobes": 5}
        found = ds.to_table(["id"], nearest=nearest)
        assert found == ds.to_table(["id"], nearest={**nearest, "use_index": False})
