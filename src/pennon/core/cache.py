"""A cache of values under keys: bounded in bytes, shared by all threads of one process.

What was not used for the longest time goes first.  A value is weighed once, when it is put in.

A child of a fork starts with nothing: a lock that another thread of the parent held would never be
given back, and what that thread was about to change may be half done.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from threading import Lock
from typing import Any, Final, TypeVar
from weakref import WeakSet

from pennon.core.thread_pools import in_forked_child

T = TypeVar("T")

ENTRY_BYTES: Final = 256
"""What an entry takes beside its value: the key, and its places in the tables."""


class Cache:
    """A bounded memory; a key stands for one value for ever, so nothing goes stale."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.start_again()
        _CACHES.add(self)

    def start_again(self) -> None:
        """Forget everything, and who holds the lock."""
        self._lock = Lock()
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._size = 0
        self._making: dict[Hashable, _Making] = {}
        self.hits = self.misses = 0

    @property
    def hit_rate(self) -> float:
        """Return the share of the values asked for that were known; 0 if none was asked for."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else 0.0

    @property
    def size_bytes(self) -> int:
        """Return how much memory the entries take, never more than ``most_bytes``."""
        return self._size

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._entries)

    def get(self, key: Hashable) -> Any | None:
        """Return the value of a key, None if it is not known."""
        found = self._entries.get(key)
        if found is None:
            with self._lock:
                self.misses += 1
            return None
        if self._lock.acquire(blocking=False):  # a thread that finds something waits for no other
            try:
                self.hits += 1
                self._entries.move_to_end(key)
            except KeyError:  # another thread let it go between the two
                pass
            finally:
                self._lock.release()
        return found[0]

    def get_each(self, keys: Sequence[Hashable]) -> list[Any | None]:
        """Return the values of keys, None for each that is not known."""
        entries = self._entries
        with self._lock:
            found = [entries.get(key) for key in keys]
            known = len(found) - found.count(None)
            self.hits += known
            self.misses += len(found) - known
            for key, each in zip(keys, found, strict=True):
                if each is not None:
                    entries.move_to_end(key)
        return [None if each is None else each[0] for each in found]

    def put(self, key: Hashable, value: T, size_bytes: int) -> T:
        """Remember a value, unless it is larger than all that may be remembered; return it.

        If the key has a value already, that one stays and is returned.
        """
        weight = size_bytes + ENTRY_BYTES
        gone = []  # let go of without the lock: unmapping a file takes its time
        with self._lock:
            known = self._entries.get(key)
            if known is not None:
                self._entries.move_to_end(key)
                kept: T = known[0]
                return kept
            if weight > self.most_bytes:
                return value
            while self._size + weight > self.most_bytes:
                _, oldest = self._entries.popitem(last=False)
                self._size -= oldest[1]
                gone.append(oldest)
            self._entries[key] = (value, weight)
            self._size += weight
        gone.clear()
        return value

    def get_or_make(self, key: Hashable, make: Callable[[], T], size_of: Callable[[T], int]) -> T:
        """Return the value of a key, made now if it is not known; what is made as None is not remembered.

        A thread that asks while another makes it waits for that one, and for its failure, too.  No
        lock is held meanwhile, because that is when the store is read.
        """
        found: T | None = self.get(key)
        while found is None:
            mine = _Making()
            first = self._making.setdefault(key, mine)
            if first is not mine:
                found = first.result()  # None of one who only looked
                continue
            try:
                mine.value = made = self._make_now(key, make, size_of)
            except BaseException as error:
                mine.error = error
                raise
            else:
                return made
            finally:
                self._making.pop(key, None)
                mine.end()
                del mine, first  # an error holds this frame, which must not hold the error
        return found

    def _make_now(self, key: Hashable, make: Callable[[], T], size_of: Callable[[T], int]) -> T:
        known = self._entries.get(key)
        found: T | None = (
            None if known is None else known[0]
        )  # another thread may have been done with it a moment ago
        if found is not None:
            return found
        made = make()
        return made if made is None else self.put(key, made, size_of(made))


class _Making:
    """A value that one thread computes while others wait for it; waiting is rare."""

    __slots__ = ("_lock", "error", "value")

    def __init__(self) -> None:
        self.value: Any = None
        self.error: BaseException | None = None
        self._lock = Lock()
        self._lock.acquire()

    def end(self) -> None:
        """Let those go on who wait."""
        self._lock.release()

    def result(self) -> Any:
        """Wait for the value, or the error, of the thread that makes it."""
        with self._lock:
            if self.error is not None:
                raise self.error
            return self.value


_CACHES: WeakSet[Cache] = WeakSet()


def _start_again() -> None:
    for cache in list(_CACHES):
        cache.start_again()


in_forked_child(_start_again)
