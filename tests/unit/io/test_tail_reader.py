"""A reader with a known end: ranges within it make no requests, and are the same bytes."""

from __future__ import annotations

import pickle
import uuid

import numpy as np
import pytest

from pennon.core.byte_ranges import ByteRange, ByteRequest, Gather
from pennon.errors import FormatError, TooLargeError
from pennon.io.tail_reader import KnownEnd
from pennon.testing import CountingStore, LatencyStore, MemoryStore

BODY = bytes(range(256)) * 4
FIRST = 700


@pytest.fixture
def counted() -> CountingStore:
    memory = MemoryStore(uuid.uuid4().hex)
    memory.put("x", BODY)
    return CountingStore(LatencyStore(memory, 0))


@pytest.fixture
def reader(counted: CountingStore) -> KnownEnd:
    inner = counted.open("x", len(BODY))
    (end,) = inner.read([ByteRange(FIRST, len(BODY) - FIRST)])
    counted.reset()
    return KnownEnd(inner, FIRST, end)


def gather(*ranges: tuple[int, int]) -> Gather:
    return Gather(np.array([a for a, _ in ranges], np.int64), np.array([b for _, b in ranges]))


@pytest.mark.parametrize(
    ("request_", "expected", "asked"),
    [
        (ByteRange(700, 324), BODY[700:], 0),
        (ByteRange(1024, 0), b"", 0),
        (ByteRange(699, 2), BODY[699:701], 1),
        (ByteRange(0, 1024), BODY, 1),
        (
            gather((900, 910), (700, 701), (1020, 1024)),
            BODY[900:910] + BODY[700:701] + BODY[-4:],
            0,
        ),
        (gather((900, 910), (3, 5)), BODY[900:910] + BODY[3:5], 1),
        (Gather(np.empty(0, np.int64), np.empty(0, np.int64)), b"", 0),
    ],
)
def test_known_end_reader_reads_ranges(
    counted: CountingStore, reader: KnownEnd, request_: ByteRequest, expected: bytes, asked: int
) -> None:
    assert [found.to_pybytes() for found in reader.read([request_])] == [expected]
    assert counted.counts.rounds == asked
    assert (reader.path, reader.size_bytes, reader.is_mapped) == ("x", len(BODY), False)


def test_a_round_is_answered_in_its_order(counted: CountingStore, reader: KnownEnd) -> None:
    near, far = gather((1000, 1003)), gather((9, 10))
    requests: list[ByteRequest] = [ByteRange(800, 2), ByteRange(5, 2), near, far, ByteRange(701, 1)]
    answers = b"".join(found.to_pybytes() for found in reader.read(requests))
    assert answers == BODY[800:802] + BODY[5:7] + BODY[1000:1003] + BODY[9:10] + BODY[701:702]
    assert counted.counts.rounds == 1
    assert counted.counts.asked_bytes == 3


@pytest.mark.parametrize(
    "request_",
    [
        ByteRange(1000, 25),
        ByteRange(800, -1),
        ByteRange(1025, 0),
        gather((800, 1025)),
        gather((900, 800)),
        gather((800, 801), (-1, 3)),
    ],
)
def test_tail_reader_refuses_ranges_outside_the_object(
    reader: KnownEnd, request_: ByteRequest
) -> None:
    with pytest.raises(FormatError):
        reader.read([request_])


def test_gather_of_repeated_ranges_above_the_limit_is_refused(reader: KnownEnd) -> None:
    starts = np.full(1 << 20, FIRST, np.int64)
    with pytest.raises(TooLargeError):
        reader.read([Gather(starts, starts + 324)])


def test_known_end_reader_pickles() -> None:
    memory = MemoryStore(uuid.uuid4().hex)
    memory.put("x", BODY)
    inner = memory.open("x")
    again = pickle.loads(
        pickle.dumps(KnownEnd(inner, FIRST, inner.read([ByteRange(FIRST, 324)])[0]))
    )
    assert again.read([ByteRange(0, 9), ByteRange(1020, 4)])[1].to_pybytes() == BODY[1020:]
