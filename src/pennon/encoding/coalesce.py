"""Fewer, longer requests where a reader would make many small ones.

One value may lie in three places: the validity of its list items, that of the list, and the value.
Stores merge what lies close together anyway; a point read may also pay for a longer gap, to stay
within the number of requests that Pennon promises (two for one row of one column).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, TypeVar

import pyarrow as pa

from pennon.core.byte_ranges import ByteRequest, Extent
from pennon.core.units import MIB
from pennon.encoding.read_protocol import Steps

T = TypeVar("T")

LONGEST_GAP: Final = 3 * MIB // 2
"""Bytes that may be read in vain to save a request: what a connection brings while one waits."""

FEW_ROWS: Final = 1024
"""Reads of no more rows than this are point reads; for others there is nothing to save."""


def frugal(reader: Steps[T], budget: int) -> Steps[T]:
    """Run a reader, but let it make no more than ``budget`` requests a round, if gaps allow it.

    Only rounds of extents are touched: a `Gather` is many requests anyway.
    """
    answers: list[pa.Buffer] | None = None
    while True:
        try:
            requests = next(reader) if answers is None else reader.send(answers)
        except StopIteration as stop:
            result: T = stop.value
            return result
        extents = [request for request in requests if isinstance(request, Extent)]
        if len(requests) <= budget or len(extents) < len(requests):
            answers = yield requests
        else:
            answers = yield from _read_merged(extents, budget)


def _read_merged(extents: Sequence[Extent], budget: int) -> Steps[list[pa.Buffer]]:
    runs = merge(extents, budget)
    buffers = yield list[ByteRequest](runs)
    answers = []
    for extent in extents:
        run, buffer = next(
            both for both in zip(runs, buffers, strict=True) if _holds(both[0], extent)
        )
        answers.append(buffer.slice(extent.position - run.position, extent.size_bytes))
    return answers


def merge(extents: Sequence[Extent], budget: int) -> list[Extent]:
    """Return runs that cover the extents: ``budget`` of them, unless that leaves too long gaps."""
    ordered = sorted(extents, key=lambda extent: (extent.position, extent.end))
    runs = [ordered[0]]
    for extent in ordered[1:]:
        runs.append(extent)
        if extent.position < runs[-2].end:
            _join(runs, len(runs) - 2)
    while len(runs) > budget:
        gaps = [after.position - run.end for run, after in pairwise(runs)]
        narrowest = min(range(len(gaps)), key=gaps.__getitem__)
        if gaps[narrowest] > LONGEST_GAP:
            break
        _join(runs, narrowest)
    return runs


def _join(runs: list[Extent], number: int) -> None:
    """Replace a run and the one after it by one that covers both."""
    start = runs[number].position
    end = max(runs[number].end, runs[number + 1].end)
    runs[number : number + 2] = [Extent(start, end - start)]


def _holds(run: Extent, extent: Extent) -> bool:
    return run.position <= extent.position and extent.end <= run.end
