"""What readers remember of pages: where the chunks lie, which rows they hold, dictionaries.

It is read once and then saves a round of requests.  The memory for it is bounded: what was not used
for the longest time goes first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Final, Protocol

from pennon.units import MIB

DEFAULT_BYTES: Final = 256 * MIB


class PageIndex(Protocol):
    """Anything that is worth remembering of a page."""

    @property
    def size_bytes(self) -> int:
        """Return how much memory it takes."""
        ...


class SearchCache:
    """A bounded memory of page indices; threads may share it, and so may files."""

    def __init__(self, most_bytes: int = DEFAULT_BYTES) -> None:
        self.most_bytes = most_bytes
        self._found: OrderedDict[Hashable, PageIndex] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    @property
    def size_bytes(self) -> int:
        """Return how much memory the indices take."""
        return self._size

    def get(self, key: Hashable) -> PageIndex | None:
        """Return what is known of a page."""
        with self._lock:
            index = self._found.get(key)
            if index is not None:
                self._found.move_to_end(key)
            return index

    def put(self, key: Hashable, index: PageIndex) -> None:
        """Remember an index, unless it is larger than all that may be remembered."""
        with self._lock:
            known = self._found.pop(key, None)
            self._size -= known.size_bytes if known else 0
            if index.size_bytes > self.most_bytes:
                return
            self._found[key] = index
            self._size += index.size_bytes
            while self._size > self.most_bytes:
                _, oldest = self._found.popitem(last=False)
                self._size -= oldest.size_bytes


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of one page in the cache."""

    cache: SearchCache
    key: Hashable

    def get(self) -> PageIndex | None:
        """Return what is known of the page."""
        return self.cache.get(self.key)

    def put(self, index: PageIndex) -> None:
        """Remember what was read of the page."""
        self.cache.put(self.key, index)
