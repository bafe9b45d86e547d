"""Indices of vectors that executors make: the same rows in the same partitions, with the same codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

import pennon
from pennon.spark import LanceTable

ROWS, DIM = 2000, 16


def test_an_index_made_by_executors(spark: SparkSession, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(ROWS, DIM)).astype(np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIM)
    uris = [str(tmp_path / name) for name in ("executors.lance", "here.lance")]
    found = []
    for uri in uris:
        data = pa.table({"id": np.arange(ROWS), "vec": column})
        pennon.write_dataset(data, uri, max_rows_per_file=300)
        given: dict[str, Any] = {"metric": "cosine", "num_partitions": 4, "num_sub_vectors": 4}
        if uri == uris[0]:
            table = LanceTable.forPath(spark, uri)
            table.createIndex("vec", "IVF_PQ", **given)
            (line,) = table.indices().collect()
            assert (line.name, line.kind, line.unindexed_rows) == ("vec_idx", "IVF_PQ", 0)
        else:
            pennon.dataset(uri).create_index("vec", "IVF_PQ", **given)
        query = {"column": "vec", "q": vectors[7], "k": 50, "nprobes": 4}
        answer = lance.dataset(uri).to_table(columns=["id", "_distance"], nearest=query)
        found.append(answer.to_pydict())
    assert found[0] == found[1]
    assert found[0]["id"][0] == 7
