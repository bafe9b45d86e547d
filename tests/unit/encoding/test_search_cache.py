"""The cache of page indices of a file."""

from __future__ import annotations

from dataclasses import dataclass

from pennon.core.cache import ENTRY_BYTES, Cache
from pennon.encoding.search_cache import SearchCache, Slot


@dataclass(frozen=True)
class Index:
    size_bytes: int


def test_search_cache_without_session_is_private() -> None:
    slot = Slot(SearchCache(), "page")
    assert slot.get() is None
    slot.put(Index(4))
    assert slot.get() == Index(4)
    assert Slot(SearchCache(), "page").get() is None


def test_search_cache_entries_differ_by_file() -> None:
    memory = Cache(1 << 20)
    first, again, other = (SearchCache(memory, file) for file in ("a", "a", "b"))
    first.put("page", Index(4))
    assert again.get("page") == Index(4)
    assert other.get("page") is None
    assert memory.size_bytes == 4 + ENTRY_BYTES


def test_search_cache_of_collected_session_is_empty() -> None:
    search = SearchCache(Cache(1 << 20), "a")
    search.put("page", Index(4))
    assert search.get("page") is None
