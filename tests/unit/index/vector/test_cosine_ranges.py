"""Cosine of vectors with squares beyond the numbers of their type: near to zero, and very long."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon

WIDTH = 24
SCALES = {
    "float": [1e-25, 1e25, 1e-38, 1e38, 1e-20, 1e18],
    "double": [1e-25, 1e25, 1e-160, 1e160, 1e-300, 1e300],
    "halffloat": [1e-4, 1e4],
    "bfloat16": [1e-25, 1e25],
}
LARGEST_VALUE = 0.9


def unit_numbers(rows: int, seed: int = 0) -> np.ndarray:
    """Return random numbers that are 0.9 at most."""
    found = np.random.default_rng(seed).normal(size=(rows, WIDTH))
    return found / np.abs(found).max(axis=1, keepdims=True) * LARGEST_VALUE


def type_of(name: str) -> pa.DataType:
    if name == "bfloat16":
        metadata = {"ARROW:extension:name": "lance.bfloat16", "ARROW:extension:metadata": ""}
        return pa.list_(pa.field("item", pa.binary(2), metadata=metadata), WIDTH)
    return pa.list_(
        {"float": pa.float32(), "double": pa.float64(), "halffloat": pa.float16()}[name], WIDTH
    )


def column_of(vectors: np.ndarray, name: str) -> pa.Array:
    if name == "bfloat16":
        upper = (vectors.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        flat = pa.Array.from_buffers(pa.binary(2), upper.size, [None, pa.py_buffer(upper)])
    else:
        flat = pa.array(vectors.ravel()).cast(type_of(name).value_type)
    return pa.FixedSizeListArray.from_arrays(flat, type=type_of(name))


def table_of(path: Path, name: str, query: np.ndarray, many: int = 50) -> Any:
    """Write random rows, and behind them for each scale one that is parallel to the query, and one against it."""
    ends = [query * scale * sign for scale in SCALES[name] for sign in (1, -1)]
    vectors = np.concatenate([unit_numbers(many), ends, np.zeros((1, WIDTH))])
    table = pa.table({"id": np.arange(len(vectors)), "v": column_of(vectors, name)})
    return pennon.write_dataset(table, str(path / "t.lance"), max_rows_per_file=40)


def check(found: dict[int, float], name: str, many: int = 50) -> None:
    close = {"bfloat16": 1e-2, "halffloat": 2e-2}.get(name, 1e-5)
    for at in range(len(SCALES[name])):
        assert found[many + 2 * at] == pytest.approx(0, abs=close)
        assert found[many + 2 * at + 1] == pytest.approx(2, abs=close)


@pytest.mark.parametrize("scale", [1, None])
@pytest.mark.parametrize("name", SCALES)
def test_exact_cosine_search_of_very_short_and_long_vectors(
    tmp_path: Path, name: str, scale: float | None
) -> None:
    query = unit_numbers(1, 5)[0]
    ds = table_of(tmp_path, name, query)
    for each in [scale] if scale else SCALES[name]:
        nearest = {
            "column": "v",
            "q": query * each,
            "k": 200,
            "metric": "cosine",
            "use_index": False,
        }
        rows = ds.to_table(["id", "_distance"], nearest=nearest)
        found = dict(zip(rows["id"].to_pylist(), rows["_distance"].to_pylist(), strict=True))
        check(found, name)
        others = np.array([found[row] for row in range(50)])
        kept = unit_numbers(50)
        right = 1 - kept @ query / np.linalg.norm(kept, axis=1) / np.linalg.norm(query)
        assert np.abs(others - right).max() < {"bfloat16": 2e-2, "halffloat": 2e-2}.get(name, 1e-5)


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_RQ", "IVF_HNSW_FLAT"])
@pytest.mark.parametrize("name", ["float", "double"])
def test_cosine_index_has_very_short_and_long_vectors(tmp_path: Path, kind: str, name: str) -> None:
    query = unit_numbers(1, 5)[0]
    ds = table_of(tmp_path, name, query, many=400)
    options: dict[str, Any] = {"num_sub_vectors": 4} if kind.endswith("PQ") else {}
    ds.create_index("v", kind, metric="cosine", num_partitions=1, **options)
    assert ds.stats.index_stats("v_idx")["num_indexed_rows"] == ds.count_rows()
    for scale in (1, *SCALES[name]):
        nearest = {"column": "v", "q": query * scale, "k": 1000, "ef": 2000}
        rows = ds.to_table(["id", "_distance"], nearest=nearest)
        found = dict(zip(rows["id"].to_pylist(), rows["_distance"].to_pylist(), strict=True))
        assert sorted(found) == list(range(ds.count_rows() - 1))  # all but the zeros
        if kind.endswith("FLAT"):
            check(found, name, many=400)
        order = sorted(found, key=found.__getitem__)
        parallel = {400 + 2 * at for at in range(len(SCALES[name]))}
        assert parallel == {*order[: len(parallel)]}
