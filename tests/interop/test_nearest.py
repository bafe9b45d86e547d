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
def test_random_tables(tmp_path: Path, seed: int) -> None:
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
