"""Graphs of tables with equal, zero, rounded and far vectors: a search that is wide enough finds all rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon

WIDTH = 16
ROWS = 480
KINDS = ("IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ")
METRICS = ("l2", "cosine", "dot")


def normal(seed: int = 1, rows: int = ROWS) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, WIDTH)).astype(np.float32)


def with_zeros() -> np.ndarray:
    vectors = normal()
    vectors[::10] = 0
    return vectors


def half_equal() -> np.ndarray:
    vectors = normal()
    vectors[::2] = vectors[0]
    return vectors


def five_distinct() -> np.ndarray:
    return normal()[np.arange(ROWS) % 5]


def all_equal() -> np.ndarray:
    return np.ones((ROWS, WIDTH), np.float32)


def rounded() -> np.ndarray:
    return np.round(normal()[np.arange(ROWS) % 50])


def with_far_rows() -> np.ndarray:
    vectors = normal()
    vectors[::100] *= 500
    return vectors


def signed_zeros() -> np.ndarray:
    vectors = with_zeros()
    vectors[::20] = -0.0
    return vectors


def squares_below_float32() -> np.ndarray:
    return normal() * np.float32(1e-25)


def in_groups() -> np.ndarray:
    """Groups of rows that are close together, and far from one another."""
    vectors = normal() * np.float32(1e-3)
    vectors += np.repeat(normal(2, 6) * 100, ROWS // 6, axis=0)
    return vectors


TABLES: list[Callable[[], np.ndarray]] = [
    with_zeros,
    half_equal,
    five_distinct,
    all_equal,
    rounded,
    with_far_rows,
    signed_zeros,
    squares_below_float32,
    in_groups,
]


def table_of(vectors: np.ndarray, first: int = 0) -> pa.Table:
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), WIDTH)
    return pa.table({"id": np.arange(first, first + len(vectors)), "vec": column})


def indexed(path: Path, vectors: np.ndarray, kind: Any, metric: Any) -> Any:
    ds = pennon.write_dataset(table_of(vectors), str(path / "t.lance"), max_rows_per_file=120)
    options: dict[str, Any] = {"num_sub_vectors": 4} if kind.endswith("PQ") else {}
    return ds.create_index("vec", kind, metric=metric, num_partitions=1, **options)


def found(ds: Any, query: np.ndarray, rows: int) -> list[int]:
    nearest = {"column": "vec", "q": query, "k": rows, "ef": 2 * rows}
    return sorted(ds.to_table(["id"], nearest=nearest)["id"].to_pylist())


def expected(vectors: np.ndarray, metric: str) -> list[int]:
    """Return the rows that an index has: with cosine these are not zero."""
    return np.flatnonzero(vectors.any(axis=1) | (metric != "cosine")).tolist()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", TABLES)
def test_wide_graph_search_finds_all_rows(
    tmp_path: Path, make: Callable[[], np.ndarray], kind: str, metric: str
) -> None:
    vectors = make()
    ds = indexed(tmp_path, vectors, kind, metric)
    for query in (vectors[7], normal(9, 1)[0]):
        assert found(ds, query, ROWS) == expected(vectors, metric)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [with_zeros, half_equal])
def test_wide_graph_search_finds_all_rows_after_optimize_and_compaction(
    tmp_path: Path, make: Callable[[], np.ndarray], kind: str, metric: str
) -> None:
    vectors = make()
    ds = indexed(tmp_path, vectors[:360], kind, metric)
    ds = pennon.write_dataset(table_of(vectors[360:], 360), ds.uri, mode="append")
    query = normal(9, 1)[0]
    ds.optimize.optimize_indices()
    assert found(ds, query, ROWS) == expected(vectors, metric)
    ds.delete("id % 120 = 3")
    ds.optimize.compact_files(target_rows_per_fragment=1000)
    kept = [row for row in expected(vectors, metric) if row % 120 != 3]
    assert found(ds, query, ROWS) == kept


@pytest.mark.parametrize("kind", KINDS)
def test_wide_graph_search_finds_all_rows_of_replaced_vectors(tmp_path: Path, kind: str) -> None:
    """The new vectors lie outside of the range that SQ was trained on, so that their codes are equal."""
    vectors = normal()
    ds = indexed(tmp_path, vectors, kind, "l2")
    moved = vectors[240:] + 50
    ds.merge_insert("id").when_matched_update_all().execute(table_of(moved, 240))
    with pytest.warns(UserWarning, match="lie outside") if kind.endswith("SQ") else nullcontext():
        ds.optimize.optimize_indices()
    assert found(ds, moved[0], ROWS) == list(range(ROWS))


@pytest.mark.parametrize("kind", ["IVF_HNSW_FLAT", "IVF_HNSW_SQ"])
def test_graph_search_finds_distinct_rows_beside_equal_rows(tmp_path: Path, kind: str) -> None:
    vectors = np.concatenate([five_distinct()[:300], normal(3, 300)])
    ds = indexed(tmp_path, vectors, kind, "l2")
    for row in range(300, 600, 20):
        nearest = {"column": "vec", "q": vectors[row], "k": 1, "ef": 100}
        assert ds.to_table(["id"], nearest=nearest)["id"].to_pylist() == [row]
