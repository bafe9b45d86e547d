"""Graphs that Pennon writes of tables with equal vectors: pylance finds all rows in them, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import pennon

ROWS, WIDTH = 600, 16


def table_of(vectors: np.ndarray, first: int = 0) -> pa.Table:
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), WIDTH)
    return pa.table({"id": np.arange(first, first + len(vectors)), "vec": column})


def found(uri: str, query: np.ndarray) -> list[int]:
    nearest = {"column": "vec", "q": query, "k": ROWS, "ef": 2 * ROWS}
    rows = lance.dataset(uri).to_table(columns=["id", "_distance"], nearest=nearest)
    return sorted(rows["id"].to_pylist())


@pytest.mark.parametrize("kind", ["IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ"])
@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_pylance_reaches_all_rows_of_graphs_of_equal_vectors(
    tmp_path: Path, kind: Any, metric: Any
) -> None:
    normal = np.random.default_rng(3).normal(size=(ROWS, WIDTH)).astype(np.float32)
    zeros, half = normal.copy(), normal.copy()
    zeros[::10] = 0
    half[::2] = half[0]
    options: dict[str, Any] = {"num_sub_vectors": 4} if kind.endswith("PQ") else {}
    for number, vectors in enumerate(
        (zeros, half, np.ones_like(normal), normal[np.arange(ROWS) % 5])
    ):
        uri = str(tmp_path / f"{number}.lance")
        ds = pennon.write_dataset(table_of(vectors[:500]), uri)
        ds.create_index("vec", kind, metric=metric, num_partitions=1, **options)
        ds.insert(table_of(vectors[500:], 500))
        ds.optimize.optimize_indices()
        ds.optimize.compact_files()
        there = np.flatnonzero(vectors.any(axis=1) | (metric != "cosine")).tolist()
        assert found(uri, normal[1]) == there


def test_pylance_finds_rows_of_extreme_length_in_cosine_index(tmp_path: Path) -> None:
    normal = np.random.default_rng(3).normal(size=(ROWS, WIDTH)).astype(np.float32)
    query = np.random.default_rng(4).normal(size=WIDTH).astype(np.float32)
    normal[7], normal[8], normal[9] = query * 1e-25, query * 1e25, -query * 1e-25
    uri = str(tmp_path / "t.lance")
    ds = pennon.write_dataset(table_of(normal), uri)
    ds.create_index("vec", "IVF_FLAT", metric="cosine", num_partitions=1)
    nearest = {"column": "vec", "q": query, "k": ROWS}
    rows = lance.dataset(uri).to_table(columns=["id", "_distance"], nearest=nearest)
    ids, near = rows["id"].to_pylist(), rows["_distance"].to_pylist()
    assert {*ids[:2]} == {7, 8}
    assert ids[-1] == 9
    assert near[:2] == pytest.approx([0, 0], abs=1e-5)
    assert near[-1] == pytest.approx(2, abs=1e-5)


@pytest.mark.parametrize("rows", [31, 3217])
def test_rq_distances_differ_from_those_of_pylance_in_blocks_of_32_rows_only(
    tmp_path: Path, rows: int
) -> None:
    """pylance rounds the tables of a query to bytes for whole blocks of 32 rows."""
    vectors = np.random.default_rng(5).normal(size=(rows, 64)).astype(np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 64)
    uri = str(tmp_path / "t.lance")
    ds = pennon.write_dataset(pa.table({"id": np.arange(rows), "vec": column}), uri)
    ds.create_index("vec", "IVF_RQ", metric="l2", num_partitions=1)
    nearest = {"column": "vec", "q": vectors[0] + 0.1, "k": rows}
    found = []
    for module in (pennon, lance):
        table = module.dataset(uri).to_table(columns=["id", "_distance"], nearest=nearest)
        found.append(np.empty(rows))
        found[-1][table["id"].to_numpy()] = table["_distance"].to_numpy()
    apart = np.abs(found[0] - found[1]) / np.median(found[1])
    last = rows // 32 * 32
    assert apart[last:].max() < 1e-6
    if last:
        assert 1e-4 < apart[:last].max() < 1e-2
