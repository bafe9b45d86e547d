"""Stores that count, wait or fail, for tests of anything that reads and writes tables.

Each wraps any other store, and they stack:

    store = CountingStore(LatencyStore(MemoryStore("t"), wait=clock.sleep))
    ...
    assert store.counts.rounds <= 2

`MemoryStore` is here too, because a test wants it beside them.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, TypeAlias

import pyarrow as pa

from pennon.errors import StoreError
from pennon.io.fetch import FetchLimits, plan_fetch
from pennon.io.memory import MemoryStore
from pennon.io.store import ObjectInfo, ObjectReader, ObjectWriter, Store
from pennon.ranges import ByteRequest

__all__ = [
    "CountingStore",
    "Counts",
    "Fault",
    "FaultyStore",
    "LatencyStore",
    "MemoryStore",
    "WrappedStore",
]

Data: TypeAlias = pa.Buffer | bytes | memoryview


class WrappedStore:
    """A store that passes every verb on, after telling ``before(verb, path)`` of it.

    The base of all others here.  The verbs of a store are ``open``, ``list``, ``put``,
    ``put_if_absent``, ``delete`` and ``open_writer``; those of its objects are ``read`` (one
    round), ``write`` and ``close``.
    """

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    def before(self, verb: str, path: str) -> None:
        """Do nothing; called before each verb, and what it raises is what the caller sees."""

    def after(self, verb: str, path: str) -> None:
        """Do nothing; called after each verb that succeeded, and what it raises hides that."""

    def around_read(self, reader: ObjectReader, requests: Sequence[ByteRequest]) -> None:
        """Do nothing; called before each round of reads, after `before`."""

    def cut(self, path: str, data: Data) -> Data:  # noqa: ARG002
        """Return what of ``data`` reaches the object; a torn write is less than all."""
        return data

    @property
    def uri(self) -> str:
        """Return the wrapped store's URI."""
        return self.inner.uri

    def open(self, path: str, size_bytes: int | None = None) -> ObjectReader:
        """Open an object for reading."""
        self.before("open", path)
        reader = WrappedReader(self, self.inner.open(path, size_bytes))
        self.after("open", path)
        return reader

    def identity(self, path: str, size_bytes: int | None = None) -> Hashable:
        """Return an identity of this store's own, so that nothing is shared around it."""
        return self, self.inner.identity(path, size_bytes)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """List a folder; counted when the first name is asked for."""
        self.before("list", prefix)
        yield from self.inner.list(prefix)
        self.after("list", prefix)

    def list_names(self, prefix: str) -> Iterator[tuple[str, int | None]]:
        """List a folder; counted as `list`."""
        self.before("list", prefix)
        yield from self.inner.list_names(prefix)
        self.after("list", prefix)

    def open_writer(self, path: str) -> ObjectWriter:
        """Start a new object."""
        self.before("open_writer", path)
        writer = WrappedWriter(self, path, self.inner.open_writer(path))
        self.after("open_writer", path)
        return writer

    def put(self, path: str, data: bytes) -> None:
        """Write a small object whole."""
        self.before("put", path)
        self.inner.put(path, bytes(self.cut(path, data)))
        self.after("put", path)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Write an object whole, unless the name is taken."""
        self.before("put_if_absent", path)
        self.inner.put_if_absent(path, data)
        self.after("put_if_absent", path)

    def delete(self, path: str) -> None:
        """Delete an object."""
        self.before("delete", path)
        self.inner.delete(path)
        self.after("delete", path)


class WrappedReader:
    """An `ObjectReader` that tells its store of every round."""

    def __init__(self, store: WrappedStore, inner: ObjectReader) -> None:
        self._store = store
        self._inner = inner

    @property
    def path(self) -> str:
        """Return the path relative to the store's root."""
        return self._inner.path

    @property
    def size_bytes(self) -> int:
        """Return the object's size."""
        return self._inner.size_bytes

    @property
    def is_mapped(self) -> bool:
        """Return what the wrapped reader says."""
        return self._inner.is_mapped

    def read(self, requests: Sequence[ByteRequest]) -> list[pa.Buffer]:
        """Answer one round of requests."""
        self._store.before("read", self.path)
        self._store.around_read(self._inner, requests)
        answers = self._inner.read(requests)
        self._store.after("read", self.path)
        return answers


class WrappedWriter:
    """An `ObjectWriter` that tells its store of every call."""

    def __init__(self, store: WrappedStore, path: str, inner: ObjectWriter) -> None:
        self._store = store
        self._path = path
        self._inner = inner

    def write(self, data: Data) -> None:
        """Append bytes."""
        self._store.before("write", self._path)
        self._inner.write(self._store.cut(self._path, data))
        self._store.after("write", self._path)

    def tell(self) -> int:
        """Return how many bytes were written so far."""
        return self._inner.tell()

    def close(self) -> None:
        """Make the object visible."""
        self._store.before("close", self._path)
        self._inner.close()
        self._store.after("close", self._path)

    def abort(self) -> None:
        """Give the object up; this never fails."""
        self._inner.abort()

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the writer, or abort it when an exception is on its way."""
        if kind is not None:
            self.abort()
            return
        try:
            self.close()
        except BaseException:
            self.abort()
            raise


@dataclass(slots=True)
class Counts:
    """What a store was asked since the last `CountingStore.reset`.

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
        self._limits = limits or FetchLimits()
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

    def around_read(self, reader: ObjectReader, requests: Sequence[ByteRequest]) -> None:
        """Count one round."""
        plan = plan_fetch(requests, self._limits)
        if not plan.groups:
            return
        exact = plan_fetch(requests, FetchLimits(0, self._limits.request_bytes))
        with self._lock:
            for counts in (self.counts, self._of(reader.path)):
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


class LatencyStore(WrappedStore):
    """Calls ``wait(seconds)`` for every request that a remote store would get.

    ``wait`` is the test's own: it may sleep, advance a clock, or record.  A round waits once,
    because its requests run at once, and once more for every ``limits.concurrency`` of them.
    """

    def __init__(
        self,
        inner: Store,
        wait: Callable[[float], object],
        seconds: float = 0.03,
        limits: FetchLimits | None = None,
    ) -> None:
        super().__init__(inner)
        self._wait = wait
        self._seconds = seconds
        self._limits = limits or FetchLimits()

    def before(self, verb: str, path: str) -> None:  # noqa: ARG002
        """Wait for one answer; reads wait in `around_read`, and writes into a buffer do not."""
        if verb not in {"read", "write", "open_writer"}:
            self._wait(self._seconds)

    def around_read(self, reader: ObjectReader, requests: Sequence[ByteRequest]) -> None:  # noqa: ARG002
        """Wait for one round."""
        count = plan_fetch(requests, self._limits).count
        for _ in range(0, count, self._limits.concurrency):
            self._wait(self._seconds)


@dataclass(frozen=True, slots=True)
class Fault:
    """Fail the ``nth`` call (from 1) among those whose verb is in ``verbs`` (empty: all).

    ``kind``: ``"before"``: nothing happens, and the call fails.  ``"after"``: the call does its
    work, and then fails: a lost answer.  ``"torn"``: half of the bytes of a write arrive, and the
    call fails.  All fail with ``error``, again and again if ``repeat``.
    """

    nth: int
    kind: str = "before"
    verbs: frozenset[str] = frozenset()
    repeat: bool = False
    error: Callable[[], BaseException] = lambda: StoreError("a fault was injected")


class FaultyStore(WrappedStore):
    """Fails as its `Fault` says.  ``calls`` counts the matching calls, ``fired`` the failures.

    To fail every call of an operation once: run it with ``nth`` = 1, 2, ... until nothing fires.
    """

    def __init__(self, inner: Store, fault: Fault) -> None:
        super().__init__(inner)
        self._fault = fault
        self._lock = threading.Lock()
        self.calls = 0
        self.fired = 0
        self._pending = threading.local()

    def before(self, verb: str, path: str) -> None:  # noqa: ARG002
        """Count the call; fail now if the fault comes before."""
        hit = self._count(verb)
        self._pending.hit = hit
        if hit and (self._fault.kind == "before" or not self._can_wait(verb)):
            self._fire()

    def after(self, verb: str, path: str) -> None:  # noqa: ARG002
        """Fail now if the call did its work, or half of it."""
        if getattr(self._pending, "hit", False):
            self._fire()

    def cut(self, path: str, data: Data) -> Data:  # noqa: ARG002
        """Return half of the bytes of a torn write."""
        if self._fault.kind == "torn" and getattr(self._pending, "hit", False):
            view = memoryview(data).cast("B")
            return view[: len(view) // 2]
        return data

    def _can_wait(self, verb: str) -> bool:
        """Tell whether a fault of this kind leaves the work of ``verb`` to be done first."""
        return self._fault.kind == "after" or verb in {"write", "put"}

    def _count(self, verb: str) -> bool:
        if self._fault.verbs and verb not in self._fault.verbs:
            return False
        with self._lock:
            self.calls += 1
            return self.calls == self._fault.nth or (
                self._fault.repeat and self.calls > self._fault.nth
            )

    def _fire(self) -> None:
        self._pending.hit = False
        with self._lock:
            self.fired += 1
        raise self._fault.error()
