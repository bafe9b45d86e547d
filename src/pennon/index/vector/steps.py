"""Pairs of a partition and a query, kept by lanes that work side by side.

Pairs are sorted by partition, so that the rows of one are compared with all queries that ask it while they are in the
processor's cache.  Lanes have some of the partitions each, or of the queries where these share few partitions.  Vectors
take two steps: the nearest partition of each query, then all others: what is near in the nearest says what need not be
looked at of others.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Final

import numpy as np

from pennon.core.byte_ranges import Int64Array
from pennon.core.runs import run_starts
from pennon.core.thread_pools import call_all
from pennon.index.vector.codes import Asks, Everywhere, Heaps, Pairs
from pennon.index.vector.nearest_rows import NearestRows

PAIRS: Final = 1024
"""Pairs that are made ready together, about."""
_SHARED: Final = 2
"""Partitions are shared if so many queries ask each, or more."""
_READ: Final = 4
"""To compare rows with the first query that asks them takes so many times as long as with another one."""


def keep_pairs(asks: Asks, pairs: Pairs, heaps: Heaps, start: int, end: int) -> None:
    """Let queries keep some of the pairs, a few at a time."""
    for first in range(start, end, PAIRS):
        asks.keep(pairs.at(slice(first, min(first + PAIRS, end))), heaps)


def keep_by_steps(asks: Asks, pairs: Pairs, nearest: NearestRows, lanes: int) -> None:
    """Let queries keep the nearest rows of pairs, which come by query, the nearest partition of each first."""
    if len(nearest.counts) == 1:  # they are in their order
        asks.keep(pairs, nearest.heaps)
        return
    if len(pairs.queries) >= _SHARED * len(pairs.codes):
        for some in _steps(pairs):
            keep_by_partitions(asks, some, nearest, lanes)
        return
    # lanes have some of the queries, and do not wait for each other
    lengths = np.array([len(each) for each in pairs.rows])
    borders = even_borders(lengths[pairs.places], lanes)
    borders = [*pairs.queries.searchsorted(pairs.queries[borders[:-1]]).tolist(), borders[-1]]
    call_all(
        [
            partial(_keep_both, asks, pairs.at(slice(start, end)), nearest.heaps)
            for start, end in pairwise(borders)
            if start < end
        ]
    )


def _keep_both(asks: Asks, pairs: Pairs, heaps: Heaps) -> None:
    for some in _steps(pairs):
        _keep_few(asks, some.between(0, len(some.queries)), heaps)


def keep_by_partitions(asks: Asks, pairs: Pairs, nearest: NearestRows, lanes: int) -> None:
    """Let queries keep the nearest rows of pairs, which come by partition."""
    lengths = np.array([len(each) for each in pairs.rows])
    work = lengths[pairs.places]
    if isinstance(asks, Everywhere):  # which waits for the rows more than it compares them
        work[run_starts(pairs.places)] *= _READ
    borders = even_borders(work, lanes)
    found = [nearest, *(nearest.bounds() for _ in range(1, lanes))]
    keep = [
        partial(_keep_few, asks, pairs.between(start, end), its.heaps)
        for its, (start, end) in zip(found, pairwise(borders), strict=True)
        if start < end
    ]
    call_all(keep)
    for other in found[1:]:
        nearest.join_beyond(other)


def _keep_few(asks: Asks, pairs: Pairs, heaps: Heaps) -> None:
    keep_pairs(asks, pairs, heaps, 0, len(pairs.queries))


def even_borders(work: Int64Array, lanes: int) -> list[int]:
    """Return where each lane begins, and the last one ends, if all get about as much of some work."""
    done = work.cumsum()
    return [0, *done.searchsorted(done[-1] * np.arange(1, lanes) // lanes).tolist(), len(done)]


def _steps(pairs: Pairs) -> Iterator[Pairs]:
    is_first = run_starts(pairs.queries)
    for are_meant in (is_first, ~is_first):
        some = are_meant.nonzero()[0]
        if len(some):
            yield pairs.at(some[pairs.places[some].argsort(kind="stable")])
