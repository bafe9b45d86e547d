"""Graphs of near neighbours."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from pennon.index.kernels.vectors.hnsw_build import Growth

SQUARES, PRODUCTS, CODE_SQUARES = range(3)


def grown(
    rows: np.ndarray, levels: Any, m: int, wide: int, kind: int = SQUARES, workers: int = 1
) -> Any:
    levels = np.asarray(levels, np.uint8)
    count, slots = len(rows), max(int(levels.sum()), 1)
    starts = np.cumsum(levels, dtype=np.int64) - levels
    lower = np.zeros(count, np.int32), np.zeros((count, 2 * m), np.int32)
    upper = np.zeros(slots, np.int32), np.zeros((slots, m), np.int32)
    far = np.zeros((count, 2 * m), np.float32), np.zeros((slots, m), np.float32)
    spare = np.zeros(count, np.int32)
    taken = rows.view(np.uint8).reshape(count, -1), spare, levels, starts
    growth = Growth(kind, *taken, m, wide, *lower, far[0], *upper, far[1], workers)
    done = 1
    while size := growth.next_block():
        for step in (growth.find, growth.link):
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(step, range(workers)))
        done += size
    assert done == count
    return lower[0], lower[1], far[0], upper[0], upper[1], starts


def test_all_of_a_few_are_linked() -> None:
    rows = np.zeros((4, 16), np.float32)
    rows[:, 0] = [0, 1, 3, 7]
    counts, nodes, far, *_ = grown(rows, [0, 0, 0, 0], 4, 8)
    assert counts.tolist() == [3, 3, 3, 3]
    for node in range(4):
        assert sorted(nodes[node, :3].tolist()) == [each for each in range(4) if each != node]
        squares = (rows[nodes[node, :3], 0] - rows[node, 0]) ** 2
        assert far[node, :3].tolist() == squares.tolist()


@pytest.mark.parametrize("kind", [SQUARES, PRODUCTS, CODE_SQUARES])
def test_a_search_finds_the_nearest(kind: int) -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(600, 64)).astype(np.float32)
    if kind == CODE_SQUARES:
        rows = rng.integers(0, 256, rows.shape, np.uint8)
    levels = np.minimum(rng.geometric(0.8, 600) - 1, 3)
    levels[0] = 3
    counts, nodes, far, upper_counts, upper_nodes, starts = grown(rows, levels, 8, 60, kind)
    assert counts.min() > 0
    assert counts.max() <= 16
    exact = rows.astype(np.float32)
    squares = ((exact[:, None] - exact[None]) ** 2).sum(axis=2)
    distances = 1 - exact @ exact.T if kind == PRODUCTS else squares
    for node in range(600):
        linked = nodes[node, : counts[node]]
        assert node not in linked
        assert len(set(linked.tolist())) == len(linked)
        assert np.allclose(far[node, : counts[node]], distances[node, linked], atol=1e-3)
        assert (np.diff(far[node, : counts[node]]) >= 0).all()
    for node in np.flatnonzero(levels).tolist():
        for level in range(levels[node]):
            slot = starts[node] + level
            assert (levels[upper_nodes[slot, : upper_counts[slot]]] > level).all()
    seen, waiting = {0}, [0]
    while waiting:
        node = waiting.pop()
        fresh = set(nodes[node, : counts[node]].tolist()) - seen
        seen |= fresh
        waiting += fresh
    assert len(seen) > 590


def test_hnsw_build_refuses_rows_that_do_not_fit() -> None:
    rows = np.zeros((2, 16), np.float32)
    with pytest.raises(ValueError, match="above the first"):
        grown(rows, [0, 1], 4, 8)
    with pytest.raises(ValueError, match="padded"):
        grown(np.zeros((2, 15), np.float32), [0, 0], 4, 8)
    with pytest.raises(ValueError, match="padded"):
        grown(rows, [0, 0], 4, 0)
    with pytest.raises(ValueError, match="padded"):
        grown(np.zeros((2, (1 << 15) + 64), np.uint8), [0, 0], 4, 8, CODE_SQUARES)
    with pytest.raises(ValueError, match="padded"):
        grown(rows, [0, 0], 4, 8, 3)


def test_hnsw_build_refuses_unknown_workers() -> None:
    rows, levels, starts = np.zeros((2, 64), np.uint8), np.zeros(2, np.uint8), np.zeros(2, np.int64)
    lower = np.zeros(2, np.int32), np.zeros((2, 8), np.int32), np.zeros((2, 8), np.float32)
    upper = np.zeros(1, np.int32), np.zeros((1, 4), np.int32), np.zeros((1, 4), np.float32)
    spare = np.zeros(2, np.int32)
    growth = Growth(CODE_SQUARES, rows, spare, levels, starts, 4, 8, *(lower + upper), 2)
    assert growth.next_block() == 1
    for worker in (-1, 2):
        with pytest.raises(ValueError, match="no such worker"):
            growth.find(worker)
        with pytest.raises(ValueError, match="no such worker"):
            growth.link(worker)


@pytest.mark.parametrize("kind", [SQUARES, PRODUCTS, CODE_SQUARES])
def test_the_graph_is_the_same_for_any_number_of_workers(kind: int) -> None:
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(3000, 16)).astype(np.float32)
    levels = np.minimum(rng.geometric(0.8, 3000) - 1, 3)
    levels[0] = 3
    first = grown(rows, levels, 4, 20, kind)
    for workers in (2, 3, 7):
        for mine, other in zip(grown(rows, levels, 4, 20, kind, workers), first, strict=True):
            assert mine.tolist() == other.tolist()


def plain_twin(rows: np.ndarray, m: int) -> list[list[int]]:
    """Return the neighbours of each row on the lowest level, where all rows before are found."""
    far = ((rows[:, None] - rows[None]) ** 2).sum(axis=2)

    def chosen(node: int, some: list[int], most: int) -> list[int]:
        apart: list[int] = []
        for each in some:
            if len(apart) < most and all(far[each, other] >= far[node, each] for other in apart):
                apart.append(each)
        rest = [each for each in some if each not in apart]
        return sorted(apart + rest[: most - len(apart)], key=far[node].__getitem__)

    linked: list[list[int]] = [[] for _ in rows]
    for node in range(1, len(rows)):
        near = sorted(range(node), key=far[node].__getitem__)
        linked[node] = chosen(node, near, m)
        for other in linked[node]:
            both = sorted([*linked[other], node], key=far[other].__getitem__)
            linked[other] = both if len(both) <= 2 * m else chosen(other, both, 2 * m)
    return linked


@pytest.mark.parametrize(("width", "m"), [(2, 2), (2, 5), (16, 6), (16, 8)])
def test_hnsw_neighbours_equal_a_plain_twin(width: int, m: int) -> None:
    rng = np.random.default_rng(m)
    rows = np.zeros((400, 16), np.float32)
    rows[:, :width] = rng.integers(0, 700, (400, width))
    rows[:, 0] += np.arange(400) / 512  # that no two are as far
    counts, nodes, *_ = grown(rows, np.zeros(400, np.uint8), m, 400)
    found = [nodes[node, : counts[node]].tolist() for node in range(400)]
    assert found == plain_twin(rows, m)


def test_hnsw_build_of_equal_rows() -> None:
    rows = np.ones((300, 16), np.float32)
    counts, nodes, far, *_ = grown(rows, np.zeros(300, np.uint8), 4, 20)
    assert counts.min() > 0
    assert not far.any()
    assert nodes.max() < 300
