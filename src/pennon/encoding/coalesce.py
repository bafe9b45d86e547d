"""Fewer, longer requests where a reader would make many small ones, or many rounds.

One value may lie in three places: the validity of its list items, that of the list, and the value.
Stores merge what lies close together anyway; a point read may also pay for a longer gap, to stay
within the number of requests that Pennon promises (two for one row of one column).  And if all the
bytes that a few rows may need lie close together, reading them at once is no slower than asking for the
offsets first and for the values then.

File versions 0.1 and 2.0 need this.  Pages of 2.1 say where their chunks lie, so that a reader asks for
just these (`pennon.encoding.v2_1.strategy`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import ByteRange, ByteRequest
from pennon.core.kernels.gather import gather
from pennon.core.memory import allocate_buffer
from pennon.core.units import MIB
from pennon.encoding.read_protocol import Steps

T = TypeVar("T")

LONGEST_GAP: Final = 3 * MIB // 2
"""Bytes that may be read in vain to save a request, or a round.

A store that is far away takes some 30 ms to answer anything; a connection brings as much in that time.
"""

FEW_ROWS: Final = 1024
"""Reads of no more rows than this are point reads; for others there is nothing to save."""


def describe_rows(rows: int, pages: str, longest: int = LONGEST_GAP) -> str:
    """Return in words how so many rows of ``pages`` are read, and why."""
    if not rows:
        return "nothing to read"
    if rows > FEW_ROWS:
        return f"pages side by side ({pages}): more than {FEW_ROWS} rows"
    words = f"up to {FEW_ROWS} rows, gaps of up to {longest / MIB:g} MiB"
    return f"point read, in as few requests as gaps allow ({pages}): {words}"


def coalesce_requests(reader: Steps[T], budget: int) -> Steps[T]:
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
        extents = [request for request in requests if isinstance(request, ByteRange)]
        if len(requests) <= budget or len(extents) < len(requests):
            answers = yield requests
        else:
            answers = yield from _read_merged(extents, budget)


def _read_merged(extents: Sequence[ByteRange], budget: int) -> Steps[list[pa.Buffer]]:
    runs = merge(extents, budget)
    buffers = yield list[ByteRequest](runs)
    answers = []
    for extent in extents:
        run, buffer = next(
            both for both in zip(runs, buffers, strict=True) if _holds(both[0], extent)
        )
        answers.append(buffer.slice(extent.position - run.position, extent.size_bytes))
    return answers


def merge(extents: Sequence[ByteRange], budget: int) -> list[ByteRange]:
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


def _join(runs: list[ByteRange], number: int) -> None:
    """Replace a run and the one after it by one that covers both."""
    start = runs[number].position
    end = max(runs[number].end, runs[number + 1].end)
    runs[number : number + 2] = [ByteRange(start, end - start)]


def _holds(run: ByteRange, extent: ByteRange) -> bool:
    return run.position <= extent.position and extent.end <= run.end


def hull(ranges: Iterable[tuple[int, int]], longest: int = LONGEST_GAP) -> ByteRange | None:
    """Return the extent that covers all ranges (start, end); None if it is too long, or empty."""
    low, high = -1, -1
    for start, end in ranges:
        low = start if low < 0 else min(low, start)
        high = max(high, end)
        if high - low > longest:
            return None
    return ByteRange(low, high - low) if high > low else None


def prefetched(reader: Steps[T], extent: ByteRange) -> Steps[T]:
    """Run a reader on the bytes of ``extent``, read at once; other requests are passed on."""
    (data,) = yield [extent]
    return (yield from answered(reader, extent, data))


def answered(reader: Steps[T], extent: ByteRange, data: pa.Buffer) -> Steps[T]:
    """Run a reader on the bytes of ``extent``, which are at hand; other requests are passed on."""
    answers: list[pa.Buffer] | None = None
    while True:
        try:
            requests = next(reader) if answers is None else reader.send(answers)
        except StopIteration as stop:
            result: T = stop.value
            return result
        found = [_find(request, extent, data) for request in requests]
        answers = [buffer for buffer in found if buffer is not None]
        if len(answers) < len(requests):
            answers = yield requests


def _find(request: ByteRequest, extent: ByteRange, data: pa.Buffer) -> pa.Buffer | None:
    """Return the answer to a request, if all of it lies in the extent."""
    if isinstance(request, ByteRange):
        if request.position < extent.position or request.end > extent.end:
            return None
        return data.slice(request.position - extent.position, request.size_bytes)
    if len(request.starts) == 0:
        return data.slice(0, 0)
    if int(request.starts.min()) < extent.position or int(request.ends.max()) > extent.end:
        return None
    target = allocate_buffer(int((request.ends - request.starts).sum()))
    gather(
        np.frombuffer(data, np.uint8),
        request.starts - extent.position,
        request.ends - extent.position,
        np.frombuffer(target, np.uint8),
    )
    return target
