"""Merging the requests of one round, and reading close bytes in advance."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pennon.core.byte_ranges import ByteRange, ByteRequest, Gather
from pennon.encoding.coalesce import LONGEST_GAP, coalesce_requests, hull, merge, prefetched
from pennon.encoding.read_protocol import Steps, run

DATA = bytes(range(256))


def ask(*rounds: list[ByteRequest]) -> Steps[list[bytes]]:
    found = []
    for requests in rounds:
        answers = yield requests
        found += [answer.to_pybytes() for answer in answers]
    return found


class Source:
    def __init__(self) -> None:
        self.asked: list[list[ByteRequest]] = []

    def read(self, requests: list[ByteRequest]) -> list[pa.Buffer]:
        self.asked.append(requests)
        return [pa.py_buffer(self._bytes(request)) for request in requests]

    def _bytes(self, request: ByteRequest) -> bytes:
        if isinstance(request, ByteRange):
            return DATA[request.position : request.end]
        return b"".join(DATA[s:e] for s, e in zip(request.starts, request.ends, strict=True))


@pytest.mark.parametrize(
    ("extents", "budget", "runs"),
    [
        ([(0, 4), (10, 4), (100, 4)], 2, [(0, 14), (100, 4)]),
        ([(100, 4), (10, 4), (0, 4)], 1, [(0, 104)]),
        ([(0, 10), (5, 10)], 2, [(0, 15)]),
        ([(0, 20), (5, 2), (6, 30)], 1, [(0, 36)]),
        ([(0, 4), (LONGEST_GAP + 5, 4)], 1, [(0, 4), (LONGEST_GAP + 5, 4)]),
        ([(0, 4), (4, 4)], 2, [(0, 4), (4, 4)]),
    ],
)
def test_merge_joins_close_ranges_within_the_budget(
    extents: list[tuple[int, int]], budget: int, runs: list[tuple[int, int]]
) -> None:
    assert merge([ByteRange(*one) for one in extents], budget) == [ByteRange(*one) for one in runs]


def test_coalesced_requests_answer_as_single_requests() -> None:
    rounds: list[list[ByteRequest]] = [
        [ByteRange(3, 2), ByteRange(100, 3), ByteRange(0, 1)],
        [ByteRange(9, 0)],
        [ByteRange(1, 1), Gather(np.array([5, 7]), np.array([6, 9])), ByteRange(2, 1)],
    ]
    plain, saving = Source(), Source()
    assert run(coalesce_requests(ask(*rounds), 2), saving.read) == run(ask(*rounds), plain.read)
    assert saving.asked[0] == [ByteRange(0, 5), ByteRange(100, 3)]
    assert saving.asked[1:] == rounds[1:]


def test_prefetched_range_answers_requests_within_it() -> None:
    gather = Gather(np.array([15, 11]), np.array([17, 12]))
    rounds: list[list[ByteRequest]] = [[ByteRange(10, 5), gather], [ByteRange(19, 1)]]
    plain, once = Source(), Source()
    assert run(prefetched(ask(*rounds), ByteRange(10, 10)), once.read) == run(
        ask(*rounds), plain.read
    )
    assert once.asked == [[ByteRange(10, 10)]]


def test_prefetched_range_forwards_requests_outside_it() -> None:
    rounds: list[list[ByteRequest]] = [[ByteRange(10, 5), ByteRange(200, 1)], [ByteRange(12, 1)]]
    source = Source()
    found = run(prefetched(ask(*rounds), ByteRange(10, 10)), source.read)
    assert found == [DATA[10:15], DATA[200:201], DATA[12:13]]
    assert source.asked == [[ByteRange(10, 10)], rounds[0]]


def test_hull_of_close_ranges() -> None:
    assert hull([(5, 9), (2, 3)]) == ByteRange(2, 7)
    assert hull([]) is None
    assert hull([(3, 3)]) is None
    assert hull([(0, 1), (LONGEST_GAP, LONGEST_GAP + 1)]) is None
