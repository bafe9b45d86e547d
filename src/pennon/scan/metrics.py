"""Metrics of a scan: what it reads is counted where it is read, at the data files, and told."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import ByteRequest, Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.file.container.file import DataFile
from pennon.index.files import Remember
from pennon.io.fetch import plan_fetch
from pennon.io.limits import OBJECT_STORE, FetchLimits
from pennon.io.store import ObjectReader, ReaderAround
from pennon.scan.session import OpenFile

T = TypeVar("T")

_INDICES: Final = "_indices/"
_NOT_READ: Final = frozenset({"index", "scored", "placed"})
"""Keys of what is no part that was read: an index, and what was computed of its parts."""
_LOG: Final = logging.getLogger(__name__)
_EXACT: Final = FetchLimits(gap_bytes=0, request_bytes=1 << 62)


@dataclass(slots=True)
class Meter:
    """A counter of the bytes and requests of a scan so far.

    ``rounds`` are reads that asked for at least one byte, ``requests`` what a store gets for them:
    ranges that lie close are one request (a local file has none; what an object store would get is
    counted).  ``asked_bytes`` are those of the ranges, ``read_bytes`` those of the requests.
    ``rows_tested`` are the rows for which a condition was evaluated, ``rows_kept`` those that passed.
    ``remembers``: parts of indices that are known are not read again; else all are, so that what is counted is what
    a search costs.  ``index_rounds`` and ``index_bytes`` are those of the files of indices, which are among the
    others; ``index_rows`` are the rows that indices left of a filter's, ``compared`` those that a search in text
    scored, and that may be found.
    """

    limits: FetchLimits | None = None
    remembers: bool = False
    rounds: int = 0
    requests: int = 0
    asked_bytes: int = 0
    read_bytes: int = 0
    rows_tested: int = 0
    rows_kept: int = 0
    indices_loaded: int = 0
    parts_loaded: int = 0
    parts_known: int = 0
    index_rounds: int = 0
    index_bytes: int = 0
    index_rows: int = 0
    compared: int = 0
    _files: dict[str, OpenFile] = field(default_factory=dict, repr=False)
    _starts: dict[str, list[Int64Array]] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def around(self, opened: OpenFile) -> OpenFile:
        """Return a data file whose reads are counted."""
        with self._lock:
            self._files[opened.source.path] = opened
        return OpenFile(opened.data, _MeteredReader(opened.source, self))

    def count(self, path: str, requests: Sequence[ByteRequest]) -> None:
        """Count one round of reads."""
        exact = plan_fetch(requests, _EXACT)
        if not exact.groups:
            return
        plan = plan_fetch(requests, self.limits or OBJECT_STORE)
        starts = np.array([group.position for group in exact.groups], np.int64)
        with self._lock:
            self.rounds += 1
            self.requests += plan.count
            self.asked_bytes += exact.size_bytes
            self.read_bytes += plan.size_bytes
            if _INDICES in path:
                self.index_rounds += 1
                self.index_bytes += plan.size_bytes
            self._starts.setdefault(path, []).append(starts)

    def part(
        self,
        remember: Remember,
        key: tuple[object, ...],
        make: Callable[[], T],
        weigh: Callable[[T], int],
    ) -> T:
        """Return a part of an index, and count whether it was known; the key of a whole one begins with ``index``.

        None is no part, and not counted.
        """
        made: list[T] = []

        def make_now() -> T:
            made.append(make())
            return made[0]

        found = remember(key, make_now, weigh) if self.remembers else make_now()
        if found is None:
            return found
        with self._lock:
            self.indices_loaded += bool(made) and key[0] == "index"
            self.parts_loaded += bool(made) and key[0] not in _NOT_READ
            self.parts_known += not made
        return found

    def leave(self, rows: int) -> None:
        """Count rows that an index left."""
        with self._lock:
            self.index_rows += rows

    def compare(self, rows: int) -> None:
        """Count rows that a search compared with what it is for."""
        with self._lock:
            self.compared += rows

    def test(self, rows: int, kept: int) -> None:
        """Count rows that a condition was evaluated for, and those that passed."""
        with self._lock:
            self.rows_tested += rows
            self.rows_kept += kept

    @property
    def files(self) -> int:
        """Return how many data files were read from."""
        return len(self._starts)

    @property
    def pages(self) -> int:
        """Return how many pages were read from; those of indices and of files of version 0.1 are not counted."""
        found = 0
        for path, starts in self._starts.items():
            data = self._files[path].data if path in self._files else None
            if isinstance(data, DataFile):
                found += _pages_at(data, np.unique(np.concatenate(starts)))
        return found


@dataclass(frozen=True, slots=True)
class ScanStatistics:
    """The statistics of a scan for a callback; pylance's names.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> found = []
    >>> _ = ds.to_table(scan_stats_callback=found.append)
    >>> found[0].iops > 0, found[0].bytes_read > 0
    (True, True)
    """

    iops: int
    requests: int
    bytes_read: int
    indices_loaded: int = 0
    parts_loaded: int = 0
    index_comparisons: int = 0
    index_cache_hits: int = 0
    index_cache_misses: int = 0
    all_counts: dict[str, int] = field(default_factory=dict)
    all_times: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, meter: Meter) -> ScanStatistics:
        """Return what a meter counted."""
        counts = {"files_read": meter.files, "pages_read": meter.pages}
        return cls(
            meter.rounds,
            meter.requests,
            meter.read_bytes,
            meter.indices_loaded,
            meter.parts_loaded,
            meter.compared,
            index_cache_hits=meter.parts_known,
            index_cache_misses=meter.indices_loaded + meter.parts_loaded,
            all_counts=counts,
        )


@contextmanager
def reporting(meter: Meter, callback: Callable[[ScanStatistics], object]) -> Iterator[None]:
    """Call the callback with the statistics of the scan after the block; errors of the callback are logged."""
    yield
    try:
        callback(ScanStatistics.of(meter))
    except Exception:  # noqa: BLE001 - whatever the callback raises
        _LOG.exception("scan_stats_callback failed")


class _MeteredReader(ReaderAround):
    """An `ObjectReader` that tells a meter of every round."""

    def __init__(self, inner: ObjectReader, meter: Meter) -> None:
        super().__init__(inner)
        self._meter = meter

    def read(self, requests: Sequence[ByteRequest]) -> list[pa.Buffer]:
        self._meter.count(self.path, requests)
        return self._inner.read(requests)


def _pages_at(data: DataFile, positions: Int64Array) -> int:
    """Return how many pages have a buffer with one of these positions, which are sorted."""
    found = 0
    for index in range(data.num_columns):
        column = data.known_column(index)
        for page in column.pages if column is not None else ():
            bounds = [(each.position, each.end) for each in page.buffers if each.size_bytes]
            low = np.searchsorted(positions, [start for start, _ in bounds])
            high = np.searchsorted(positions, [end for _, end in bounds])
            found += bool((high > low).any())
    return found
