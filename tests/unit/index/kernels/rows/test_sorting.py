"""The order of words and strings, beside Python's, and arguments that are refused."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennon.index.kernels.rows.sorting import order_strings, order_words, places_of_strings

WORDS = st.lists(st.one_of(st.integers(0, 3), st.integers(0, (1 << 64) - 1)), max_size=60)
# few letters, zeros among them, so that many strings begin alike and some are the beginning of others
STRINGS = st.lists(st.lists(st.sampled_from([0, 1, 255]), max_size=20).map(bytes), max_size=80)


def in_arrow(strings: list[bytes], kind: type) -> tuple[npt.NDArray[np.uint8], npt.NDArray[Any]]:
    offsets: npt.NDArray[Any] = np.cumsum([0, *map(len, strings)]).astype(kind)
    return np.frombuffer(b"".join(strings), np.uint8), offsets


def in_order(strings: list[bytes], kind: type = np.int32) -> list[int]:
    found: list[int] = order_strings(*in_arrow(strings, kind)).tolist()
    return found


@given(WORDS, st.integers(0, (1 << 64) - 1))
def test_order_words_equals_python(words: list[int], least: int) -> None:
    found = order_words(np.array(words, np.uint64), least).tolist()
    assert found == sorted(range(len(words)), key=lambda at: (words[at] - least) % (1 << 64))


@pytest.mark.parametrize("most", [1, 1 << 11, 1 << 22, 1 << 45, 1 << 48, 1 << 49, 1 << 63])
@pytest.mark.parametrize("least", [0, 1 << 63, (1 << 64) - 5])
@pytest.mark.parametrize("count", [25, 1 << 15, 50_000])
def test_order_words_of_many_words_equals_numpy(most: int, least: int, count: int) -> None:
    """Keys of up to 64 bits less those of a place are sorted as one word; 2^15 places have 15 bits."""
    keys = np.random.default_rng(most % 99).integers(0, most, count).astype(np.uint64)
    keys[-1] = most - 1
    words = keys + np.uint64(least)
    assert (order_words(words, least) == np.argsort(keys, kind="stable")).all()


@given(STRINGS, st.sampled_from([np.int32, np.int64]))
def test_order_strings_equals_python(strings: list[bytes], kind: type) -> None:
    assert in_order(strings, kind) == sorted(range(len(strings)), key=strings.__getitem__)


@pytest.mark.parametrize(
    "strings",
    [
        [b"x"] * 500,
        [b""] * 300 + [b"\0"] * 300 + [b"\0" * 9] * 300,
        [b"the same beginning of all " * 3 + str(n * 7919 % 1000).encode() for n in range(3000)],
        [b"a" * (n % 40) for n in range(2000)],
    ],
    ids=["equal", "zeros", "long", "beginnings"],
)
def test_order_strings_of_many_strings_equals_python(strings: list[bytes]) -> None:
    assert in_order(strings) == sorted(range(len(strings)), key=strings.__getitem__)


def test_order_strings_with_offsets_above_zero() -> None:
    data = np.frombuffer(b"..bca", np.uint8)
    assert order_strings(data, np.array([2, 3, 4, 5], np.int32)).tolist() == [2, 0, 1]


@pytest.mark.parametrize("offsets", [[0, 5], [3, 1], [-1, 2], [0, 2, 1], []], ids=str)
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_order_strings_with_wrong_offsets_is_refused(offsets: list[int], kind: type) -> None:
    with pytest.raises(ValueError, match="offsets"):
        order_strings(np.zeros(4, np.uint8), np.array(offsets, kind))


@given(STRINGS, STRINGS, st.sampled_from([np.int32, np.int64]))
def test_places_of_strings(strings: list[bytes], others: list[bytes], kind: type) -> None:
    strings.sort()
    arrays = *in_arrow(strings, kind), *in_arrow(others, kind)
    before, behind = (places_of_strings(*arrays, behind=each).tolist() for each in (False, True))
    assert before == [bisect_left(strings, each) for each in others]
    assert behind == [bisect_right(strings, each) for each in others]


@pytest.mark.parametrize("offsets", [[0, 5], [-1, 2], [2, 1], []])
def test_places_of_strings_with_wrong_offsets_is_refused(offsets: list[int]) -> None:
    good = in_arrow([b"abc"], np.int64)
    wrong = np.frombuffer(b"abc", np.uint8), np.array(offsets, np.int64)
    with pytest.raises(ValueError, match="offsets of strings"):
        places_of_strings(*wrong, *good, behind=False)
    with pytest.raises(ValueError, match="offsets of strings"):
        places_of_strings(*good, *wrong, behind=False)
