from __future__ import annotations

import uuid
from collections.abc import Callable

import numpy as np
import pytest

from pennon.core.byte_ranges import ByteRange, Gather
from pennon.errors import AlreadyExistsError, NotFoundError, StoreError
from pennon.io.limits import FetchLimits
from pennon.testing import (
    CountingStore,
    Fault,
    FaultyStore,
    LatencyStore,
    MemoryStore,
    VirtualClock,
)

KIB = 1024


@pytest.fixture
def memory() -> MemoryStore:
    store = MemoryStore(uuid.uuid4().hex)
    store.put("data/x", bytes(range(256)) * 4 * KIB)
    return store


def test_rounds_requests_and_bytes_are_counted_by_path(memory: MemoryStore) -> None:
    store = CountingStore(memory)
    reader = store.open("data/x")
    starts = np.array([0, 100, 500 * KIB], np.int64)
    reader.read([Gather(starts, starts + 8), ByteRange(100, 4)])
    reader.read([ByteRange(7, 0)])
    reader.read([])
    assert (store.counts.rounds, store.counts.requests) == (1, 2)
    assert (store.counts.read_bytes, store.counts.asked_bytes) == (108 + 8, 8 + 8 + 8)
    assert store.by_path["data/x"] == store.counts
    assert store.counts.verbs == {"open": 1, "read": 3}
    assert reader.is_mapped


def test_verbs_and_written_bytes_are_counted(memory: MemoryStore) -> None:
    store = CountingStore(memory)
    with store.open_writer("data/y") as writer:
        writer.write(b"abc")
        writer.write(b"de")
        assert writer.tell() == 5
    store.put("a", b"1")
    store.put_if_absent("b", b"22")
    with pytest.raises(AlreadyExistsError):
        store.put_if_absent("b", b"22")
    store.delete("a")
    assert [found.path for found in store.list("data")] == ["data/x", "data/y"]
    assert store.counts.verbs == {
        "open_writer": 1,
        "write": 2,
        "close": 1,
        "put": 1,
        "put_if_absent": 2,
        "delete": 1,
        "list": 1,
    }
    assert store.by_path["data/y"].written_bytes == 5
    store.reset()
    assert store.counts.verbs == {}
    assert store.by_path == {}


def test_latency_is_one_wait_a_round_and_one_a_verb(memory: MemoryStore) -> None:
    clock = VirtualClock()
    store = LatencyStore(memory, 0.5, limits=FetchLimits(0, 8, 2), clock=clock)
    assert (store.limits.concurrency, store.open("data/x").is_mapped) == (2, False)
    assert clock.now() == 0.5
    reader = store.open("data/x", KIB * KIB)
    assert clock.now() == 0.5  # its size was known
    reader.read([ByteRange(0, 8), ByteRange(100, 8), ByteRange(200, 8)])
    assert clock.now() == 1.5  # three requests, two at once
    reader.read([ByteRange(7, 0)])
    assert clock.now() == 1.5
    with store.open_writer("data/y") as writer:
        writer.write(b"1")
    assert clock.now() == 2


def test_latency_store_limits_bandwidth(memory: MemoryStore) -> None:
    clock = VirtualClock()
    store = LatencyStore(memory, 0.5, 100, FetchLimits(0, 1000, 2), clock)
    reader = store.open("data/x", KIB * KIB)
    reader.read([ByteRange(0, 50), ByteRange(1000, 150)])
    assert clock.now() == 0.5 + 2
    assert reader.read([ByteRange(3, 2)])[0].to_pybytes() == b"\x03\x04"
    assert clock.now() == 2.5 + 0.5 + 0.02


def test_latency_store_shares_bandwidth_among_requests(memory: MemoryStore) -> None:
    class Standing(VirtualClock):
        def sleep(self, seconds: float) -> None:
            """Tell how long, and let no time pass: all ask at the same moment."""
            waits.append(round(seconds, 6))

    waits: list[float] = []
    store = LatencyStore(memory, 1, 100, clock=Standing())
    for _ in range(3):
        store.open("data/x", KIB * KIB).read([ByteRange(0, 50)])
    assert waits == [1.5, 2, 2.5]


def test_faulty_store_fails_before_the_nth_call(memory: MemoryStore) -> None:
    store = FaultyStore(memory, Fault(2, verbs=frozenset({"put"})))
    store.put("a", b"1")
    with pytest.raises(StoreError, match="injected"):
        store.put("b", b"1")
    store.put("c", b"1")
    assert (store.calls, store.fired) == (3, 1)
    assert [found.path for found in memory.list("")] == ["a", "c", "data/x"]


@pytest.mark.parametrize(
    "verb",
    [
        lambda store: store.put("new", b"1"),
        lambda store: store.put_if_absent("new", b"1"),
    ],
)
def test_faulty_store_fails_after_the_call(
    memory: MemoryStore, verb: Callable[[FaultyStore], None]
) -> None:
    store = FaultyStore(memory, Fault(1, "after"))
    with pytest.raises(StoreError):
        verb(store)
    assert memory.open("new").size_bytes == 1


def test_a_torn_write_leaves_half_and_aborts(memory: MemoryStore) -> None:
    store = FaultyStore(memory, Fault(1, "torn", frozenset({"put", "write"})))
    with pytest.raises(StoreError):
        store.put("whole", b"1234")
    assert memory.open("whole").size_bytes == 2
    store = FaultyStore(memory, Fault(1, "torn", frozenset({"write"})))
    with pytest.raises(StoreError), store.open_writer("data/y") as writer:
        writer.write(b"1234")
    with pytest.raises(NotFoundError):
        memory.open("data/y")


@pytest.mark.parametrize("kind", ["before", "after"])
@pytest.mark.parametrize(
    "verb", ["open", "list", "read", "write", "close", "delete", "open_writer"]
)
def test_faulty_store_fails_every_verb_before_and_after(
    memory: MemoryStore, kind: str, verb: str
) -> None:
    def everything(store: FaultyStore) -> None:
        with store.open_writer("data/y") as writer:
            writer.write(b"1234")
        list(store.list("data"))
        store.open("data/x").read([ByteRange(0, 1)])
        store.delete("data/y")

    store = FaultyStore(memory, Fault(1, kind, frozenset({verb})))
    with pytest.raises(StoreError):
        everything(store)
    assert store.fired == 1
    everything(store)
    assert store.fired == 1


def test_faulty_store_repeats_with_a_custom_error(memory: MemoryStore) -> None:
    store = FaultyStore(memory, Fault(2, repeat=True, error=lambda: TimeoutError("late")))
    store.open("data/x")
    for _ in range(3):
        with pytest.raises(TimeoutError):
            store.open("data/x")
    assert store.fired == 3
