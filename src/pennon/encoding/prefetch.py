"""One longer read in place of several rounds.

A store that is far away takes some 30 ms to answer anything, and in that time a connection brings
1.5 MiB.  So if all the bytes that a few rows may need lie within that much, reading them all at once
is no slower than asking for the offsets first and for the values then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import ByteRequest, Extent
from pennon.core.units import MIB
from pennon.encoding.kernels.gather import gather
from pennon.encoding.read_protocol import Steps

T = TypeVar("T")

LONGEST_PREFETCH: Final = 3 * MIB // 2


def hull(ranges: Iterable[tuple[int, int]], longest: int = LONGEST_PREFETCH) -> Extent | None:
    """Return the extent that covers all ranges (start, end); None if it is too long, or empty."""
    low, high = -1, -1
    for start, end in ranges:
        low = start if low < 0 else min(low, start)
        high = max(high, end)
        if high - low > longest:
            return None
    return Extent(low, high - low) if high > low else None


def prefetched(reader: Steps[T], extent: Extent) -> Steps[T]:
    """Run a reader on the bytes of ``extent``, read at once; other requests are passed on."""
    (data,) = yield [extent]
    return (yield from answered(reader, extent, data))


def answered(reader: Steps[T], extent: Extent, data: pa.Buffer) -> Steps[T]:
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


def _find(request: ByteRequest, extent: Extent, data: pa.Buffer) -> pa.Buffer | None:
    """Return the answer to a request, if all of it lies in the extent."""
    if isinstance(request, Extent):
        if request.position < extent.position or request.end > extent.end:
            return None
        return data.slice(request.position - extent.position, request.size_bytes)
    if len(request.starts) == 0:
        return data.slice(0, 0)
    if int(request.starts.min()) < extent.position or int(request.ends.max()) > extent.end:
        return None
    target = pa.allocate_buffer(int((request.ends - request.starts).sum()))
    gather(
        np.frombuffer(data, np.uint8),
        request.starts - extent.position,
        request.ends - extent.position,
        np.frombuffer(target, np.uint8),
    )
    return target
