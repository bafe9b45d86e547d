"""What readers remember is bounded."""

from __future__ import annotations

from dataclasses import dataclass

from pennon.encoding.v2_1.search_cache import SearchCache


@dataclass(frozen=True)
class Index:
    size_bytes: int


def test_the_oldest_goes_first() -> None:
    cache = SearchCache(most_bytes=10)
    for key in "abc":
        cache.put(key, Index(4))
    assert (cache.get("a"), cache.size_bytes) == (None, 8)
    assert cache.get("b") is not None
    cache.put("d", Index(4))
    assert cache.get("c") is None, "b was used since"
    assert cache.get("b") is not None


def test_what_is_too_large_is_not_kept() -> None:
    cache = SearchCache(most_bytes=10)
    cache.put("a", Index(4))
    cache.put("a", Index(11))
    assert (cache.get("a"), cache.size_bytes) == (None, 0)
    cache.put("a", Index(5))
    cache.put("a", Index(6))
    assert cache.size_bytes == 6
