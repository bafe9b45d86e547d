"""Page metadata that readers remember: positions of chunks, their rows, dictionaries.

It is read once and then saves a round of requests.  The memory for it is bounded, and files may
share it (`pennon.scan.session`).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, Protocol
from weakref import ref

from pennon.core.cache import Cache
from pennon.core.fast_dataclass import dataclass
from pennon.core.units import MIB

DEFAULT_BYTES: Final = 256 * MIB


class PageIndex(Protocol):
    """Anything that is worth remembering of a page."""

    @property
    def size_bytes(self) -> int:
        """Return how much memory it takes."""


class SearchCache:
    """Remembered page metadata of one file.

    ``shared``: the memory to use, in which ``file`` tells the file from all others.  It is not kept
    alive: it may hold the file that holds this.  Without one, the file has a memory of its own.
    """

    __slots__ = ("_file", "_memory", "_own")

    def __init__(self, shared: Cache | None = None, file: Hashable = None) -> None:
        self._own = Cache(DEFAULT_BYTES) if shared is None else None
        self._memory = ref(self._own if shared is None else shared)
        self._file = file

    def get(self, key: Hashable) -> Any | None:
        """Return what is known of a page, as it was `put`."""
        memory = self._memory()
        return None if memory is None else memory.get((self._file, key))

    def put(self, key: Hashable, index: PageIndex) -> None:
        """Remember what was read of a page."""
        memory = self._memory()
        if memory is not None:
            memory.put((self._file, key), index, index.size_bytes)


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of one page in the cache."""

    cache: SearchCache
    key: Hashable

    def get(self) -> Any | None:
        """Return what is known of the page, as it was `put`."""
        return self.cache.get(self.key)

    def put(self, index: PageIndex) -> None:
        """Remember what was read of the page."""
        self.cache.put(self.key, index)
