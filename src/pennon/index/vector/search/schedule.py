"""Pairs of a partition and a query, kept by workers that work side by side.

Workers take chunks of the pairs, each the next one when it is done: none waits for another that began later.  A worker that
takes partitions has heaps of its own, which are joined; where chunks are of some queries each, all put into the same.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from pennon.core.byte_ranges import Int64Array
from pennon.core.runs import run_starts
from pennon.core.thread_pools import call_all
from pennon.index.kernels.vectors.work_chunks import WorkChunks
from pennon.index.vector.quantizer import Pairs, PreparedScan, QueryBatch, ScanOrder
from pennon.index.vector.search.nearest_rows import TopKHeaps

_SHARED: Final = 2
"""Partitions are shared if so many queries ask each, or more."""
_CHUNKS: Final = 4
"""The most chunks of work for each worker."""


def keep_pairs(
    asks: QueryBatch, order: ScanOrder, pairs: Pairs, nearest: TopKHeaps, workers: int
) -> None:
    """Let queries keep the nearest rows of pairs.

    They come by partition if that is their order, else by query, the nearest partition of each first.
    """
    if order is ScanOrder.PARTITIONS:
        _keep_by_partition(asks.prepare(pairs), pairs.places, 0, nearest, workers)
    elif len(nearest.counts) == 1:
        asks.prepare(pairs).keep(nearest.heaps, pairs.as_one)
    elif order is ScanOrder.QUERIES:
        _keep_by_query(asks, pairs, nearest, workers)
    else:
        _keep_in_steps(asks, pairs, nearest, workers)


def _keep_in_steps(asks: QueryBatch, pairs: Pairs, nearest: TopKHeaps, workers: int) -> None:
    """Let queries keep the nearest rows: what is near in the nearest partition says what need not be looked at of others."""
    if len(pairs.queries) < _SHARED * len(pairs.codes):  # hardly any partition is read twice
        _keep_by_query(asks, pairs, nearest, workers)
        return
    is_other = ~run_starts(pairs.queries)
    pairs = pairs.at(np.lexsort((pairs.places, is_other)))
    prepared, firsts = asks.prepare(pairs), len(is_other) - int(np.count_nonzero(is_other))
    _keep_by_partition(prepared, pairs.places[:firsts], 0, nearest, workers)
    _keep_by_partition(prepared, pairs.places[firsts:], firsts, nearest, workers)


def _keep_by_partition(
    prepared: PreparedScan, places: Int64Array, first: int, nearest: TopKHeaps, workers: int
) -> None:
    """Let workers have some of the partitions each: pairs from the first one on have these places."""
    count = len(places)
    if not count:
        return
    borders = np.append(run_starts(places).nonzero()[0], count)
    if workers == 1:
        borders = np.array([0, count])
    elif len(borders) <= _CHUNKS * workers:
        borders = np.arange(_CHUNKS * workers + 1) * count // (_CHUNKS * workers)
    chunks = WorkChunks(first + borders)
    found = [nearest, *(nearest.bounds() for _ in range(1, workers))]
    call_all([partial(prepared.keep, each.heaps, chunks) for each in found])
    for other in found[1:]:
        nearest.join_beyond(other)


def _keep_by_query(asks: QueryBatch, pairs: Pairs, nearest: TopKHeaps, workers: int) -> None:
    """Let workers have chunks of pairs, each of some of the queries."""
    prepared = asks.prepare(pairs)
    chunks = WorkChunks(_borders_of_queries(pairs, prepared.chunk_pairs, workers))
    call_all([partial(prepared.keep, nearest.heaps, chunks) for _ in range(workers)])


def _borders_of_queries(pairs: Pairs, chunk_pairs: int, workers: int) -> Int64Array:
    """Return where chunks of pairs, which come by query, begin and end: with about so many pairs each."""
    starts = run_starts(pairs.queries).nonzero()[0]
    count = len(pairs.queries)
    if chunk_pairs > 1:  # as many for each worker
        chunks = workers * -(-count // (workers * chunk_pairs))
        evenly = np.arange(chunks) * count // chunks
        starts = starts[np.unique(starts.searchsorted(evenly, "right") - 1)]
    return np.append(starts, count)
