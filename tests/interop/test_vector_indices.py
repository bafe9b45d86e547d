"""Indices that pylance 14.0.2 builds: Pennon and pylance find the same rows in their files.

Kinds, metrics, types and dimensions in turn; partitions of no rows, deltas, deleted rows, filters.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from pennon.index.vector.base import Probes
from tests.interop.vector_planner import Searched, same_answers

Array = npt.NDArray[Any]
ROWS, PARTITIONS = 900, 6
TYPES = {"float16": pa.float16(), "float32": pa.float32(), "float64": pa.float64()}
CASES = [
    (kind, metric, item, dimension)
    for kind in ("IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_HNSW_FLAT", "IVF_HNSW_PQ", "IVF_HNSW_SQ")
    for metric in ("l2", "cosine", "dot")
    for item, dimension in (("float32", 16), ("float16", 8), ("float64", 24), ("float32", 100))
]
SOME = [
    each
    for each in CASES
    if each[2:] == ("float32", 16) or (each[0] in {"IVF_FLAT", "IVF_PQ"} and each[3] < 100)
]
PARAMETERS = {
    "IVF_PQ": {"num_sub_vectors": 4, "sample_rate": 40},
    "IVF_HNSW_PQ": {"num_sub_vectors": 4, "sample_rate": 40},
}


def vectors(seed: int, count: int, dimension: int) -> npt.NDArray[np.float32]:
    """Return vectors around some centres."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(12, dimension)) * 2
    found = centres[rng.integers(0, 12, count)] + rng.normal(size=(count, dimension))
    return found.astype(np.float32)


def table_of(values: Array, item: pa.DataType, first: int = 0) -> pa.Table:
    width = values.shape[1]
    numpy_type = np.uint8 if item == pa.uint8() else item.to_pandas_dtype()
    items = pa.array(np.ascontiguousarray(values.reshape(-1), numpy_type))
    lists = pa.FixedSizeListArray.from_arrays(items, width)
    return pa.table({"id": pa.array(np.arange(first, first + len(values))), "vec": lists})


def build(
    folder: Path, values: Array, item: pa.DataType, kind: str, **more: Any
) -> lance.LanceDataset:
    table = lance.write_dataset(table_of(values, item), folder / "t.lance", max_rows_per_file=500)
    arguments = {"num_partitions": PARTITIONS, **PARAMETERS.get(kind, {}), **more}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table.create_index("vec", kind, **arguments)
    return lance.dataset(table.uri)


def theirs(
    table: lance.LanceDataset, query: Array, k: int, nprobes: int, **more: Any
) -> tuple[list[int], list[float]]:
    nearest = {"column": "vec", "q": query, "k": k, "nprobes": nprobes, "ef": 200}
    found = table.to_table(columns=["id"], nearest=nearest, **more)
    return found["id"].to_pylist(), found["_distance"].to_pylist()


def compare(table: lance.LanceDataset, queries: Array, *, rtol: float = 1e-5) -> None:
    mine = Searched(table.uri)
    for number, query in enumerate(queries):
        for k, nprobes in ((10, 1), (10, 3), (25, PARTITIONS)):
            expected = theirs(table, query, k, nprobes)
            found = mine.search(query, k, nprobes, 200)
            assert same_answers(found, expected, rtol), (number, k, nprobes, found, expected)


def check(folder: Path, kind: str, metric: str, item: str, dimension: int) -> None:
    values = vectors(dimension, ROWS, dimension)
    more = {"num_sub_vectors": dimension // 4} if kind.endswith("PQ") else {}
    table = build(folder, values, TYPES[item], kind, metric=metric, **more)
    queries = vectors(dimension, 5, dimension) + np.float32(0.1)
    # pylance normalizes halves as halves, in steps of which it is not known how they are rounded
    is_rounded = item == "float16" and metric == "cosine"
    compare(table, queries, rtol=3e-3 if is_rounded else 1e-5)


@pytest.mark.parametrize(("kind", "metric", "item", "dimension"), SOME)
def test_vector_index_finds_the_rows_of_pylance(
    tmp_path: Path, kind: str, metric: str, item: str, dimension: int
) -> None:
    check(tmp_path, kind, metric, item, dimension)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "metric", "item", "dimension"), sorted(set(CASES) - set(SOME)))
def test_vector_index_finds_the_rows_of_pylance_all_kinds(
    tmp_path: Path, kind: str, metric: str, item: str, dimension: int
) -> None:
    check(tmp_path, kind, metric, item, dimension)


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_HNSW_FLAT"])
def test_hamming_search_of_uint8_vectors_equals_pylance(tmp_path: Path, kind: str) -> None:
    values = np.random.default_rng(3).integers(0, 256, (ROWS, 16), np.uint8)
    table = build(tmp_path, values, pa.uint8(), kind, metric="hamming")
    mine = Searched(table.uri)
    for query in values[::200] ^ np.uint8(5):
        for nprobes in (1, PARTITIONS):
            nearest = {"column": "vec", "q": query, "k": 10, "nprobes": nprobes, "ef": 200}
            expected = table.to_table(columns=["id"], nearest=nearest)["_distance"].to_pylist()
            assert mine.search(query, 10, nprobes, 200)[1] == expected


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_pq_search_of_4_bit_codes_equals_pylance(tmp_path: Path, metric: str) -> None:
    values = vectors(4, ROWS, 16)
    more = {"num_bits": 4, "num_sub_vectors": 8, "sample_rate": 40}
    compare(build(tmp_path, values, pa.float32(), "IVF_PQ", metric=metric, **more), values[:5])


@pytest.mark.parametrize("bits", [4, 8])
def test_pq_search_of_the_legacy_layout_equals_pylance(tmp_path: Path, bits: int) -> None:
    """Pylance cannot search codes of 4 bits that it writes so: it searches the same in the newer layout."""
    values = vectors(5, ROWS, 16)
    rng = np.random.default_rng(9)
    more = {
        "metric": "l2",
        "num_bits": bits,
        "num_sub_vectors": 4,
        "ivf_centroids": values[:PARTITIONS].copy(),
        "pq_codebook": rng.normal(size=(4, 1 << bits, 4)).astype(np.float32),
    }
    new = build(tmp_path / "new", values, pa.float32(), "IVF_PQ", **more)
    old = build(
        tmp_path / "old", values, pa.float32(), "IVF_PQ", index_file_version="Legacy", **more
    )
    mine = Searched(old.uri)
    for query in values[:5]:
        for nprobes in (1, PARTITIONS):
            expected = theirs(new, query, 10, nprobes)
            assert same_answers(mine.search(query, 10, nprobes), expected, 1e-5)


@pytest.mark.parametrize("bits", [1, 2, 3, 4, 5, 6, 7, 8, 9])
@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_rq_estimates_are_near_those_of_pylance(tmp_path: Path, metric: str, bits: int) -> None:
    """Distances are those of pylance as far as it does not round its tables: for the last rows of a partition."""
    dimension = 72 if bits % 2 else 64
    values = vectors(6, 31 * 3, dimension)
    centroids = np.stack([values[0], values[40], values[80]])
    table = build(
        tmp_path,
        values,
        pa.float32(),
        "IVF_RQ",
        metric=metric,
        num_bits=bits,
        num_partitions=3,
        ivf_centroids=centroids,
    )
    mine = Searched(table.uri)
    exact = 0
    for query in vectors(7, 4, dimension):
        nearest = {"column": "vec", "q": query, "k": 93, "nprobes": 3, "approx_mode": "accurate"}
        found = table.to_table(columns=["id"], nearest=nearest).to_pydict()
        expected = dict(zip(found["id"], found["_distance"], strict=True))
        ids, near = mine.search(query, 93, 3)
        assert set(ids) == set(expected)
        spread = max(np.ptp(near), 1.0)
        apart = [abs(expected[number] - each) for number, each in zip(ids, near, strict=True)]
        assert max(apart) < 1e-2 * spread
        exact += sum(each < 1e-5 * spread for each in apart)
    assert exact > 4 * 93 / 2 if _is_small(mine) else exact > 0


def _is_small(searched: Searched) -> bool:
    """Return whether no partition has a block of 32 rows."""
    (index,) = searched.segments
    none = np.zeros((1, index.dimension), np.float32) + np.float32(1)
    return len(index.search(none, 93, Probes(1, 1), None).rows) < 32


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_HNSW_SQ"])
def test_vector_search_with_empty_partitions_equals_pylance(tmp_path: Path, kind: str) -> None:
    values = vectors(8, ROWS, 16)
    centroids = np.stack([values[0], np.full(16, 1e4, np.float32), values[1], -values[1] * 1000])
    table = build(
        tmp_path, values, pa.float32(), kind, num_partitions=4, ivf_centroids=centroids, metric="l2"
    )
    compare(table, np.concatenate([values[:3], centroids[1:2]]))


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_HNSW_SQ"])
def test_vector_search_with_deltas_and_deleted_rows_equals_pylance(
    tmp_path: Path, kind: str
) -> None:
    values = vectors(10, ROWS, 16)
    table = build(tmp_path, values, pa.float32(), kind, metric="l2")
    more = vectors(11, 400, 16)
    lance.write_dataset(table_of(more, pa.float32(), ROWS), table.uri, mode="append")
    table = lance.dataset(table.uri)
    table.optimize.optimize_indices(num_indices_to_merge=0)
    table.delete("id % 7 = 3")
    table = lance.dataset(table.uri)
    assert len(Searched(table.uri).segments) == 2
    compare(table, np.concatenate([values[3:6], more[3:6]]))


def test_vector_search_with_filter_equals_pylance(tmp_path: Path) -> None:
    """A filter that most rows pass, some, and few: of an HNSW graph, too, which is walked or not."""
    values = vectors(12, ROWS, 16)
    for kind in ("IVF_PQ", "IVF_HNSW_SQ"):
        table = build(tmp_path / kind, values, pa.float32(), kind, metric="l2")
        mine = Searched(table.uri)
        (index,) = mine.segments
        for step in (2, 5, 40):
            passing = np.array([row for row, at in mine.ids.items() if at % step == 1], np.uint64)
            for query in values[:4]:
                found = index.search(
                    query[None],
                    10,
                    Probes(PARTITIONS, PARTITIONS, 200),
                    lambda rows, passing=passing: np.isin(rows, passing),  # type: ignore[misc]
                )
                answer = [mine.ids[int(row)] for row in found.rows], found.distances.tolist()
                expected = theirs(
                    table, query, 10, PARTITIONS, filter=f"id % {step} = 1", prefilter=True
                )
                assert same_answers(answer, expected, 1e-5)


def test_vector_search_widens_partitions_until_k_rows_are_found(tmp_path: Path) -> None:
    values = vectors(13, ROWS, 16)
    table = build(tmp_path, values, pa.float32(), "IVF_FLAT", metric="l2")
    mine = Searched(table.uri)
    (index,) = mine.segments
    for most, expected in ((None, ROWS), (PARTITIONS, ROWS), (1, 0), (2, 0)):
        found = index.search(values[:3], ROWS, Probes(1, most), None)
        counts = np.bincount(found.queries, minlength=3)
        assert (counts == ROWS).all() if expected else (counts < ROWS).all()
    few = index.search(values[:3], 5, Probes(1, None), lambda rows: rows % 97 == 0)
    assert np.bincount(few.queries).tolist() == [5, 5, 5]
    assert not (few.rows % 97).any()


def test_merged_segments_of_sq(tmp_path: Path) -> None:
    """Segments with other bounds are one, whose bounds are those of the first: Pennon finds what the file says."""
    values = vectors(15, ROWS, 16)
    values[500:] *= 10  # the second fragment
    table = lance.write_dataset(
        table_of(values, pa.float32()), tmp_path / "t.lance", max_rows_per_file=500
    )
    arguments: dict[str, Any] = {
        "metric": "l2",
        "num_partitions": 2,
        "ivf_centroids": values[[0, 600]].copy(),
    }
    segments = [
        table.create_index_uncommitted(
            "vec", "IVF_SQ", name="vec_idx", fragment_ids=[number], **arguments
        )
        for number in (0, 1)
    ]
    merged = table.merge_existing_index_segments(segments)
    table = table.commit_existing_index_segments("vec_idx", "vec", [merged])
    mine = Searched(table.uri)
    for query in values[::200]:
        assert same_answers(mine.search(query, 10, 2), theirs(table, query, 10, 2), 1e-5)
    _, (nearest, *_) = mine.search(values[600], 1, 2)
    assert nearest > 10  # it is in the table


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_vector_search_with_zero_nan_and_infinite_queries(tmp_path: Path, metric: str) -> None:
    values = vectors(14, ROWS, 16)
    table = build(tmp_path, values, pa.float32(), "IVF_PQ", metric=metric)
    (index,) = Searched(table.uri).segments
    queries = np.zeros((4, 16), np.float32)
    queries[1, 3], queries[2, 4], queries[3] = np.nan, np.inf, values[0]
    found = index.search(queries, 5, Probes(2, 2), None)
    counts = np.bincount(found.queries, minlength=4).tolist()
    assert counts == [0 if metric == "cosine" else 5, 0, 0, 5]
    with pytest.raises(ValueError, match="queries of the shape"):
        index.search(queries[:, :15], 5, Probes(2, 2), None)
