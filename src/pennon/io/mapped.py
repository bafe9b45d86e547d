"""Readers of bytes that are already addressable: a memory map, or memory itself.

A contiguous range is a slice of one buffer and costs nothing.  Many ranges are copied by one kernel
call, without the GIL, straight out of the page cache; of large tables past the map
(`pennon.io.pread`).

Data files never change once they have their name.  If another program cuts a mapped file short all
the same, the system ends the process that touches the lost bytes; that is the price of the map.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import ByteRange, ByteRequest, Gather, Int64Array, SparseRead
from pennon.core.io_counters import READ
from pennon.core.kernels.gather import gather, total_size
from pennon.core.kernels.mapping import Mapping
from pennon.core.memory import allocate_buffer
from pennon.core.telemetry import REQUEST_BYTES, REQUESTS, TELEMETRY, series
from pennon.core.units import MIB
from pennon.errors import ArgumentError, Breadcrumb, FormatError, TooLargeError
from pennon.io.map_budget import LONG_BYTES, TOUCH_BYTES, keeps_account, touch
from pennon.io.pread import FAR_BYTES, FileBehind, is_sparse

if TYPE_CHECKING:
    from pennon.io.store import Opens

_SPARE_BYTES = 64 * MIB


def byte_view(buffer: pa.Buffer) -> npt.NDArray[np.uint8]:
    """Return a buffer's bytes as an array, without a copy; writable if the buffer is."""
    return np.frombuffer(memoryview(buffer), np.uint8)


def as_ranges(request: Gather) -> tuple[Int64Array, Int64Array]:
    """Return the starts and ends of a gather as arrays that lie in one piece."""
    starts = np.ascontiguousarray(request.starts, np.int64)
    ends = np.ascontiguousarray(request.ends, np.int64)
    if starts.ndim != 1 or starts.shape != ends.shape:
        message = "starts and ends of a gather must be two arrays of one length"
        raise ArgumentError(message)
    return starts, ends


def check_extent(extent: ByteRange, size_bytes: int, path: str) -> None:
    """Raise FormatError unless ``extent`` lies in an object of ``size_bytes``."""
    position = extent.position
    if position < 0 or extent.size_bytes < 0 or position + extent.size_bytes > size_bytes:
        message = f"a range leaves the object, which has {size_bytes} bytes"
        place = Breadcrumb(path, byte_range=(extent.position, extent.end))
        raise FormatError(message, where=place)


def check_gather(request: Gather, size_bytes: int, path: str) -> int:
    """Return the size of the answer to ``request``, in bytes; raises as `check_ranges` does."""
    return check_ranges(*as_ranges(request), size_bytes, path)


def check_ranges(starts: Int64Array, ends: Int64Array, size_bytes: int, path: str) -> int:
    """Return how many bytes ranges of an object have together.

    They may overlap, but an honest reader asks for no byte more than twice: an offset is the end
    of one value and the start of the next.  What asks for more is refused before it is allocated.
    Raises FormatError, TooLargeError.
    """
    try:
        total = total_size(starts, ends, size_bytes)
    except ValueError as error:
        raise FormatError(str(error), where=Breadcrumb(path)) from None
    if total > 2 * size_bytes + _SPARE_BYTES:
        message = f"{total} bytes are asked of an object that has {size_bytes}"
        raise TooLargeError(message, where=Breadcrumb(path))
    return total


NEAR_BYTES: Final = 64 * MIB
"""A gather over no more than this is reckoned as if all of it were touched.

The system maps up to 2 MiB around each byte, so scattered rows may bring in nearly all; scans read
them stretch by stretch.  Rows all over a large file are reckoned at less, or a take of them would
push out what the takes before it left.
"""


GLIMPSE_PLACES: Final = 3
"""The end of a file, what describes a column, and where its chunks lie."""


def _cost(first: int, last: int, wanted_bytes: int, ranges: int) -> int:
    """Return what ranges of a map are reckoned at, of ``wanted_bytes`` together."""
    if last - first <= NEAR_BYTES:
        return last - first
    return min(wanted_bytes + TOUCH_BYTES * ranges, last - first)


_RANGES: Final = series(REQUESTS, operation="get", base="file")
_RANGE_BYTES: Final = series(REQUEST_BYTES, operation="get", base="file")


class MappedReader:
    """An `ObjectReader` over one buffer that holds the whole object."""

    __slots__ = (
        "__weakref__",
        "_behind",
        "_buffer",
        "_bytes",
        "_mapping",
        "_path",
        "_store",
        "identity",
    )

    def __init__(
        self,
        store: Opens,
        path: str,
        buffer: pa.Buffer,
        mapping: Mapping | None = None,
        behind: FileBehind | None = None,
        identity: Hashable = None,
    ) -> None:
        self.identity = identity
        """What tells the bytes from all others (`pennon.io.store.Opens.identity`), if it is known."""
        self._mapping = mapping
        self._behind = behind
        self._store = store
        self._path = path
        self._buffer = buffer
        self._bytes = byte_view(buffer)

    @property
    def path(self) -> str:
        """Return the path relative to the store's root."""
        return self._path

    @property
    def size_bytes(self) -> int:
        """Return the object's size."""
        return len(self._bytes)

    @property
    def is_mapped(self) -> bool:
        """Return True: a slice costs neither a copy nor I/O of its own."""
        return True

    def whole(self) -> npt.NDArray[np.uint8] | None:
        """Return all bytes, to look at a few; None while account is kept of what is looked at."""
        return None if keeps_account() else self._bytes

    def glimpse(self) -> npt.NDArray[np.uint8]:
        """Return all bytes, to look at a few in `GLIMPSE_PLACES` places; account is kept of these."""
        if self._mapping is not None and keeps_account():
            size_bytes = len(self._bytes)
            touch(self._mapping, 0, size_bytes, min(GLIMPSE_PLACES * TOUCH_BYTES, size_bytes))
        return self._bytes

    def look(self, starts: Int64Array, ends: Int64Array) -> npt.NDArray[np.uint8] | None:
        """Return all bytes, to look at ascending ranges; account is kept of these.

        None if the ranges leave the object, or lie so far apart that they are better read than looked at.
        """
        if not len(starts) or self._mapping is None:
            return self._bytes
        first, last = int(starts[0]), int(ends[-1])
        if not 0 <= first <= last <= len(self._bytes):
            return None
        cost = last - first
        if cost >= FAR_BYTES:
            total = int((ends - starts).sum())
            if self._behind is not None and is_sparse(first, last, total):
                return None
            cost = _cost(first, last, total, len(starts))
        touch(self._mapping, first, last, cost)
        return self._bytes

    def read(self, requests: Sequence[ByteRequest]) -> list[pa.Buffer]:
        """Answer one round of requests."""
        least = 0 if keeps_account() else LONG_BYTES  # shorter ranges are not noted
        found = [
            self._slice(request, least) if isinstance(request, ByteRange) else self._gather(request)
            for request in requests
        ]
        size_bytes = sum([buffer.size for buffer in found])
        READ.ranges += len(found)
        READ.size_bytes += size_bytes
        if TELEMETRY.recorder is not None:  # a map is not waited for: there is no time to tell
            TELEMETRY.recorder.add_to(_RANGES, len(found))
            TELEMETRY.recorder.add_to(_RANGE_BYTES, size_bytes)
        return found

    def _slice(self, extent: ByteRange, least: int) -> pa.Buffer:
        position, size_bytes = extent.position, extent.size_bytes
        check_extent(extent, len(self._bytes), self._path)
        if self._mapping is not None and size_bytes >= least:
            touch(self._mapping, position, position + size_bytes, size_bytes)
        return self._buffer.slice(position, size_bytes)

    def _gather(self, request: Gather) -> pa.Buffer:
        starts, ends = as_ranges(request)
        total = check_ranges(starts, ends, len(self._bytes), self._path)
        is_kept = keeps_account()
        if self._mapping is not None and (total >= LONG_BYTES or (is_kept and total)):
            first, last = int(starts.min()), int(ends.max())
            if is_kept and self._behind is not None and is_sparse(first, last, total):
                read = self._behind.gather(starts, ends, total)
                if read is not None:
                    return read
            touch(self._mapping, first, last, _cost(first, last, total, len(starts)))
        if isinstance(request, SparseRead):
            hull = request.hull
            return self._buffer.slice(hull.position, hull.size_bytes)
        target = allocate_buffer(total)
        gather(self._bytes, starts, ends, byte_view(target))
        return target

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Pickle as the place to open again, never as bytes."""
        return _open_again, (self._store, self._path)

    def __repr__(self) -> str:
        """Return the path and size."""
        return f"MappedReader({self._path!r}, {self.size_bytes} bytes)"


def _open_again(store: Opens, path: str) -> object:
    return store.open(path)


@runtime_checkable
class OpensMany(Protocol):
    """A store that opens many mapped objects at less than the cost of one each."""

    def open_all(self, paths: Sequence[str]) -> list[MappedReader | None]:
        """Return a reader of each object; None for one that ``open`` refuses."""


def open_all(store: Opens, paths: Sequence[str]) -> list[MappedReader | None]:
    """Return a reader of each object; all are None if the store is none that opens many."""
    return store.open_all(paths) if isinstance(store, OpensMany) else [None] * len(paths)
