"""The nearest rows, for any split into blocks."""

from __future__ import annotations

import numpy as np
import pytest

from pennon.index.vector.search.top_k import Best, Neighbours, nearest_of


@pytest.mark.parametrize("seed", range(30))
def test_top_k_equals_a_full_sort(seed: int) -> None:
    rng = np.random.default_rng(seed)
    queries, rows, k = int(rng.integers(1, 5)), int(rng.integers(0, 400)), int(rng.integers(1, 30))
    found = rng.integers(0, rng.choice([3, 50, 10**6]), (queries, rows)).astype(np.float32)
    found[rng.random(found.shape) < 0.1] = np.nan
    found[rng.random(found.shape) < 0.1] = np.inf
    ids = rng.permutation(rows).astype(np.uint64)
    best = Best(queries, k)
    starts = list(range(0, rows, 37))
    rng.shuffle(starts)
    for start in starts:
        block = found[:, start : start + 37]
        asked, places = nearest_of(block, best.bounds, k)
        here = places + start
        best.add(Neighbours(asked, ids[here], ids[here] + np.uint64(7), block[asked, places]))
    near = best.found()
    for query in range(queries):
        each = [(d, int(i)) for d, i in zip(found[query], ids, strict=True) if not np.isnan(d)]
        expected = sorted(each)[:k]
        mine = near.queries == query
        assert list(zip(near.distances[mine], near.ids[mine].tolist(), strict=True)) == expected
        assert (near.addresses[mine] == near.ids[mine] + np.uint64(7)).all()
        if len(expected) == k:
            assert best.bounds[query] == expected[-1][0]


def test_top_k_of_equal_distances_has_the_first_ids_and_bounded_memory() -> None:
    best = Best(1, 3)
    ids = np.arange(100_000, dtype=np.uint64)
    for part in np.split(ids[::-1], 100):
        zeros = np.zeros((1, len(part)), np.float32)
        queries, places = nearest_of(zeros, best.bounds, 3)
        best.add(Neighbours(queries, part[places], part[places], zeros[queries, places]))
        assert best.held <= 3
    assert best.found().ids.tolist() == [0, 1, 2]


@pytest.mark.parametrize("seed", range(40))
def test_top_k_of_rows_in_any_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count, k = int(rng.integers(0, 60)), int(rng.integers(0, 12))
    queries = rng.integers(0, 6, count)
    ids = rng.permutation(count).astype(np.uint64)
    distances = rng.integers(0, rng.choice([2, 1000]), count).astype(np.float32)
    order = np.lexsort((ids, distances, queries))
    kept = [
        place
        for at, place in enumerate(order)
        if k and (at < k or queries[place] != queries[order[at - k]])
    ]
    for places in (np.arange(count), order):
        near = Neighbours(
            queries[places], ids[places], ids[places] + np.uint64(7), distances[places]
        )
        best = near.best(k)
        assert best.queries.tolist() == queries[kept].tolist()
        assert best.ids.tolist() == ids[kept].tolist()
        assert (best.addresses == best.ids + np.uint64(7)).all()
        assert best.distances.tolist() == distances[kept].tolist()
