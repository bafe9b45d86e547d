"""Pairs by partition, and in two steps: whatever lanes there are, what is found is what one heap for each query finds."""

import numpy as np
import pytest

from pennon.index.vector.codes import Apart, Asked, Everywhere, Pairs, RowCodes
from pennon.index.vector.cut_rows import CutRows
from pennon.index.vector.nearest_rows import NearestRows
from pennon.index.vector.steps import keep_by_partitions, keep_by_steps

QUERIES, WIDTH, PROBED = 30, 20, 6


def example(*, has_ties: bool, is_masked: bool) -> tuple[Everywhere, Pairs]:
    rng = np.random.default_rng(5)
    sizes = [1, 90, 0, 300, 64, 17, 200, 130, 70]
    rows = rng.normal(size=(sum(sizes), WIDTH)).astype(np.float32)
    if has_ties:
        rows = rng.integers(0, 2, rows.shape).astype(np.float32)
        rows[:, 3:] = 0
    queries = rows[rng.permutation(len(rows))[:QUERIES]]
    parts = np.split(np.ascontiguousarray(rows).view(np.uint8), np.cumsum(sizes)[:-1])
    numbers = np.split(rng.permutation(len(rows)).astype(np.uint64), np.cumsum(sizes)[:-1])
    codes = [RowCodes(each, CutRows(each)) for each in parts]
    for each in codes:
        each.cut_for(2)  # which cuts them
    passing = [(rng.random(size) < 0.3).astype(np.uint8) if is_masked else None for size in sizes]
    places = np.concatenate([rng.permutation(len(sizes))[:PROBED] for _ in range(QUERIES)])
    asking = np.arange(QUERIES).repeat(PROBED)
    pairs = Pairs(codes, numbers, passing, places, places, asking)
    return Everywhere(Asked(Apart.SQUARES, queries)), pairs


def found_by(asks: Everywhere, pairs: Pairs, most: int, lanes: int) -> list[list[object]]:
    nearest = NearestRows(QUERIES, most)
    keep_by_steps(asks, pairs, nearest, lanes)
    return [each.tolist() for each in nearest.sorted()]


@pytest.mark.parametrize("has_ties", [False, True])
@pytest.mark.parametrize("is_masked", [False, True])
@pytest.mark.parametrize("most", [1, 10, 1000])
def test_lanes_find_what_one_heap_does(most: int, *, has_ties: bool, is_masked: bool) -> None:
    asks, pairs = example(has_ties=has_ties, is_masked=is_masked)
    nearest = NearestRows(QUERIES, most)
    asks.keep(pairs, nearest.heaps)
    wanted = [each.tolist() for each in nearest.sorted()]
    for lanes in (1, 2, 3, 50):
        assert found_by(asks, pairs, most, lanes) == wanted


def test_pairs_between_two_have_the_partitions_between() -> None:
    _, pairs = example(has_ties=False, is_masked=True)
    pairs = pairs.at(pairs.places.argsort(kind="stable"))
    few = pairs.between(30, 70)
    assert few.places.min() == 0
    assert len(few.codes) == len(few.rows) == len(few.passing) == few.places.max() + 1
    assert few.queries.tolist() == pairs.queries[30:70].tolist()
    assert [few.codes[at] for at in few.places] == [pairs.codes[at] for at in few.partitions]
    assert [few.rows[at] for at in few.places] == [pairs.rows[at] for at in few.partitions]


@pytest.mark.parametrize("is_masked", [False, True])
def test_lanes_of_partitions_find_what_one_heap_does(*, is_masked: bool) -> None:
    asks, pairs = example(has_ties=True, is_masked=is_masked)
    pairs = pairs.at(pairs.places.argsort(kind="stable"))
    nearest = NearestRows(QUERIES, 10)
    asks.keep(pairs, nearest.heaps)
    wanted = [each.tolist() for each in nearest.sorted()]
    for lanes in (1, 2, 3, 50):
        nearest = NearestRows(QUERIES, 10)
        keep_by_partitions(asks, pairs, nearest, lanes)
        assert [each.tolist() for each in nearest.sorted()] == wanted
