"""An object whose end was read already: what lies there is not asked for again.

Opening a data file of a remote store reads its last 64 KiB.  A small file lies there whole, and so
do the last pages of a larger one.

    object    [-----------------------------------|~~~~~~~~~]
              0                                   first     size_bytes
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from pennon.core.byte_ranges import ByteRange, ByteRequest, Gather
from pennon.core.kernels.gather import gather
from pennon.core.memory import allocate_buffer
from pennon.io.mapped import as_ranges, byte_view, check_gather
from pennon.io.store import ObjectReader, ReaderAround


class KnownEnd(ReaderAround):
    """An `ObjectReader` that has all bytes from ``first`` on in ``end``."""

    __slots__ = ("_end", "_first")

    def __init__(self, inner: ObjectReader, first: int, end: pa.Buffer) -> None:
        super().__init__(inner)
        self._first = first
        self._end = end

    @property
    def size_bytes(self) -> int:
        """Return the object's size."""
        return self._first + int(self._end.size)

    def read(self, requests: Sequence[ByteRequest]) -> list[pa.Buffer]:
        """Answer one round of requests; the store is asked for what is not at hand only."""
        held = [self._holds(request) for request in requests]
        if all(held):
            return [self._answer(request) for request in requests]
        outside = [request for request, is_held in zip(requests, held, strict=True) if not is_held]
        answers = iter(self._inner.read(outside))
        return [
            self._answer(request) if is_held else next(answers)
            for request, is_held in zip(requests, held, strict=True)
        ]

    def __reduce__(self) -> tuple[type[KnownEnd], tuple[ObjectReader, int, pa.Buffer]]:
        """Pickle with what is known."""
        return KnownEnd, (self._inner, self._first, self._end)

    def _holds(self, request: ByteRequest) -> bool:
        """Tell whether all of a request is at hand; what is not within the object is not."""
        if isinstance(request, ByteRange):
            return self._first <= request.position <= request.end <= self.size_bytes
        starts, ends = as_ranges(request)
        if not len(starts):
            return True
        return self._first <= int(starts.min()) and int(ends.max()) <= self.size_bytes

    def _answer(self, request: ByteRequest) -> pa.Buffer:
        if isinstance(request, ByteRange):
            return self._end.slice(request.position - self._first, request.size_bytes)
        return self._gather(request)

    def _gather(self, request: Gather) -> pa.Buffer:
        target = allocate_buffer(check_gather(request, self.size_bytes, self.path))
        starts, ends = as_ranges(request)
        gather(byte_view(self._end), starts - self._first, ends - self._first, byte_view(target))
        return target
