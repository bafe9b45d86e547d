from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennon.core.kernels.gather import gather, gather_from_file, scatter, total_size

SOURCE = np.random.default_rng(7).integers(0, 256, 1000, np.uint8)
RANGES = st.lists(
    st.tuples(st.integers(0, 1000), st.one_of(st.just(4), st.just(8), st.integers(0, 300))).map(
        lambda pair: (pair[0], min(pair[0] + pair[1], 1000))
    ),
    max_size=60,
)


def slow_gather(source: bytes, ranges: list[tuple[int, int]]) -> bytes:
    """The twin: one slice after the other."""
    return b"".join(source[start:end] for start, end in ranges)


def columns(ranges: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    pairs = np.array(ranges, np.int64).reshape(-1, 2)
    return pairs[:, 0].copy(), pairs[:, 1].copy()


@given(RANGES)
def test_gather_equals_its_twin(ranges: list[tuple[int, int]]) -> None:
    starts, ends = columns(ranges)
    expected = slow_gather(SOURCE.tobytes(), ranges)
    assert total_size(starts, ends, 1000) == len(expected)
    target = np.zeros(len(expected), np.uint8)
    gather(SOURCE, starts, ends, target)
    assert target.tobytes() == expected


@given(RANGES, st.randoms(use_true_random=False))
def test_scatter_undoes_gather(ranges: list[tuple[int, int]], random: object) -> None:
    starts, ends = columns(ranges)
    packed = np.frombuffer(slow_gather(SOURCE.tobytes(), ranges), np.uint8)
    sizes = ends - starts
    target = np.zeros(1000, np.uint8)
    scatter(packed, np.cumsum(sizes) - sizes, starts, sizes, target)
    expected = np.zeros(1000, np.uint8)
    for start, end in ranges:
        expected[start:end] = SOURCE[start:end]
    assert target.tobytes() == expected.tobytes()


BAD = [
    ([-1], [4]),
    ([5], [4]),
    ([0], [1001]),
    ([1001], [1001]),
    ([0, -(2**63)], [1, 2**63 - 1]),
]


@pytest.mark.parametrize(("starts", "ends"), BAD)
def test_ranges_outside_are_refused_before_a_byte_is_copied(
    starts: list[int], ends: list[int]
) -> None:
    target = np.zeros(4, np.uint8)
    one, two = np.array(starts, np.int64), np.array(ends, np.int64)
    with pytest.raises(ValueError, match="range"):
        total_size(one, two, 1000)
    with pytest.raises(ValueError, match="range"):
        gather(SOURCE, one, two, target)
    assert not target.any()


def test_a_sum_beyond_63_bits_is_refused() -> None:
    starts = np.zeros(3, np.int64)
    with pytest.raises(ValueError, match="range"):
        total_size(starts, np.full(3, 2**62, np.int64), 2**63 - 1)


def test_gather_with_wrong_sizes_is_refused() -> None:
    zeros, ones = np.zeros(2, np.int64), np.ones(2, np.int64)
    with pytest.raises(ValueError, match="target"):
        gather(SOURCE, zeros, ones, np.zeros(3, np.uint8))
    with pytest.raises(ValueError, match="length"):
        gather(SOURCE, zeros, np.ones(3, np.int64), np.zeros(3, np.uint8))
    with pytest.raises(ValueError, match="length"):
        scatter(SOURCE, zeros, ones, np.ones(3, np.int64), np.zeros(3, np.uint8))


@pytest.mark.parametrize(
    ("source", "target", "size"),
    [
        (0, 0, 11),
        (995, 0, 6),
        (0, 5, 6),
        (-1, 0, 1),
        (0, -1, 1),
        (0, 0, -1),
        (2**63 - 1, 0, 1),
    ],
)
def test_pieces_outside_are_refused(source: int, target: int, size: int) -> None:
    out = np.zeros(10, np.uint8)
    with pytest.raises(ValueError, match="piece"):
        scatter(SOURCE, np.array([source]), np.array([target]), np.array([size]), out)
    assert not out.any()


# --- from a file ----------------------------------------------------------------------------------

FILE = np.random.default_rng(8).integers(0, 256, 400_000, np.uint8)
PLACES = st.lists(
    st.tuples(
        st.integers(0, len(FILE)),
        st.one_of(st.integers(0, 9), st.integers(0, 5000), st.integers(0, 200_000)),
    ).map(lambda pair: (pair[0], min(pair[0] + pair[1], len(FILE)))),
    max_size=40,
)


@pytest.fixture(scope="module")
def fd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    path: Path = tmp_path_factory.mktemp("gather") / "x"
    path.write_bytes(FILE.tobytes())
    opened = os.open(path, os.O_RDONLY)
    yield opened
    os.close(opened)


@given(ranges=PLACES, rise=st.booleans())
def test_gather_from_file_equals_its_twin(
    fd: int, ranges: list[tuple[int, int]], *, rise: bool
) -> None:
    """Ranges that rise and lie close are read together; others come out right as well."""
    ranges = sorted(ranges) if rise else ranges
    starts, ends = columns(ranges)
    target = np.zeros(total_size(starts, ends, len(FILE)), np.uint8)
    gather_from_file(fd, starts, ends, target)
    assert target.tobytes() == slow_gather(FILE.tobytes(), ranges)


@pytest.mark.parametrize("step", [1, 10, 4000, 5000, 70_000])
def test_gather_from_file_of_evenly_spaced_rows(fd: int, step: int) -> None:
    starts = np.arange(0, len(FILE) - 100, step, dtype=np.int64)[:3000]
    target = np.zeros(100 * len(starts), np.uint8)
    gather_from_file(fd, starts, starts + 100, target)
    assert target.tobytes() == b"".join(FILE[at : at + 100].tobytes() for at in starts)


def test_gather_beyond_the_file_is_refused(fd: int) -> None:
    for size in (10, 100_000):
        starts, ends = columns([(0, 8), (len(FILE) - 5, len(FILE) - 5 + size)])
        with pytest.raises(EOFError):
            gather_from_file(fd, starts, ends, np.zeros(8 + size, np.uint8))
    starts, ends = columns([(5, 4)])
    with pytest.raises(ValueError, match="range 5"):
        gather_from_file(fd, starts, ends, np.zeros(0, np.uint8))
    starts, ends = columns([(0, 4)])
    with pytest.raises(ValueError, match="target"):
        gather_from_file(fd, starts, ends, np.zeros(5, np.uint8))
    with pytest.raises(OSError, match="file descriptor"):
        gather_from_file(-1, starts, ends, np.zeros(4, np.uint8))
