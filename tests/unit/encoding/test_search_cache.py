"""What readers remember of the pages of a file."""

from __future__ import annotations

from dataclasses import dataclass

from pennon.core.cache import ENTRY_BYTES, Cache
from pennon.encoding.search_cache import SearchCache, Slot


@dataclass(frozen=True)
class Index:
    size_bytes: int


def test_a_file_alone_has_a_memory_of_its_own() -> None:
    slot = Slot(SearchCache(), "page")
    assert slot.get() is None
    slot.put(Index(4))
    assert slot.get() == Index(4)
    assert Slot(SearchCache(), "page").get() is None


def test_files_that_share_a_memory_are_told_apart() -> None:
    memory = Cache(1 << 20)
    first, again, other = (SearchCache(memory, file) for file in ("a", "a", "b"))
    first.put("page", Index(4))
    assert again.get("page") == Index(4)
    assert other.get("page") is None
    assert memory.size_bytes == 4 + ENTRY_BYTES


def test_a_shared_memory_that_is_gone_knows_nothing() -> None:
    search = SearchCache(Cache(1 << 20), "a")
    search.put("page", Index(4))
    assert search.get("page") is None
