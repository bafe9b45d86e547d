"""The kernel that finds which numbers are among others, beside numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennon.expr.kernels.among import find_among

WORDS = st.lists(st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-20, 20))


@given(WORDS, WORDS)
def test_among_equals_numpy(values: list[int], wanted: list[int]) -> None:
    check(np.array(values, np.int64), np.array(wanted, np.int64))


@pytest.mark.parametrize("step", [1, 1 << 20, 1 << 48])
def test_among_of_many_numbers_equals_numpy(step: int) -> None:
    random = np.random.default_rng(3)
    values = random.integers(-3000, 3000, 10_000) * step
    check(values, random.integers(-3000, 3000, 2_000) * step)


@pytest.mark.parametrize("low", [-(1 << 63), -700, 0, (1 << 63) - 1000])
def test_among_of_numbers_close_together_equals_numpy(low: int) -> None:
    random = np.random.default_rng(4)
    wanted = low + random.integers(0, 1000, 300)
    ends = np.array([-(1 << 63), low, low + 999, (1 << 63) - 1, 0], np.int64)
    check(np.concatenate([low + random.integers(0, 1000, 5_000), ends]), wanted)
    check(ends, wanted[:1])


def test_among_finds_numbers_with_colliding_hashes() -> None:
    inverse = pow(0x9E3779B97F4A7C15, -1, 1 << 64)
    alike = np.array([n * inverse % (1 << 64) for n in range(1, 40)], np.uint64).view(np.int64)
    check(alike, alike[::2].copy())


def check(values: np.ndarray, wanted: np.ndarray) -> None:
    """Raise AssertionError unless the kernel finds what numpy finds."""
    bits = np.unpackbits(find_among(values, wanted), bitorder="little")
    assert (bits[: len(values)].astype(bool) == np.isin(values, wanted)).all()
    assert not bits[len(values) :].any()
