"""Graphs of near neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pennon.encoding.kernels.graphs import grow_graph


def grown(rows: np.ndarray, levels: Any, m: int, wide: int, *, is_product: bool = False) -> Any:
    levels = np.asarray(levels, np.uint8)
    count, slots = len(rows), max(int(levels.sum()), 1)
    starts = np.cumsum(levels, dtype=np.int64) - levels
    lower = np.zeros(count, np.int32), np.empty((count, 2 * m), np.int32)
    upper = np.zeros(slots, np.int32), np.empty((slots, m), np.int32)
    far = np.empty((count, 2 * m), np.float32), np.empty((slots, m), np.float32)
    grow_graph(rows, is_product, levels, starts, m, wide, *lower, far[0], *upper, far[1])
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


@pytest.mark.parametrize("is_product", [False, True])
def test_a_search_finds_the_nearest(*, is_product: bool) -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(600, 32)).astype(np.float32)
    levels = np.minimum(rng.geometric(0.8, 600) - 1, 3)
    levels[0] = 3
    counts, nodes, far, upper_counts, upper_nodes, starts = grown(
        rows, levels, 8, 60, is_product=is_product
    )
    assert counts.min() > 0
    assert counts.max() <= 16
    products = rows @ rows.T
    squares = ((rows[:, None] - rows[None]) ** 2).sum(axis=2)
    distances = 1 - products if is_product else squares
    for node in range(600):
        linked = nodes[node, : counts[node]]
        assert node not in linked
        assert len(set(linked.tolist())) == len(linked)
        assert np.allclose(far[node, : counts[node]], distances[node, linked], atol=1e-3)
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


def test_what_does_not_fit() -> None:
    rows = np.zeros((2, 16), np.float32)
    with pytest.raises(ValueError, match="above the first"):
        grown(rows, [0, 1], 4, 8)
    with pytest.raises(ValueError, match="padded"):
        grown(np.zeros((2, 15), np.float32), [0, 0], 4, 8)
    with pytest.raises(ValueError, match="padded"):
        grown(rows, [0, 0], 4, 0)
