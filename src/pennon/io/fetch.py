"""From the byte ranges that a round asks for to the requests that a remote store gets.

A request to a remote store costs some 30 ms, whatever its size, and a connection then delivers some
50 bytes per microsecond.  So ranges that lie close to each other are read in one request, holes
included, and long runs are read in several at once:

    asked     [--A--]  [-B-]            [-----------C-----------]
    groups    [------------]            [-----------------------]     holes below the gap are read
    requests  [------------]            [-------][-------][-----]     none is longer than the limit

`plan_fetch` is pure, and its result can be printed and compared.  `Fetcher` does what a plan says,
on threads (`pennon.core.thread_pools`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import ByteRange, ByteRequest, Gather, Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.kernels.gather import scatter
from pennon.core.memory import allocate_buffer
from pennon.core.thread_pools import PoolSpec, map_all
from pennon.io.limits import FetchLimits
from pennon.io.mapped import as_ranges, byte_view, check_extent, check_gather

ReadExtent = Callable[[ByteRange], pa.Buffer]
_ALIGNMENT = 8
"""Whoever asks for a gather may take the answer for numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class FetchPlan:
    """The byte ranges to read in one round.

    ``groups`` are sorted, disjoint runs of the object; ``requests[g]`` are the extents that group g
    is read in, front to back.
    """

    groups: tuple[ByteRange, ...]
    requests: tuple[tuple[ByteRange, ...], ...]

    @property
    def count(self) -> int:
        """Return the number of requests to the store."""
        return sum(len(extents) for extents in self.requests)

    @property
    def size_bytes(self) -> int:
        """Return the number of bytes read, holes included."""
        return sum(group.size_bytes for group in self.groups)


def plan_fetch(requests: Sequence[ByteRequest], limits: FetchLimits) -> FetchPlan:
    """Return the requests that answer one round; empty ranges are not read."""
    starts, ends = _coalesce(*_flatten(requests), limits.gap_bytes)
    groups = tuple(
        ByteRange(start, end - start)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    )
    return FetchPlan(groups, tuple(_split(group, limits.request_bytes) for group in groups))


def _flatten(requests: Sequence[ByteRequest]) -> tuple[Int64Array, Int64Array]:
    """Return the starts and ends of all ranges that are not empty."""
    ranges = [
        (np.array([request.position]), np.array([request.end]))
        if isinstance(request, ByteRange)
        else as_ranges(request)
        for request in requests
    ]
    if not ranges:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    starts = np.concatenate([one for one, _ in ranges])
    ends = np.concatenate([one for _, one in ranges])
    filled = ends > starts
    return starts[filled], ends[filled]


def _coalesce(starts: Int64Array, ends: Int64Array, gap: int) -> tuple[Int64Array, Int64Array]:
    """Return sorted, disjoint runs that cover all ranges, more than ``gap`` bytes apart."""
    if not len(starts):
        return starts, ends
    order = np.argsort(starts, kind="stable")
    starts = starts[order]
    reach = np.maximum.accumulate(ends[order])
    first = np.empty(len(starts), np.bool_)
    first[0] = True
    first[1:] = starts[1:] - reach[:-1] > gap
    last = np.append(first[1:], True)
    return starts[first], reach[last]


def _split(group: ByteRange, limit: int) -> tuple[ByteRange, ...]:
    """Return ``group`` in as few parts as ``limit`` allows, of nearly equal size."""
    parts = -(-group.size_bytes // limit)
    cuts = [group.position + group.size_bytes * part // parts for part in range(parts + 1)]
    return tuple(ByteRange(start, end - start) for start, end in pairwise(cuts))


class Fetcher:
    """Answers the rounds of one object."""

    __slots__ = ("_limits", "_path", "_read", "_size_bytes")

    def __init__(self, path: str, size_bytes: int, limits: FetchLimits, read: ReadExtent) -> None:
        self._path = path
        self._size_bytes = size_bytes
        self._limits = limits
        self._read = read

    def fetch(self, requests: Sequence[ByteRequest]) -> list[pa.Buffer]:
        """Answer one round; all ranges are checked before the first byte is asked for."""
        sizes = [self._checked_size(request) for request in requests]
        plan = plan_fetch(requests, self._limits)
        buffers = self._read_groups(plan)
        starts = np.array([group.position for group in plan.groups], np.int64)
        return [
            _slice(request, starts, buffers)
            if isinstance(request, ByteRange)
            else _pack(request, size, starts, buffers)
            for request, size in zip(requests, sizes, strict=True)
        ]

    def _checked_size(self, request: ByteRequest) -> int:
        if isinstance(request, ByteRange):
            check_extent(request, self._size_bytes, self._path)
            return request.size_bytes
        return check_gather(request, self._size_bytes, self._path)

    def _read_groups(self, plan: FetchPlan) -> list[pa.Buffer]:
        """Read the groups; the parts of a long one go to their places as they come."""
        wholes = [
            allocate_buffer(group.size_bytes) if len(parts) > 1 else None
            for group, parts in zip(plan.groups, plan.requests, strict=True)
        ]
        parts = [
            _Part(part, part.position - group.position, whole)
            for group, whole, extents in zip(plan.groups, wholes, plan.requests, strict=True)
            for part in extents
        ]
        pool_spec = PoolSpec.requests(self._limits.concurrency)
        read = iter(map_all(self._read_part, parts, pool_spec))
        answers = [[next(read) for _ in extents] for extents in plan.requests]
        return [answer[0] for answer in answers]

    def _read_part(self, part: _Part) -> pa.Buffer:
        """Return the group of a part, or as much of it as is there."""
        buffer = self._read(part.extent)
        if part.whole is None:
            return buffer
        byte_view(part.whole)[part.offset : part.offset + buffer.size] = byte_view(buffer)
        return part.whole


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A request, and where in a group of several its bytes belong."""

    extent: ByteRange
    offset: int
    whole: pa.Buffer | None


def _slice(extent: ByteRange, starts: Int64Array, buffers: list[pa.Buffer]) -> pa.Buffer:
    if extent.size_bytes == 0:
        return pa.py_buffer(b"")
    group = int(np.searchsorted(starts, extent.position, side="right")) - 1
    return buffers[group].slice(extent.position - int(starts[group]), extent.size_bytes)


def _pack(
    request: Gather, size_bytes: int, starts: Int64Array, buffers: list[pa.Buffer]
) -> pa.Buffer:
    """Return the ranges of a gather, packed.

    They are copied from the groups that they lie in, by one kernel call for each, unless they lie
    packed already.
    """
    range_starts, range_ends = as_ranges(request)
    if size_bytes and (range_starts[1:] == range_ends[:-1]).all():
        packed = _slice(ByteRange(int(range_starts[0]), size_bytes), starts, buffers)
        if packed.address % _ALIGNMENT == 0:
            return packed
    target = allocate_buffer(size_bytes)
    out = byte_view(target)
    sizes = range_ends - range_starts
    targets = np.cumsum(sizes) - sizes
    filled = np.flatnonzero(sizes)
    group_of = np.searchsorted(starts, range_starts[filled], side="right") - 1
    order = np.argsort(group_of, kind="stable")
    filled, group_of = filled[order], group_of[order]
    cuts = np.flatnonzero(np.diff(group_of)) + 1
    for mine in np.split(filled, cuts) if len(filled) else []:
        group = int(np.searchsorted(starts, range_starts[mine[0]], side="right")) - 1
        source = byte_view(buffers[group])
        scatter(source, range_starts[mine] - starts[group], targets[mine], sizes[mine], out)
    return target
