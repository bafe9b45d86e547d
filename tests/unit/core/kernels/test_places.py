"""Places of numbers among sorted ones, and few numbers in order: as NumPy finds them."""

from __future__ import annotations

import numpy as np
import pytest

from pennon.core.counted import counted
from pennon.core.kernels.places import place_of_uint64, places, sort_few


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("kind", list("bBhHiIqQlL"))
@pytest.mark.parametrize("wanted", [0, 1, 7, 3000])
def test_places_of_each_integer_type_equal_numpy(kind: str, wanted: int, *, behind: bool) -> None:
    dtype = np.dtype(kind)
    bounds = np.iinfo(dtype)
    draw = np.random.default_rng(wanted)
    for count in (0, 1, 2, 63, 500):
        numbers = np.sort(draw.integers(bounds.min, bounds.max, count, dtype, endpoint=True))
        others = draw.integers(bounds.min, bounds.max, wanted, dtype, endpoint=True)
        others[: min(count, wanted)] = numbers[:wanted]  # equal ones as well
        found = places(numbers, others, behind)
        assert found.dtype == np.int64
        assert (found == numbers.searchsorted(others, "right" if behind else "left")).all()


def test_places_of_slices_floats_and_mixed_types_equal_numpy() -> None:
    numbers, others = np.arange(0, 60, 3), np.arange(70)
    assert (places(numbers[::2], others) == numbers[::2].searchsorted(others)).all()
    assert (places(numbers, others[::-1]) == numbers.searchsorted(others[::-1])).all()
    floats = numbers.astype(np.float64)
    assert (
        places(floats, others / 2, behind=True) == floats.searchsorted(others / 2, "right")
    ).all()
    narrow = others.astype(np.uint8)
    assert (places(numbers, narrow) == numbers.searchsorted(narrow)).all()
    swapped = numbers.astype(numbers.dtype.newbyteorder())
    assert (places(swapped, others) == numbers.searchsorted(others)).all()


def test_place_of_one_number_of_64_bits() -> None:
    numbers = np.array([0, 5, 5, (1 << 64) - 1], np.uint64)
    assert [place_of_uint64(numbers, each) for each in (0, 5, 6, (1 << 64) - 1)] == [0, 1, 3, 3]
    assert [place_of_uint64(numbers, each, behind=True) for each in (0, 5, 6)] == [1, 3, 3]
    assert place_of_uint64(numbers[:0], 7) == 0


@pytest.mark.parametrize("count", [0, 1, 2, 3, 64, 65, 1000])
def test_few_numbers_are_sorted_as_numpy_does(count: int) -> None:
    draw = np.random.default_rng(count)
    for most in (1, 10, 1 << 20, (1 << 64) - 1):
        numbers = draw.integers(0, most, count, np.uint64, endpoint=True)
        found, order = sort_few(numbers)
        expected, inverse = np.unique(numbers, return_inverse=True)
        assert (found == expected).all()
        assert (order == inverse).all()
        assert (found[order] == numbers).all()


def test_counted_numbers_cannot_be_changed() -> None:
    for count in (0, 1, 4096):
        assert (counted(count) == np.arange(count)).all()
    assert (counted(5000) == np.arange(5000)).all()
    with pytest.raises(ValueError, match="read-only"):
        counted(3)[0] = 1
