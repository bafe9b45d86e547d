"""Tables of vectors, and how near an index comes to the nearest rows of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa

Matrix = npt.NDArray[Any]
DIM = 32


@dataclass(frozen=True, slots=True)
class VectorTable:
    """Vectors around some means; ids are the numbers of rows."""

    vectors: Matrix
    queries: Matrix

    @classmethod
    def of(cls, rows: int, seed: int, dim: int = DIM, kind: str = "float32") -> VectorTable:
        """Make clusters and queries near them."""
        rng = np.random.default_rng(seed)
        if kind == "uint8":
            means: Matrix = rng.integers(0, 256, (40, dim), np.uint8)
            noise = np.packbits(rng.random((rows, dim, 8)) < 0.08, axis=2)[..., 0]
            vectors = means[rng.integers(0, 40, rows)] ^ noise
            return cls(vectors, vectors[rng.integers(0, rows, 100)])
        middles = rng.normal(size=(40, dim)) * 2 + 0.3
        floats = middles[rng.integers(0, 40, rows)] + rng.normal(size=(rows, dim)) * 0.7
        queries = floats[rng.integers(0, rows, 100)] + rng.normal(size=(100, dim)) * 0.2
        return cls(floats.astype(kind), queries.astype(kind))

    def table(self, start: int = 0, end: int | None = None) -> pa.Table:
        """Return some rows."""
        some = self.vectors[start:end]
        kind = pa.from_numpy_dtype(some.dtype)
        column = pa.FixedSizeListArray.from_arrays(pa.array(some.ravel(), kind), some.shape[1])
        return pa.table({"id": np.arange(start, start + len(some)), "vec": column})

    def nearest(self, metric: str, alive: Matrix, k: int = 10) -> list[set[int]]:
        """Return the ids of the nearest rows of each query."""
        distances = distances_of(self.vectors[alive], self.queries, metric)
        return [set(alive[np.argsort(each, kind="stable")[:k]].tolist()) for each in distances]


def distances_of(vectors: Matrix, queries: Matrix, metric: str) -> Matrix:
    """Return the distance of each query to each vector."""
    if metric == "hamming":
        bits = np.unpackbits(vectors, axis=1).astype(np.int64)
        asked = np.unpackbits(queries, axis=1).astype(np.int64)
        return bits.sum(1)[None] + asked.sum(1)[:, None] - 2 * asked @ bits.T
    x, q = vectors.astype(np.float64), queries.astype(np.float64)
    if metric == "l2":
        return (x**2).sum(1)[None] + (q**2).sum(1)[:, None] - 2 * q @ x.T
    if metric == "cosine":
        x = x / np.sqrt((x**2).sum(1))[:, None]
        q = q / np.sqrt((q**2).sum(1))[:, None]
    return 1 - q @ x.T


def found_by(dataset: lance.LanceDataset, table: VectorTable, **how: Any) -> list[set[int]]:
    """Return the ids that a dataset's index finds for each query."""
    is_bits = table.queries.dtype == np.uint8
    kind, queries = (
        (pa.uint8(), table.queries) if is_bits else (pa.float32(), table.queries.astype("f4"))
    )
    rows = [pa.array(query, kind) for query in queries]
    asked = {"column": "vec", "q": rows, "k": 10, "nprobes": 4, **how}
    found = dataset.to_table(columns=["id"], nearest=asked, disable_scoring_autoprojection=True)
    ids: list[set[int]] = [set() for _ in rows]
    for query, row in zip(
        *(found[name].to_pylist() for name in ("query_index", "id")), strict=True
    ):
        ids[query].add(row)
    return ids


def recall(found: list[set[int]], right: list[set[int]]) -> float:
    """Return which share of the right ids was found."""
    pairs = zip(found, right, strict=True)
    return sum(len(one & other) for one, other in pairs) / sum(map(len, right))
