"""Plans of requests, and the answers that are put together from them."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennon.core.byte_ranges import ByteRange, ByteRequest, Gather
from pennon.io.fetch import Fetcher, plan_fetch
from pennon.io.limits import FetchLimits

BODY = np.random.default_rng(3).integers(0, 256, 5000, np.uint8).tobytes()
SMALL = FetchLimits(gap_bytes=10, request_bytes=100, concurrency=3)


def gather(*ranges: tuple[int, int]) -> Gather:
    pairs = np.array(ranges, np.int64).reshape(-1, 2)
    return Gather(pairs[:, 0], pairs[:, 1])


def spans(extents: tuple[ByteRange, ...]) -> list[tuple[int, int]]:
    return [(one.position, one.end) for one in extents]


def test_ranges_closer_than_the_gap_become_one_request() -> None:
    plan = plan_fetch([ByteRange(50, 5), gather((0, 10), (20, 30)), ByteRange(41, 4)], SMALL)
    assert spans(plan.groups) == [(0, 30), (41, 55)]
    assert plan.requests == ((ByteRange(0, 30),), (ByteRange(41, 14),))
    assert (plan.count, plan.size_bytes) == (2, 44)


def test_fetch_plan_merges_a_range_within_another() -> None:
    plan = plan_fetch([ByteRange(0, 90), ByteRange(5, 2), ByteRange(95, 5)], SMALL)
    assert spans(plan.groups) == [(0, 100)]


def test_long_groups_are_split_evenly() -> None:
    plan = plan_fetch([ByteRange(7, 250)], SMALL)
    assert spans(plan.groups) == [(7, 257)]
    assert spans(plan.requests[0]) == [(7, 90), (90, 173), (173, 257)]


@pytest.mark.parametrize("requests", [[], [ByteRange(5, 0)], [gather()], [gather((5, 5), (9, 9))]])
def test_fetch_plan_of_empty_requests_reads_no_bytes(requests: list[ByteRequest]) -> None:
    plan = plan_fetch(requests, SMALL)
    assert (plan.count, plan.size_bytes, plan.groups) == (0, 0, ())


RANGE = st.tuples(st.integers(0, 5000), st.integers(0, 400)).map(
    lambda pair: (pair[0], min(pair[0] + pair[1], 5000))
)
REQUEST = st.one_of(
    RANGE.map(lambda pair: ByteRange(pair[0], pair[1] - pair[0])),
    st.lists(RANGE, max_size=12).map(lambda ranges: gather(*ranges)),
)


def slow_answer(request: ByteRequest) -> bytes:
    if isinstance(request, ByteRange):
        return BODY[request.position : request.end]
    pairs = zip(request.starts, request.ends, strict=True)
    return b"".join(BODY[start:end] for start, end in pairs)


@given(st.lists(REQUEST, max_size=8), st.integers(0, 500), st.integers(1, 700))
def test_fetch_answers_equal_slices_under_any_limits(
    requests: list[ByteRequest], gap: int, longest: int
) -> None:
    limits = FetchLimits(gap, longest, 3)
    asked: list[ByteRange] = []

    def read(extent: ByteRange) -> pa.Buffer:
        asked.append(extent)
        return pa.py_buffer(BODY[extent.position : extent.end])

    answers = Fetcher("x", len(BODY), limits, read).fetch(requests)
    assert [a.to_pybytes() for a in answers] == [slow_answer(request) for request in requests]
    plan = plan_fetch(requests, limits)
    assert len(asked) == plan.count
    assert all(0 < extent.size_bytes <= longest for extent in asked)
    for before, after in zip(plan.groups, plan.groups[1:], strict=False):
        assert after.position - before.end > gap


def test_a_failing_request_fails_the_round() -> None:
    def read(extent: ByteRange) -> pa.Buffer:
        if extent.position > 100:
            message = "broken"
            raise ConnectionError(message)
        return pa.py_buffer(bytes(extent.size_bytes))

    fetcher = Fetcher("x", 5000, SMALL, read)
    with pytest.raises(ConnectionError, match="broken"):
        fetcher.fetch([ByteRange(0, 4), ByteRange(2000, 4)])


def test_requests_of_one_round_run_at_once() -> None:
    """Each request waits for the others, so that one after the other would never end."""
    together = threading.Barrier(3, timeout=20)

    def read(extent: ByteRange) -> pa.Buffer:
        together.wait()
        return pa.py_buffer(bytes(extent.size_bytes))

    answers = Fetcher("x", 5000, SMALL, read).fetch(
        [ByteRange(0, 4), ByteRange(1000, 4), ByteRange(2000, 4)]
    )
    assert [answer.size for answer in answers] == [4, 4, 4]


def _served(requests: list[ByteRequest], limits: FetchLimits) -> tuple[list[pa.Buffer], pa.Buffer]:
    body = pa.allocate_buffer(len(BODY))
    np.frombuffer(body, np.uint8)[:] = np.frombuffer(BODY, np.uint8)
    fetcher = Fetcher("x", len(BODY), limits, lambda e: body.slice(e.position, e.size_bytes))
    return fetcher.fetch(requests), body


def test_fetch_of_adjacent_aligned_ranges_is_not_copied() -> None:
    limits = FetchLimits(10, 10_000, 3)
    requests: list[ByteRequest] = [gather((8, 20), (20, 20), (20, 50)), gather((9, 20), (20, 50))]
    (packed, crooked), body = _served(requests, limits)
    assert packed.address == body.address + 8
    assert packed.to_pybytes() == BODY[8:50]
    assert not body.address <= crooked.address < body.address + body.size, "it may be numbers"
    assert crooked.address % 8 == 0
    assert crooked.to_pybytes() == BODY[9:50]


def test_fetch_of_long_range_is_assembled_from_parts() -> None:
    (whole, some), _ = _served([ByteRange(3, 4000), gather((90, 95), (95, 99), (7, 9))], SMALL)
    assert whole.to_pybytes() == BODY[3:4003]
    assert some.to_pybytes() == BODY[90:99] + BODY[7:9]
