"""Graphs with equal rows linked to the first of them, and all nodes reachable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pennon.index.kernels.vectors.hnsw_reach import connect_graph, first_equal_rows

SQUARES, PRODUCTS, CODE_SQUARES = range(3)


def firsts_of(rows: np.ndarray, kind: int = SQUARES) -> list[int]:
    firsts = np.empty(len(rows), np.int32)
    first_equal_rows(kind, rows.view(np.uint8).reshape(len(rows), -1), firsts)
    return firsts.tolist()


def twin(rows: np.ndarray) -> list[int]:
    seen: dict[bytes, int] = {}
    return [seen.setdefault(row.tobytes(), at) for at, row in enumerate(rows)]


@pytest.mark.parametrize("count", [1, 2, 17, 1000])
def test_first_of_equal_rows(count: int) -> None:
    rng = np.random.default_rng(count)
    floats = np.zeros((count, 16), np.float32)
    floats[:, 15] = rng.integers(1, 20, count)
    codes = np.zeros((count, 64), np.uint8)
    codes[:, 63] = rng.integers(0, 40, count)
    assert firsts_of(floats, PRODUCTS) == twin(floats)
    assert firsts_of(floats, SQUARES) == twin(floats)
    assert firsts_of(codes, CODE_SQUARES) == twin(codes)


def test_hnsw_equal_rows_ignore_vanishing_differences() -> None:
    rows = np.zeros((6, 16), np.float32)
    rows[:, 3] = [0, -0.0, 1e-30, -1e-30, 1e-20, np.nan]
    assert firsts_of(rows.copy(), SQUARES) == [0, 0, 0, 0, 4, 5]
    assert firsts_of(rows.copy(), PRODUCTS) == [0, 0, 2, 3, 4, 5]


def connected(
    rows: np.ndarray, links: list[list[int]], most: int, few: int, kind: int = SQUARES
) -> Any:
    count = len(rows)
    firsts = np.array(firsts_of(rows, kind), np.int32)
    counts = np.array([len(each) for each in links], np.int32)
    nodes = np.zeros((count, most), np.int32)
    far = np.zeros((count, most), np.float32)
    for at, each in enumerate(links):
        apart = ((rows[each].astype(float) - rows[at].astype(float)) ** 2).sum(axis=1)
        order = np.argsort(apart, kind="stable")
        nodes[at, : len(each)] = np.array(each, np.int32)[order]
        far[at, : len(each)] = apart[order]
    connect_graph(kind, rows.view(np.uint8).reshape(count, -1), firsts, few, counts, nodes, far)
    return [nodes[at, :n].tolist() for at, n in enumerate(counts)], far


def reached(links: list[list[int]], start: int) -> int:
    seen, waiting = {start}, [start]
    while waiting:
        fresh = {*links[waiting.pop()]} - seen
        seen |= fresh
        waiting += fresh
    return len(seen)


def check(rows: np.ndarray, links: list[list[int]], far: np.ndarray, most: int) -> None:
    for at, each in enumerate(links):
        assert at not in each
        assert len({*each}) == len(each) <= most
        apart = ((rows[each].astype(float) - rows[at].astype(float)) ** 2).sum(axis=1)
        np.testing.assert_allclose(far[at, : len(each)], apart, rtol=1e-5)
        assert (np.diff(far[at, : len(each)]) >= 0).all()
    count = len(rows)
    assert reached(links, 0) == count
    back: list[list[int]] = [[] for _ in rows]
    for at, each in enumerate(links):
        for other in each:
            back[other].append(at)
    assert reached(back, 0) == count


@pytest.mark.parametrize("most", [2, 3, 6])
@pytest.mark.parametrize("kind", [SQUARES, CODE_SQUARES])
def test_random_graphs_are_connected_both_ways(most: int, kind: int) -> None:
    for seed in range(30):
        rng = np.random.default_rng(seed)
        count = int(rng.integers(1, 120))
        if kind == CODE_SQUARES:
            rows = np.zeros((count, 64), np.uint8)
        else:
            rows = np.zeros((count, 16), np.float32)
        rows[:, :2] = rng.integers(0, int(rng.integers(1, 12)), (count, 2))
        first = np.array(firsts_of(rows, kind)) == np.arange(count)
        own = np.flatnonzero(first)
        links = [
            rng.choice(
                own[own != at], min(int(rng.integers(0, most + 1)), len(own) - 1), replace=False
            ).tolist()
            if first[at]
            else []
            for at in range(count)
        ]
        found, far = connected(rows, links, most, 1 if most < 6 else 2, kind)
        check(rows, found, far, most)


def test_hnsw_link_without_free_slot_goes_to_an_equal_row() -> None:
    """Row 0 has two slots, and five rows are linked with it that it is not linked with."""
    rows = np.zeros((9, 16), np.float32)
    rows[1:8, 0] = range(1, 8)
    links = [[1, 2], [0, 2], [0, 1], [0], [0], [0], [0], [0], []]
    found, far = connected(rows, links, 6, 1)
    assert found[0][0] == 8
    assert found[8] == [0, 3, 4, 5, 6, 7]
    check(rows, found, far, 6)


def test_hnsw_reach_refuses_wrong_arrays() -> None:
    rows = np.zeros((3, 64), np.uint8)
    firsts, counts = np.zeros(3, np.int32), np.zeros(3, np.int32)
    nodes, far = np.zeros((3, 4), np.int32), np.zeros((3, 4), np.float32)
    with pytest.raises(ValueError, match="padded"):
        first_equal_rows(CODE_SQUARES, rows[:, :63].copy(), firsts)
    with pytest.raises(ValueError, match="padded"):
        first_equal_rows(CODE_SQUARES, rows, firsts[:2])
    with pytest.raises(ValueError, match="padded"):
        connect_graph(3, rows, firsts, 1, counts, nodes, far)
    with pytest.raises(ValueError, match="do not fit"):
        connect_graph(CODE_SQUARES, rows, firsts, 4, counts, nodes, far)
    with pytest.raises(ValueError, match="do not fit"):
        connect_graph(CODE_SQUARES, rows, firsts, 1, counts[:2], nodes, far)
    for wrong in ([0, 2, 0], [0, 0, 1], [0, -1, 0]):
        with pytest.raises(ValueError, match="not there"):
            connect_graph(CODE_SQUARES, rows, np.array(wrong, np.int32), 1, counts, nodes, far)
    for wrong in ([5, 0, 0], [-1, 0, 0], [0, 1, 0]):
        with pytest.raises(ValueError, match="not there"):
            connect_graph(CODE_SQUARES, rows, firsts, 1, np.array(wrong, np.int32), nodes, far)
    nodes[0, 0] = 3
    counts[0] = 1
    with pytest.raises(ValueError, match="not there"):
        connect_graph(CODE_SQUARES, rows, firsts, 1, counts, nodes, far)
