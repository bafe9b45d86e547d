"""A store that counts: verbs, rounds, requests and bytes."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from pennon.core.byte_ranges import ByteRequest
from pennon.io.fetch import plan_fetch
from pennon.io.limits import OBJECT_STORE, FetchLimits
from pennon.io.store import Store
from pennon.testing.wrapped import Data, WrappedStore


@dataclass(slots=True)
class Counts:
    """The requests to a store since the last `CountingStore.reset`.

    ``rounds`` are calls of ``read`` that asked for at least one byte.  ``requests`` are what a
    remote store would have got for them, ranges that lie close coalesced; ``read_bytes`` are the
    bytes of those, holes included, ``asked_bytes`` those without.  ``verbs`` counts every call by
    name.
    """

    rounds: int = 0
    requests: int = 0
    read_bytes: int = 0
    asked_bytes: int = 0
    written_bytes: int = 0
    verbs: Counter[str] = field(default_factory=Counter)

    def add_round(self, requests: int, read_bytes: int, asked_bytes: int) -> None:
        """Count one round of reads."""
        self.rounds += 1
        self.requests += requests
        self.read_bytes += read_bytes
        self.asked_bytes += asked_bytes


class CountingStore(WrappedStore):
    """Counts rounds, requests and bytes: ``counts`` of all, ``by_path`` of each path."""

    def __init__(self, inner: Store, limits: FetchLimits | None = None) -> None:
        super().__init__(inner)
        self._limits = limits or inner.limits or OBJECT_STORE
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Start again from nothing."""
        with self._lock:
            self.counts = Counts()
            self.by_path: dict[str, Counts] = {}

    def before(self, verb: str, path: str) -> None:
        """Count a verb."""
        with self._lock:
            for counts in (self.counts, self._of(path)):
                counts.verbs[verb] += 1

    def around_read(self, path: str, requests: Sequence[ByteRequest]) -> None:
        """Count one round."""
        plan = plan_fetch(requests, self._limits)
        if not plan.groups:
            return
        exact = plan_fetch(requests, FetchLimits(0, self._limits.request_bytes))
        with self._lock:
            for counts in (self.counts, self._of(path)):
                counts.add_round(plan.count, plan.size_bytes, exact.size_bytes)

    def cut(self, path: str, data: Data) -> Data:
        """Count bytes written to an object; they all arrive."""
        with self._lock:
            for counts in (self.counts, self._of(path)):
                counts.written_bytes += memoryview(data).nbytes
        return data

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Write an object whole, unless the name is taken; its bytes are counted."""
        super().put_if_absent(path, bytes(self.cut(path, data)))

    def _of(self, path: str) -> Counts:
        return self.by_path.setdefault(path, Counts())
