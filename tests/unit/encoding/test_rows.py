"""Rows cut at the borders of pages."""

from __future__ import annotations

import numpy as np

from pennon.encoding.rows import FileRows, Rows


def test_split_is_clip_at_every_border() -> None:
    random = np.random.default_rng(3)
    for _ in range(300):
        borders = np.concatenate([[0], np.unique(random.integers(1, 60, random.integers(1, 6)))])
        total = int(borders[-1])
        edges = np.unique(random.integers(0, total + 1, random.integers(0, 12)))
        edges = edges[: len(edges) // 2 * 2]
        rows = Rows.ranges(edges[::2].copy(), edges[1::2].copy())
        if random.integers(0, 3) == 0:
            rows = Rows.between(*sorted(random.integers(0, total + 1, 2).tolist()))
        pairs = [(n, rows.clip(*borders[n : n + 2].tolist())) for n in range(len(borders) - 1)]
        wanted = [(n, part.indices().tolist()) for n, part in pairs if part.count]
        found = [(n, part.indices().tolist()) for n, part in rows.split(borders)]
        assert found == wanted
        assert all(part.count == len(part.indices()) for _, part in rows.split(borders))


def test_run_lengths_are_the_average_of_the_ranges_of_each_file() -> None:
    cuts, starts = np.array([0, 1, 3, 4]), np.array([5, 0, 10, 7])
    ends = np.array([9, 2, 15, 7])
    rows = FileRows(cuts, starts, ends, 11)
    assert rows.run_lengths().tolist() == [4, 3, 0]
    assert rows.of_files(1, 3).run_lengths().tolist() == [3, 0]
