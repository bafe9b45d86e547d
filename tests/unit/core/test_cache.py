"""The memory that sessions are made of: bounded, for threads, and across forks."""

from __future__ import annotations

import gc
import os
import random
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from pennon.core.cache import ENTRY_BYTES, Cache


def test_cache_evicts_the_least_recently_used_entry() -> None:
    cache = Cache(2 * (ENTRY_BYTES + 4) + 2)
    for key in "abc":
        cache.put(key, key, 4)
    assert (cache.get("a"), len(cache), cache.size_bytes) == (None, 2, 2 * (ENTRY_BYTES + 4))
    assert cache.get("b") == "b"
    cache.put("d", "d", 4)
    assert cache.get("c") is None, "b was used since"
    assert cache.get("b") == "b"


def test_cache_lookup_of_several_keys_marks_them_used() -> None:
    cache = Cache(3 * (ENTRY_BYTES + 4))
    for key in "abc":
        cache.put(key, key.upper(), 4)
    assert cache.get_each(["b", "z", "a"]) == ["B", None, "A"]
    cache.put("d", "D", 4)
    assert cache.get_each("abcd") == ["A", "B", None, "D"]
    assert cache.get_each([]) == []


def test_cache_entry_over_capacity_evicts_no_other() -> None:
    cache = Cache(ENTRY_BYTES + 10)
    cache.put("a", "a", 4)
    assert cache.put("b", "b", 11) == "b"
    assert (cache.get("a"), cache.get("b"), len(cache)) == ("a", None, 1)


def test_cache_of_zero_bytes_is_empty() -> None:
    cache = Cache(0)
    assert [cache.get_or_make("a", lambda: "made", len) for _ in range(2)] == ["made", "made"]
    assert (len(cache), cache.size_bytes) == (0, 0)


def test_cache_returns_the_first_value_of_a_key() -> None:
    cache = Cache(1 << 20)
    first, second = object(), object()
    assert cache.put("a", first, 4) is first
    assert cache.put("a", second, 400) is first
    assert cache.size_bytes == ENTRY_BYTES + 4


def test_cache_makes_a_value_again_after_failure() -> None:
    cache = Cache(1 << 20)
    with pytest.raises(ZeroDivisionError):
        cache.get_or_make("a", lambda: 1 // 0, lambda _: 1)
    assert cache.get_or_make("a", lambda: 1, lambda _: 1) == 1


def test_cache_does_not_store_none() -> None:
    cache = Cache(1 << 20)
    assert cache.get_or_make("a", lambda: None, lambda _: 1) is None
    assert len(cache) == 0
    assert cache.get_or_make("a", lambda: 1, lambda _: 1) == 1


def test_cache_waiter_computes_the_value_after_none() -> None:
    cache = Cache(1 << 20)
    looking, found = threading.Event(), list[int]()

    def look() -> None:
        looking.set()
        while not waiting.is_alive():
            pass
        waiting.join(0.05)  # it waits for this

    waiting = threading.Thread(
        target=lambda: found.append(cache.get_or_make("a", lambda: 7, lambda _: 1))
    )
    asks = threading.Thread(target=lambda: cache.get_or_make("a", look, lambda _: 1))
    asks.start()
    assert looking.wait(10)
    waiting.start()
    for thread in (asks, waiting):
        thread.join(10)
    assert found == [7]


def test_cache_failure_frees_its_traceback() -> None:
    """Its traceback has the frames, and what these hold, until the garbage collector comes."""

    class Held:
        pass

    held = Held()
    gone = weakref.ref(held)

    def fail(_held: Held = held) -> int:
        return 1 // 0

    gc.disable()
    try:
        with pytest.raises(ZeroDivisionError):
            Cache(1 << 20).get_or_make("a", fail, lambda _: 1)
        del held, fail
        assert gone() is None
    finally:
        gc.enable()


def test_cache_frees_evicted_entries() -> None:
    class Value:
        pass

    cache = Cache(ENTRY_BYTES + 10)
    value = Value()
    gone = weakref.ref(value)
    cache.put("a", value, 4)
    del value
    assert gone() is not None
    cache.put("b", "b", 4)
    assert gone() is None


def test_cache_bound_holds_with_concurrent_puts_and_gets() -> None:
    cache = Cache(20 * ENTRY_BYTES)
    over: list[int] = []
    wrong: list[tuple[int, int]] = []

    def work(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(3_000):
            key = chance.randrange(60)
            found = cache.get_or_make(key, lambda key=key: key, lambda key: key * 9)  # type: ignore[misc]
            if found != key:
                wrong.append((key, found))
            if cache.size_bytes > cache.most_bytes:
                over.append(cache.size_bytes)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (over, wrong) == ([], [])
    kept = [key for key in range(60) if cache.get(key) is not None]
    assert len(kept) == len(cache)
    assert cache.size_bytes == sum(key * 9 + ENTRY_BYTES for key in kept)


@pytest.fixture
def held() -> Iterator[Cache]:
    """A cache whose lock another thread holds."""
    cache = Cache(1 << 20)
    cache.put("a", "a", 1)
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with cache._lock:
            taken.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    yield cache
    done.set()
    thread.join()


def test_cache_is_empty_and_unlocked_after_fork(held: Cache) -> None:
    child = os.fork()
    if child == 0:
        fine = held.get("a") is None and held.put("a", "b", 1) == "b" and len(held) == 1
        os._exit(0 if fine else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class _Key:
    """Equal to all of its kind; tells when it was found to be."""

    met = threading.Semaphore(0)

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        self.met.release()
        return isinstance(other, _Key)


@pytest.mark.parametrize("fails", [False, True])
def test_cache_makes_a_value_once_for_concurrent_callers(fails: bool) -> None:
    """Those who come while it is made wait for it; a failure is that of all who waited."""
    cache, made, begun, go = Cache(1 << 20), [], threading.Event(), threading.Event()

    def make() -> int:
        made.append(1)
        begun.set()
        assert go.wait(20)
        return 1 // (0 if fails else 1)

    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(cache.get_or_make, _Key(), make, lambda _: 1)]
        assert begun.wait(20)
        _Key.met = threading.Semaphore(0)
        futures += [pool.submit(cache.get_or_make, _Key(), make, lambda _: 1) for _ in range(3)]
        for _ in range(3):
            assert _Key.met.acquire(timeout=20)
        go.set()
        failures = [future.exception() for future in futures]
    assert len(made) == 1 or fails
    assert [type(failure) for failure in failures] == 4 * [
        ZeroDivisionError if fails else type(None)
    ]
    assert cache.get_or_make(_Key(), lambda: 2, lambda _: 1) == (2 if fails else 1)
