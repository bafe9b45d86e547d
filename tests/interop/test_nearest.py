"""Exact search for near vectors: Pennon finds the rows that pylance finds, at the same distances."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import pennon

FLOATS = {"float16": pa.float16(), "float32": pa.float32(), "float64": pa.float64()}
FILTERS = (None, "id % 3 = 0", "id < 20", "id > 100000", "tag = 'b' OR tag IS NULL")


def vectors(rng: np.random.Generator, rows: int, size: int, kind: str) -> pa.Array:
    """Return vectors: few distinct values among them, NULLs, NaN, infinities, zeros."""
    if kind == "uint8":
        numbers = rng.integers(0, 256, (rows, size)).astype(np.uint8)
        element = pa.uint8()
    else:
        scale = rng.choice([0.01, 1.0, 50.0])
        numbers = (rng.normal(size=(rows, size)) * scale).astype(np.float16).astype(kind)
        element = FLOATS[kind]
        numbers[rng.random(rows) < 0.05] = 0
        numbers[rng.random((rows, size)) < 0.3 / size] = np.nan
        numbers[rng.random((rows, size)) < 0.1 / size] = np.inf
    again = rng.random(rows) < 0.2
    numbers[again] = numbers[rng.integers(0, rows, int(again.sum()))]
    items = pa.array(numbers.reshape(-1), element)
    mask = pa.array(rng.random(rows) < 0.1)
    return pa.FixedSizeListArray.from_arrays(items, size, mask=mask)


def equal_but_for_ties(mine: pa.Table, theirs: pa.Table, tolerance: float, case: Any) -> None:
    """Hold that two answers have the same rows at the same distances; near ties may change places."""
    assert mine.schema.names == theirs.schema.names, case
    assert mine.num_rows == theirs.num_rows, case
    found, expected = (
        np.array(each["_distance"].to_pylist(), np.float64) for each in (mine, theirs)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=tolerance, err_msg=str(case))
    of = [
        each["query_index"].to_pylist() if "query_index" in each.schema.names else [0] * len(found)
        for each in (mine, theirs)
    ]
    assert of[0] == of[1], case
    ids, others = (each["id"].to_pylist() for each in (mine, theirs))
    known = dict(zip(zip(of[1], others, strict=True), expected, strict=True))
    for at, (query, row, other) in enumerate(zip(of[0], ids, others, strict=True)):
        if row != other:  # a row as far as the one in its place
            distance = known.get((query, row), expected[at])
            assert np.isclose(distance, found[at], rtol=1e-5, atol=tolerance), (
                case,
                at,
                row,
                other,
            )


@pytest.mark.parametrize("seed", range(12))
def test_nearest_on_random_tables_equals_pylance(tmp_path: Path, seed: int) -> None:
    rng, pick = np.random.default_rng(seed), random.Random(seed)
    kind = pick.choice([*FLOATS, "float32", "uint8"])
    rows, size = pick.choice([30, 200, 700]), pick.choice([1, 3, 8, 24, 67])
    table = pa.table(
        {
            "id": range(rows),
            "tag": pa.array([pick.choice(["a", "b", None]) for _ in range(rows)]),
            "vec": vectors(rng, rows, size, kind),
        }
    )
    uri = str(tmp_path / "t.lance")
    stable = pick.random() < 0.4
    theirs = lance.write_dataset(
        table,
        uri,
        max_rows_per_file=pick.choice([rows, 57]),
        data_storage_version=pick.choice(["2.0", "2.1", "2.2"]),
        enable_stable_row_ids=stable,
    )
    if pick.random() < 0.7:
        theirs.delete(f"id % 7 = {pick.randrange(7)} OR (id > 50 AND id < 60)")
    if pick.random() < 0.3:
        theirs.optimize.compact_files()
    theirs, mine = lance.dataset(uri), pennon.dataset(uri)
    metrics = ["hamming", None] if kind == "uint8" else ["l2", "cosine", "dot", None]
    for _ in range(40):
        asked = [pick.randrange(rows) for _ in range(3)]
        stored = table["vec"].take(asked).combine_chunks().flatten()
        plain = np.nan_to_num(stored.to_numpy(), posinf=1).astype(np.float32)
        queries = np.minimum(np.resize(plain, (3, size)) + (pick.random() < 0.5), 255)
        query = queries if pick.random() < 0.3 else queries[0]
        metric = pick.choice(metrics)
        nearest: dict[str, Any] = {"column": "vec", "q": query, "metric": metric}
        if pick.random() < 0.8:
            nearest["k"] = pick.choice([1, 2, 7, 40, 5000])
        if pick.random() < 0.2:
            nearest["distance_range"] = pick.choice([(None, 9.5), (2.5, None), (0.3, 20.1)])
        options: dict[str, Any] = {
            "filter": pick.choice(FILTERS),
            "prefilter": pick.random() < 0.5,
            "columns": pick.choice([["id"], ["id", "tag", "_distance"], ["_distance", "id"]]),
            "with_row_id": pick.random() < 0.3,
            "with_row_address": pick.random() < 0.3,
        }
        if pick.random() < 0.3:
            options |= {
                "limit": pick.choice([3, 20, 0 if "k" in nearest else 1]),
                "offset": pick.choice([None, 1, 5]),
            }
        case = seed, kind, rows, size, nearest, options
        found = mine.scanner(nearest=nearest, **options)
        expected = theirs.scanner(nearest=nearest, **options)
        scale = float(np.abs(queries).max(initial=1.0)) ** 2 * size
        tolerance = (4e-3 if kind == "float16" else 1e-6) * (1 if metric == "cosine" else scale)
        equal_but_for_ties(found.to_table(), expected.to_table(), tolerance, case)
        assert found.projected_schema.equals(expected.projected_schema), case


@pytest.fixture
def rows() -> pa.Table:
    numbers = np.random.default_rng(3).normal(size=(60, 4)).astype(np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(numbers.reshape(-1)), 4)
    lists = [numbers[[n, (n * 7) % 60, (n * 11) % 60][: n % 4]].tolist() for n in range(60)]
    lists[9] = None
    lists[10] = [[float("nan")] * 4, numbers[10].tolist()]
    lists[11] = [[float("nan")] * 4]
    return pa.table(
        {
            "id": range(60),
            "n": [(row * 37) % 60 for row in range(60)],
            "vec": vectors,
            "s": pa.StructArray.from_arrays([vectors], ["v"]),
            "many": pa.array(lists, pa.list_(pa.list_(pa.float32(), 4))),
        }
    )


def both(folder: Path, table: pa.Table) -> tuple[pennon.LanceDataset, lance.LanceDataset]:
    uri = str(folder / "t.lance")
    lance.write_dataset(table, uri, max_rows_per_file=25)
    return pennon.dataset(uri), lance.dataset(uri)


@pytest.mark.parametrize("metric", [None, "l2", "cosine", "dot"])
@pytest.mark.parametrize("q", [[0.1, 0.2, 0.3, 0.4], [[0.1, 0.2, 0.3, 0.4], [1, 1, -1, 1]]])
@pytest.mark.parametrize("column", ["many", "s.v"])
def test_lists_of_vectors_and_vectors_in_structs(
    tmp_path: Path, rows: pa.Table, metric: str | None, q: Any, column: str
) -> None:
    mine, theirs = both(tmp_path, rows)
    for k in (1, 5, 100):
        options: dict[str, Any] = {
            "columns": ["id"],
            "nearest": {"column": column, "q": q, "k": k, "metric": metric},
        }
        found, expected = (each.scanner(**options).to_table() for each in (mine, theirs))
        equal_but_for_ties(found, expected, 2e-6, (column, metric, k))


def test_nearest_with_order_filter_limit_and_expressions_equals_pylance(
    tmp_path: Path, rows: pa.Table
) -> None:
    mine, theirs = both(tmp_path, rows)
    nearest = {"column": "vec", "q": [0.1, 0.2, 0.3, 0.4], "k": 12}
    many = {**nearest, "q": [[0.1, 0.2, 0.3, 0.4], [1, 1, 1, 1]]}
    cases: list[dict[str, Any]] = [
        {"order_by": ["n"]},
        {"order_by": ["n"], "limit": 4, "offset": 2},
        {"order_by": ["n"], "filter": "id > 20", "limit": 3},
        {"filter": "id % 2 = 0", "limit": 3, "offset": 1},
        {"filter": "_distance < 1.5 AND id > 3"},
        {"columns": {"id": "id", "twice": "_distance * 2", "x": "id + n"}},
        {"columns": {"id": "id", "d": "_distance"}, "disable_scoring_autoprojection": True},
        {"columns": ["_rowid", "_distance", "id", "s.v"]},
        {"columns": ["id"], "with_row_id": True, "with_row_address": True},
    ]
    for case in cases:
        for each in (nearest, many):
            options = {"columns": ["id", "n"], **case, "nearest": each}
            found, expected = (side.scanner(**options).to_table() for side in (mine, theirs))
            assert found.schema.names == expected.schema.names, case
            ties = {"query_index"} if "order_by" in case else set()  # equal rows of two queries
            for name in set(found.schema.names) - {"_distance", "twice", "d"} - ties:
                assert found[name].to_pylist() == expected[name].to_pylist(), (case, name)
    plan: dict[str, Any] = {"columns": ["id"], "nearest": nearest}
    assert "KNNVectorDistance: metric=l2" in mine.scanner(**plan).explain_plan()
    assert "KNNVectorDistance: metric=l2" in theirs.scanner(**plan).explain_plan()


@pytest.mark.parametrize(
    "change",
    [
        {"k": 0},
        {"metric": "foo"},
        {"metric": "hamming"},
        {"nprobes": 0},
        {"minimum_nprobes": -1},
        {"minimum_nprobes": 0},
        {"maximum_nprobes": -1},
        {"minimum_nprobes": 5, "maximum_nprobes": 2},
        {"refine_factor": 0},
        {"ef": 0},
        {"distance_range": (1,)},
        {"query_parallelism": -2},
        {"approx_mode": "zzz"},
        {"search_effort": 2},
        {"foo": 1},
        {"column": "id"},
        {"column": "nope"},
        {"column": "VEC"},
        {"q": [1, 2]},
        {"q": list(range(8))},
        {"q": "abcd"},
        {"q": [[1, 2, 3, 4], [1, 2, 3]]},
        {"q": ["a", "b", "c", "d"]},
        {"q": None},
    ],
    ids=str,
)
def test_invalid_nearest_options_are_refused_as_in_pylance(
    tmp_path: Path, rows: pa.Table, change: dict[str, Any]
) -> None:
    mine, theirs = both(tmp_path, rows)
    nearest = {"column": "vec", "q": [1, 2, 3, 4], "k": 3, **change}
    with pytest.raises((ValueError, TypeError)) as expected:
        theirs.to_table(nearest=nearest)
    with pytest.raises(type(expected.value)):
        mine.to_table(nearest=nearest)


def test_nearest_of_int8_and_uint8_by_l2(tmp_path: Path) -> None:
    for kind in (pa.int8(), pa.uint8()):
        values = pa.array([[1, 2], [3, 4], [100, 0]], pa.list_(kind, 2))
        mine, theirs = both(tmp_path / str(kind), pa.table({"id": range(3), "vec": values}))
        nearest = {"column": "vec", "q": [3, 3], "metric": "l2"}
        with pytest.raises(ValueError, match=r"element type Int8|does not support UInt8"):
            theirs.to_table(nearest=nearest)
        found = mine.to_table(["id"], nearest=nearest)
        assert found.to_pydict() == {"id": [1, 0, 2], "_distance": [1, 5, 97**2 + 9]}


def test_nearest_query_beyond_uint8_saturates(tmp_path: Path) -> None:
    values = pa.array([[255], [0], [4]], pa.list_(pa.uint8(), 1))
    mine, theirs = both(tmp_path, pa.table({"id": range(3), "vec": values}))
    nearest = {"column": "vec", "q": [256], "k": 1}
    assert mine.to_table(["id"], nearest=nearest)["id"].to_pylist() == [0]
    assert theirs.to_table(["id"], nearest=nearest)["id"].to_pylist() == [1]


def test_nearest_skips_vectors_with_null_items(tmp_path: Path) -> None:
    values = pa.array([[1, 1], [None, 1], [5, 5]], pa.list_(pa.float32(), 2))
    mine, theirs = both(tmp_path, pa.table({"id": range(3), "vec": values}))
    nearest = {"column": "vec", "q": [0, 1]}
    assert mine.to_table(["id"], nearest=nearest)["id"].to_pylist() == [0, 2]
    assert theirs.to_table(["id"], nearest=nearest)["id"].to_pylist() == [1, 0, 2]


def test_nearest_float16_query_is_rounded_and_limit_zero_is_empty(tmp_path: Path) -> None:
    values = pa.array([[0.1], [0.7]], pa.list_(pa.float16(), 1))
    mine, theirs = both(tmp_path, pa.table({"id": range(2), "vec": values}))
    nearest = {"column": "vec", "q": [0.1]}
    for each in (mine, theirs):
        assert each.to_table(nearest=nearest)["_distance"].to_pylist()[0] == 0
    assert mine.to_table(nearest=nearest, limit=0).num_rows == 0
    with pytest.raises(ValueError, match="k must be positive"):
        theirs.to_table(nearest=nearest, limit=0)
