"""Pairs of a partition and a query in two steps: the nearest partition of each query, then all others.

What is near in the nearest says what need not be looked at of others.  In each step pairs are sorted by partition,
so that the rows of one are compared with all queries that ask it while they are in the processor's cache; lanes that
work side by side have some of the partitions each.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import numpy as np

from pennon.core.byte_ranges import Int64Array
from pennon.core.thread_pools import call_all
from pennon.index.vector.codes import Asks, Pairs
from pennon.index.vector.nearest_rows import NearestRows


def keep_by_steps(asks: Asks, pairs: Pairs, nearest: NearestRows, lanes: int) -> None:
    """Let queries keep the nearest rows of pairs, which come by query, the nearest partition of each first."""
    if len(nearest.counts) == 1:  # they are in their order
        asks.keep(pairs, nearest.heaps)
        return
    lengths = np.array([len(each) for each in pairs.rows])
    for some in _steps(pairs):
        borders = even_borders(lengths[some.places], lanes)
        found = [nearest, *(nearest.bounds() for _ in range(1, lanes))]
        keep = [
            partial(asks.keep, some.at(slice(start, end)).of_few(), its.heaps)
            for its, (start, end) in zip(found, pairwise(borders), strict=True)
            if start < end
        ]
        call_all(keep)
        for other in found[1:]:
            nearest.join_beyond(other)


def even_borders(work: Int64Array, lanes: int) -> list[int]:
    """Return where each lane begins, and the last one ends, if all get about as much of some work."""
    done = work.cumsum()
    return [0, *done.searchsorted(done[-1] * np.arange(1, lanes) // lanes).tolist(), len(done)]


def _steps(pairs: Pairs) -> Iterator[Pairs]:
    is_first = np.ones(len(pairs.queries), np.bool_)
    np.not_equal(pairs.queries[1:], pairs.queries[:-1], out=is_first[1:])
    for are_meant in (is_first, ~is_first):
        some = are_meant.nonzero()[0]
        if len(some):
            yield pairs.at(some[pairs.places[some].argsort(kind="stable")])
