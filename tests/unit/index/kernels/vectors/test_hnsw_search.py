"""Walks over graphs, and graphs that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from pennon.errors import FormatError
from pennon.index.kernels.vectors.hnsw_search import check_graph, walk_graph
from tests.unit.index.kernels.vectors.heaps import bytes_of

Array = npt.NDArray[Any]


def graph_of(near: list[list[int]], upper: dict[int, list[int]] | None = None) -> dict[str, Any]:
    """Return the arrays of a graph of one or two levels."""
    upper = upper or {}
    lists = [*near, *upper.values()]
    return {
        "nodes": np.array([*range(len(near)), *upper], np.uint32),
        "levels": np.array([0, len(near), len(lists)][: 3 if upper else 2], np.int64),
        "ends": np.cumsum([0, *map(len, lists)]).astype(np.int64),
        "neighbours": np.array([node for each in lists for node in each], np.uint32),
    }


def _arrays(graph: dict[str, Any]) -> tuple[Array, Array, Array, Array]:
    return graph["nodes"], graph["levels"], graph["ends"], graph["neighbours"]


def walked(
    line: Array, query: float, graph: dict[str, Any], entry: int, width: int, passing: Any = None
) -> list[int]:
    check_graph(len(line), *_arrays(graph), entry)
    nodes, distances = np.empty((1, width), np.uint32), np.empty((1, width), np.float32)
    asked, counts = bytes_of(np.array([[query]], np.float32)), np.empty(1, np.int64)
    rows = bytes_of(line.reshape(-1, 1).astype(np.float32))
    walk_graph(0, rows, asked, *_arrays(graph), entry, passing, nodes, distances, counts)
    found = nodes[0, : counts[0]]
    squares = (line[found] - query) ** 2
    np.testing.assert_allclose(distances[0, : counts[0]], squares, rtol=1e-5)
    return sorted(found.tolist())


def test_hnsw_walk_along_a_line() -> None:
    line = np.arange(50.0)
    near = [[at for at in (number - 1, number + 1) if 0 <= at < 50] for number in range(50)]
    plain = graph_of(near)
    assert walked(line, 40.2, plain, 0, 3) == [39, 40, 41]
    assert walked(line, 40.2, plain, 0, 50) == list(range(50))
    skipping = graph_of(near, {0: [20], 20: [0, 45], 45: [20]})
    assert walked(line, 40.2, skipping, 0, 1) == [40]
    passing = (np.arange(50) % 10 == 0).astype(np.uint8)
    assert walked(line, 42.0, skipping, 0, 2, passing) == [30, 40]
    assert walked(line, 26.0, skipping, 20, 2, passing) == [20, 30]


def test_hnsw_walk_past_a_hundred_neighbours() -> None:
    line = np.arange(200.0)
    everyone = list(range(200))
    star = graph_of([everyone, *([0, 0] for _ in everyone[1:])])
    assert walked(line, 150.25, star, 0, 3) == [149, 150, 151]
    assert walked(line, 150.25, star, 7, 200) == everyone
    flat = graph_of(
        [[0] for _ in everyone],
        {0: [*everyone, *everyone[::-1]], **{at: [0] for at in everyone[1:]}},
    )
    assert walked(line, 150.25, flat, 0, 2) == [0, 150]


def test_hnsw_walk_skips_unreachable_nodes() -> None:
    assert walked(np.arange(3.0), 2.0, graph_of([[1], [0], []]), 0, 3) == [0, 1]


def test_hnsw_graphs_with_invalid_links_are_refused() -> None:
    good = graph_of([[1], [0], [0]], {0: [2], 2: [0]})
    check_graph(3, *_arrays(good), 0)
    bad = [
        {"nodes": [0, 1, 3, 0, 2]},
        {"nodes": [0, 2, 1, 0, 2]},
        {"nodes": [0, 1, 2, 2, 0]},
        {"levels": [0, 2, 5]},
        {"levels": [0, 3, 4]},
        {"levels": [1, 3, 5]},
        {"levels": [0, 3, 6, 5]},
        {"levels": [5]},
        {"ends": [0, 1, 2, 3, 4]},
        {"ends": [0, 2, 1, 3, 4, 5]},
        {"ends": [0, 1, 2, 3, 4, 6]},
        {"ends": [1, 1, 2, 3, 4, 5]},
        {"neighbours": [1, 0, 0, 3, 0]},
    ]
    for change in bad:
        made = good | {key: np.array(value, good[key].dtype) for key, value in change.items()}
        with pytest.raises(FormatError, match="not there"):
            check_graph(3, *_arrays(made), 0)
    with pytest.raises(FormatError, match="not there"):
        check_graph(3, *_arrays(good), 3)


def test_hnsw_walk_refuses_wrong_arrays() -> None:
    rows, query = np.zeros((2, 8), np.uint8), np.zeros((1, 8), np.uint8)
    graph = _arrays(graph_of([[1], [0]]))
    nodes, out, counts = np.empty((1, 2), np.uint32), np.empty((1, 2), np.float32), np.zeros(1, int)
    walk_graph(4, rows, query, *graph, 0, None, nodes, out, counts)
    walk_graph(4, rows, query[:0], *graph, 0, None, nodes[:0], out[:0], counts[:0])
    for other in (
        (nodes, out[:, :1].copy(), counts),
        (nodes[:, :0].copy(), out[:, :0].copy(), counts),
        (nodes, out[:0], counts),
        (nodes[:0], out, counts),
        (nodes, out, counts[:0]),
    ):
        with pytest.raises(ValueError, match="a place"):
            walk_graph(4, rows, query, *graph, 0, None, *other)
    with pytest.raises(ValueError, match="a place"):
        walk_graph(4, rows, query, *graph, 0, np.zeros(1, np.uint8), nodes, out, counts)
    with pytest.raises(ValueError, match="levels of nodes"):
        walk_graph(4, rows, query, *graph, 2, None, nodes, out, counts)
    with pytest.raises(ValueError, match="levels of nodes"):
        walk_graph(4, rows[:1].copy(), query, *graph, 0, None, nodes, out, counts)


def test_hnsw_walks_are_independent() -> None:
    rng = np.random.default_rng(3)
    line, queries = np.arange(300.0, dtype=np.float32), rng.uniform(0, 300, 600)
    near = graph_of(
        [[at for at in (n - 7, n - 1, n + 1, n + 7) if 0 <= at < 300] for n in range(300)]
    )
    nodes, far = np.empty((600, 5), np.uint32), np.empty((600, 5), np.float32)
    counts, passing = np.empty(600, np.int64), (np.arange(300) % 5 > 0).astype(np.uint8)
    asked = bytes_of(queries.reshape(-1, 1).astype(np.float32))
    for mask in (None, passing):
        rows = bytes_of(line.reshape(-1, 1))
        walk_graph(0, rows, asked, *_arrays(near), 0, mask, nodes, far, counts)
        for query, found, count in zip(queries.tolist(), nodes, counts, strict=True):
            assert sorted(found[:count].tolist()) == walked(line, query, near, 0, 5, mask)
