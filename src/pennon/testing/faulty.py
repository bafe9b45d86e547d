"""A store that fails when it is told to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from pennon.errors import NotFoundError, StoreError
from pennon.io.store import Store
from pennon.testing.wrapped import Data, WrappedStore


@dataclass(frozen=True, slots=True)
class Fault:
    """Fail the ``nth`` call (from 1) among those whose verb is in ``verbs`` (empty: all).

    ``kind``: ``"before"``: nothing happens, and the call fails.  ``"after"``: the call does its
    work, and then fails: a lost answer.  ``"torn"``: half of the bytes of a write arrive, and the
    call fails; but what a put replaces stays whole, as in any store.  All fail with ``error``, again
    and again if ``repeat``.
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

    def before(self, verb: str, path: str) -> None:
        """Count the call; fail now if the fault comes before."""
        hit = self._count(verb)
        self._pending.hit = hit
        if hit and (self._fault.kind == "before" or not self._can_wait(verb, path)):
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

    def _can_wait(self, verb: str, path: str) -> bool:
        """Tell whether a fault of this kind leaves the work of ``verb`` to be done first."""
        if self._fault.kind == "after":
            return True
        return verb == "write" or (verb == "put" and not self._is_there(path))

    def _is_there(self, path: str) -> bool:
        try:
            self.inner.open(path)
        except NotFoundError:
            return False
        return True

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
