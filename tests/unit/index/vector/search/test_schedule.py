"""Schedules of pairs by partition and in two steps: any number of workers equals one heap a query."""

import numpy as np
import pytest

from pennon.index.vector.metric import DistanceKind
from pennon.index.vector.quantizer import (
    EncodedQueries,
    Pairs,
    PlainQueries,
    RowCodes,
    ScanOrder,
    Uint8Bounds,
)
from pennon.index.vector.search.nearest_rows import TopKHeaps
from pennon.index.vector.search.schedule import keep_pairs

QUERIES, WIDTH, PROBED = 30, 20, 6


def example(*, has_ties: bool, is_masked: bool) -> tuple[PlainQueries, Pairs]:
    rng = np.random.default_rng(5)
    sizes = [1, 90, 0, 300, 64, 17, 200, 130, 70]
    rows = rng.normal(size=(sum(sizes), WIDTH)).astype(np.float32)
    if has_ties:
        rows = rng.integers(0, 2, rows.shape).astype(np.float32)
        rows[:, 3:] = 0
    queries = rows[rng.permutation(len(rows))[:QUERIES]]
    parts = np.split(np.ascontiguousarray(rows).view(np.uint8), np.cumsum(sizes)[:-1])
    numbers = np.split(rng.permutation(len(rows)).astype(np.uint64), np.cumsum(sizes)[:-1])
    codes = [RowCodes(each, Uint8Bounds(each)) for each in parts]
    for each, its in zip(codes, numbers, strict=True):
        each.of(its, 2)  # which cuts them
    passing = [(rng.random(size) < 0.3).astype(np.uint8) if is_masked else None for size in sizes]
    places = np.concatenate([rng.permutation(len(sizes))[:PROBED] for _ in range(QUERIES)])
    asking = np.arange(QUERIES).repeat(PROBED)
    pairs = Pairs(codes, numbers, passing, places, places, asking)
    return PlainQueries(EncodedQueries(DistanceKind.SQUARES, queries)), pairs


def in_order(pairs: Pairs, order: ScanOrder) -> Pairs:
    by_partition = pairs.places.argsort(kind="stable")
    return pairs.at(by_partition) if order is ScanOrder.PARTITIONS else pairs


@pytest.mark.parametrize("order", ScanOrder)
@pytest.mark.parametrize("has_ties", [False, True])
@pytest.mark.parametrize("is_masked", [False, True])
@pytest.mark.parametrize("most", [1, 10, 1000])
def test_schedule_with_several_workers_equals_one_heap(
    most: int, order: ScanOrder, *, has_ties: bool, is_masked: bool
) -> None:
    asks, pairs = example(has_ties=has_ties, is_masked=is_masked)
    pairs = in_order(pairs, order)
    nearest = TopKHeaps(QUERIES, most)
    asks.prepare(pairs).keep(nearest.heaps, pairs.as_one)
    wanted = [each.tolist() for each in nearest.sorted()]
    for workers in (1, 2, 3, 50):
        nearest = TopKHeaps(QUERIES, most)
        keep_pairs(asks, order, pairs, nearest, workers)
        assert [each.tolist() for each in nearest.sorted()] == wanted


@pytest.mark.parametrize("probed", [1, 2])
def test_schedule_of_partitions_with_few_queries(probed: int) -> None:
    asks, pairs = example(has_ties=False, is_masked=False)
    some = np.flatnonzero(np.arange(len(pairs.queries)) % PROBED < probed)[:: 7 - 2 * probed]
    pairs = pairs.at(some)
    nearest = TopKHeaps(QUERIES, 10)
    asks.prepare(pairs).keep(nearest.heaps, pairs.as_one)
    wanted = [each.tolist() for each in nearest.sorted()]
    for workers in (1, 2, 3, 50):
        nearest = TopKHeaps(QUERIES, 10)
        keep_pairs(asks, ScanOrder.NEAREST_THEN_REST, pairs, nearest, workers)
        assert [each.tolist() for each in nearest.sorted()] == wanted
