"""Sets of rows as ranges beside sets of Python's own, and arguments that are refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennon.index.kernels.rows.row_ranges import (
    are_in_bits,
    are_in_ranges,
    bits_of,
    common_ranges,
    count_common,
    ranges_of,
    united_ranges,
)

Array = npt.NDArray[np.uint64]
GREATEST = (1 << 64) - 1
NUMBERS = st.integers(0, 90) | st.integers(GREATEST - 30, GREATEST)
SETS = st.sets(NUMBERS, max_size=60)


def array(numbers: list[int]) -> Array:
    return np.array(numbers, np.uint64)


def ranges(numbers: set[int]) -> tuple[Array, Array]:
    starts = sorted(each for each in numbers if each - 1 not in numbers)
    return array(starts), array(sorted(each for each in numbers if each + 1 not in numbers))


def same(found: tuple[Array, Array], wanted: set[int]) -> bool:
    starts, lasts = ranges(wanted)
    return found[0].tolist() == starts.tolist() and found[1].tolist() == lasts.tolist()


@given(SETS, SETS)
def test_row_ranges_common_united_and_counted(a: set[int], b: set[int]) -> None:
    assert same(common_ranges(*ranges(a), *ranges(b)), a & b)
    assert same(united_ranges(*ranges(a), *ranges(b)), a | b)
    assert count_common(*ranges(a), *ranges(b)) == len(a & b)


@given(SETS, st.lists(NUMBERS, max_size=60))
def test_row_ranges_contain_the_numbers_of_a_set(a: set[int], numbers: list[int]) -> None:
    for order in (numbers, sorted(numbers), sorted(numbers, reverse=True)):
        found = are_in_ranges(*ranges(a), array(order))
        assert found.dtype == np.bool_
        assert found.tolist() == [each in a for each in order]
        bits = bits_of(*ranges(a), 100)
        assert bits is not None
        assert are_in_bits(*bits, array(order)).tolist() == found.tolist()


@given(st.lists(NUMBERS, max_size=60))
def test_the_ranges_of_numbers(numbers: list[int]) -> None:
    found = ranges_of(array(sorted(numbers)))
    assert found is not None
    assert same(found, set(numbers))
    is_sorted = numbers == sorted(numbers)
    assert (ranges_of(array(numbers)) is None) is not is_sorted


def test_a_set_as_bits_of_blocks() -> None:
    starts, lasts = (
        array([5, 65_000, 1 << 40, GREATEST - 70]),
        array([5, 200_000, (1 << 40) + 1, GREATEST]),
    )
    found = bits_of(starts, lasts, 6)
    assert found is not None
    assert found[0].tolist() == [0, 1, 2, 3, 1 << 24, GREATEST >> 16]
    near = [
        n + d
        for n in (5, 65_000, 65_535, 131_071, 200_000, 1 << 40, 3 << 40)
        for d in (-1, 0, 1, 2)
    ]
    asked = array([*near, GREATEST - 71, GREATEST - 70, GREATEST - 64, GREATEST - 63, GREATEST, 0])
    assert are_in_bits(*found, asked).tolist() == are_in_ranges(starts, lasts, asked).tolist()
    assert bits_of(starts, lasts, 5) is None


@pytest.mark.parametrize("step", [1, 7, 1000, 60_000])
def test_a_few_numbers_among_many_ranges(step: int) -> None:
    even = np.arange(0, 200_000, 2, dtype=np.uint64)
    some = np.arange(0, 200_000, step, dtype=np.uint64)
    assert are_in_ranges(even, even, some).tolist() == (some % 2 == 0).tolist()
    starts, lasts = common_ranges(even, even, some, some)
    assert starts.tolist() == lasts.tolist() == some[some % 2 == 0].tolist()
    assert count_common(some, some, even, even) == len(starts)
    assert united_ranges(even, even, array([0]), array([GREATEST]))[1].tolist() == [GREATEST]


@pytest.mark.parametrize(
    "call",
    [
        lambda: bits_of(array([1, 3]), array([3, 4]), 9),
        lambda: bits_of(array([3]), array([1]), 9),
        lambda: are_in_bits(array([1, 2]), array([0] * 1024), array([1])),
        lambda: bits_of(array([1]), array([]), 9),
        lambda: are_in_ranges(array([1]), array([]), array([1])),
        lambda: common_ranges(array([1]), array([1]), array([]), array([1])),
        lambda: united_ranges(array([]), array([1]), array([]), array([])),
        lambda: count_common(array([1, 2]), array([1]), array([]), array([])),
    ],
)
def test_row_ranges_refuse_arrays_that_do_not_fit(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"a start and a last number|do not overlap|1,024 words"):
        call()


def test_invalid_row_ranges_stay_within_the_arrays() -> None:
    """Sets that are damaged, of which this promises no more than to end."""
    random = np.random.default_rng(5)
    for _ in range(200):
        a, b, c, d = (random.integers(0, 50, 20).astype(np.uint64) for _ in range(4))
        assert len(common_ranges(a, b, c, d)[0]) <= 40
        assert len(united_ranges(a, b, c, d)[0]) <= 40
        assert len(are_in_ranges(a, b, c)) == 20
        assert count_common(a, b, c, d) >= 0
