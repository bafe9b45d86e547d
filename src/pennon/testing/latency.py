"""A store that is far away: every request takes its time, and the line carries only so much."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from typing import Protocol

from pennon.core.byte_ranges import ByteRequest
from pennon.io.fetch import plan_fetch
from pennon.io.limits import OBJECT_STORE, FetchLimits
from pennon.io.store import ObjectReader, Store
from pennon.testing.wrapped import WrappedStore


class Clock(Protocol):
    """A clock with a sleep."""

    def now(self) -> float:
        """Return the seconds since some moment."""

    def sleep(self, seconds: float) -> None:
        """Let time pass."""


class RealClock:
    """The clock of the machine."""

    def now(self) -> float:
        """Return the seconds since some moment."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class VirtualClock:
    """A clock without waiting: a sleep sets it forward.

    For tests on one thread.  Threads that sleep at once would add their times up.
    """

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        """Return the seconds slept so far."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Set the clock forward."""
        self._now += seconds


class LatencyStore(WrappedStore):
    """Makes any store a remote one: every request takes ``seconds``, and all share one line.

    A round waits once, because its requests run at once, and once more for every
    ``limits.concurrency`` of them; then its bytes come, ``bytes_per_second`` of them, after those
    that were asked for before.  To open an object whose size is known is no request.
    """

    def __init__(
        self,
        inner: Store,
        seconds: float = 0.03,
        bytes_per_second: float = math.inf,
        limits: FetchLimits = OBJECT_STORE,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(inner)
        self._limits = limits
        self._clock = clock or RealClock()
        self._seconds = seconds
        self._bytes_per_second = bytes_per_second
        self._lock = threading.Lock()
        self._line_is_free = self._clock.now()

    @property
    def limits(self) -> FetchLimits:
        """Return the limits of the store that this one plays."""
        return self._limits

    def is_mapped(self, inner: ObjectReader) -> bool:  # noqa: ARG002
        """Return False: every range costs a request or a part of one."""
        return False

    def open(self, path: str, size_bytes: int | None = None) -> ObjectReader:
        """Open an object; this waits if the size has to be asked for."""
        if size_bytes is None:
            self._clock.sleep(self._seconds)
        return super().open(path, size_bytes)

    def before(self, verb: str, path: str) -> None:  # noqa: ARG002
        """Wait for one answer; reads wait in `around_read`, and writes into a buffer do not."""
        if verb not in {"open", "read", "write", "open_writer"}:
            self._clock.sleep(self._seconds)

    def around_read(self, path: str, requests: Sequence[ByteRequest]) -> None:  # noqa: ARG002
        """Wait for one round."""
        plan = plan_fetch(requests, self._limits)
        if not plan.count:
            return
        waves = -(-plan.count // self._limits.concurrency)
        with self._lock:
            now = self._clock.now()
            begun = max(self._line_is_free, now + self._seconds)
            self._line_is_free = begun + plan.size_bytes / self._bytes_per_second
            end = max(self._line_is_free, now + waves * self._seconds)
        self._clock.sleep(end - now)
