"""Indices of vectors that executors make: the same rows in the same partitions, with the same codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import pennon
from pennon.spark import LanceTable

ROWS, DIM = 2000, 16
GRAPH = {"m": 6, "ef_construction": 40}
KINDS: dict[str, dict[str, Any]] = {
    "IVF_PQ": {"metric": "cosine", "num_partitions": 4, "num_sub_vectors": 4},
    "IVF_FLAT": {"metric": "l2", "num_partitions": 5},
    "IVF_HNSW_SQ": {"metric": "l2", "num_partitions": 7, **GRAPH},
    "IVF_HNSW_FLAT": {"metric": "l2", "num_partitions": 1, **GRAPH},
}


def vectors(rows: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(rows, DIM)).astype(np.float32)


def write(uri: str, rows: int = ROWS, seed: int = 0) -> None:
    """Write rows, or append them, with a vector that is NULL."""
    column = pa.FixedSizeListArray.from_arrays(
        pa.array(vectors(rows, seed).ravel()), DIM, mask=pa.array(np.arange(rows) == 3)
    )
    there = pennon.dataset(uri).count_rows() if Path(uri).exists() else 0
    data = pa.table({"id": np.arange(there, there + rows), "vec": column})
    pennon.write_dataset(data, uri, max_rows_per_file=300, mode="append" if there else "create")


def answer(uri: str, seed: int = 0) -> dict[str, Any]:
    """Return what pylance finds near a vector."""
    query = {"column": "vec", "q": vectors(ROWS, seed)[7], "k": 50, "nprobes": 7}
    table = lance.dataset(uri).to_table(columns=["id", "_distance"], nearest=query)
    found: dict[str, Any] = table.to_pydict()
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_vector_index_built_by_executors_equals_local_build(
    spark: SparkSession, tmp_path: Path, kind: Any
) -> None:
    here, there = str(tmp_path / "here.lance"), str(tmp_path / "executors.lance")
    for uri in (here, there):
        write(uri)
        pennon.dataset(uri).delete("id % 10 = 4")
    pennon.dataset(here).create_index("vec", kind, **KINDS[kind])
    table = LanceTable.forPath(spark, there)
    told: list[tuple[int, int]] = []
    table.createIndex("vec", kind, progress=lambda *each: told.append(each), **KINDS[kind])
    (line,) = table.indices().collect()
    assert (line.name, line.kind, line.unindexed_rows) == ("vec_idx", kind, 0)
    assert answer(there) == answer(here)
    assert answer(there)["id"][0] == 7
    sizes = [
        lance.dataset(uri).stats.index_stats("vec_idx")["indices"][0]["partitions"]
        for uri in (here, there)
    ]
    assert sizes[0] == sizes[1]
    assert sum(each["size"] for each in sizes[0]) == ROWS - ROWS // 10 - 1
    assert pennon.dataset(there).version == 3
    assert told == sorted(told)
    (of,) = {of for _, of in told}
    assert told[-1] == (of, of)
    assert any(0 < done < of for done, _ in told), "the training is told of"


def test_vector_index_covers_appended_rows_after_optimize(
    spark: SparkSession, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t.lance")
    write(uri)
    table = LanceTable.forPath(spark, uri)
    table.createIndex("vec", "IVF_HNSW_SQ", **KINDS["IVF_HNSW_SQ"])
    write(uri, seed=1)
    assert [line.unindexed_rows for line in table.indices().collect()] == [ROWS]
    table.optimizeIndices(numIndicesToMerge=0)
    assert [line.unindexed_rows for line in table.indices().collect()] == [ROWS, ROWS]
    assert (answer(uri)["id"][0], answer(uri, 1)["id"][0]) == (7, ROWS + 7)
    told: list[tuple[int, int]] = []
    table.optimizeIndices(retrain=True, progress=lambda *each: told.append(each))
    assert [line.unindexed_rows for line in table.indices().collect()] == [0]
    assert (answer(uri)["id"][0], answer(uri, 1)["id"][0]) == (7, ROWS + 7)
    assert told[-1][0] == told[-1][1]


def test_too_few_vectors_to_train_on(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    write(uri, rows=100)
    table = LanceTable.forPath(spark, uri)
    with pytest.warns(UserWarning, match="'vec_idx' is not trained"):
        table.createIndex("vec", "IVF_PQ", num_sub_vectors=4)
    assert [line.unindexed_rows for line in table.indices().collect()] == [100]
