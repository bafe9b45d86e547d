"""Posting lists put in order and thinned out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennon.index.kernels.text.posting_lists import (
    gather_runs,
    keep_documents,
    order_of_numbers,
    sort_places,
)


def words(values: list[int]) -> np.ndarray:
    return np.array(values, np.uint32)


def longs(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


@given(st.lists(st.integers(0, 9), max_size=50))
def test_order_of_numbers_is_stable(numbers: list[int]) -> None:
    ends, order = np.full(11, 7, np.int64), np.empty(len(numbers), np.int64)
    order_of_numbers(words(numbers), ends, order)
    assert order.tolist() == sorted(range(len(numbers)), key=numbers.__getitem__)
    assert np.diff(ends).tolist() == [numbers.count(each) for each in range(10)]


def test_order_of_numbers_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="too great"):
        order_of_numbers(words([0, 3]), np.zeros(4, np.int64), np.empty(2, np.int64))
    with pytest.raises(ValueError, match="no room"):
        order_of_numbers(words([0]), np.zeros(4, np.int64), np.empty(2, np.int64))


def test_runs_in_another_order() -> None:
    out = np.empty(5, np.uint32)
    gather_runs(words([1, 2, 3, 4, 5]), longs([0, 2, 2]), words([2, 0, 3]), longs([2, 1, 0]), out)
    assert out.tolist() == [3, 4, 5, 1, 2]
    for starts, counts, order in (
        ([0, 3], [2, 3], [0, 1]),
        ([0, -1], [2, 3], [0, 1]),
        ([0, 2], [2, 3], [0, 2]),
        ([0, 2], [2, 3], [0]),
        ([0, 2], [2], [0]),
    ):
        with pytest.raises(ValueError, match="runs of values"):
            gather_runs(words([1, 2, 3, 4, 5]), longs(starts), words(counts), longs(order), out)


def test_keep_documents_removes_deleted_documents() -> None:
    ends, docs, often = longs([0, 2, 2, 5]), words([0, 2, 0, 1, 2]), words([1, 2, 3, 1, 1])
    places = words([4, 5, 6, 7, 8, 9, 1, 2])
    assert keep_documents(ends, docs, often, places, longs([-1, 5, 6])) == (3, 4)
    assert ends.tolist() == [0, 1, 1, 3]
    assert docs[:3].tolist() == [6, 5, 6]
    assert often[:3].tolist() == [2, 1, 1]
    assert places[:4].tolist() == [5, 6, 1, 2]


def test_keep_documents_with_wrong_arrays_is_refused() -> None:
    none = words([])
    with pytest.raises(ValueError, match="differ in number"):
        keep_documents(longs([0, 2]), words([0]), words([1]), none, longs([0]))
    with pytest.raises(ValueError, match="not there"):
        keep_documents(longs([0, 1]), words([1]), words([1]), none, longs([0]))
    with pytest.raises(ValueError, match="too few positions"):
        keep_documents(longs([0, 1]), words([0]), words([2]), words([3]), longs([0]))
    with pytest.raises(ValueError, match="not there"):
        keep_documents(longs([0, 2, 1]), words([0]), words([1]), none, longs([0]))


@given(st.lists(st.lists(st.integers(0, 6), max_size=8), max_size=9), st.booleans())
def test_places_become_lists(documents: list[list[int]], has_positions: bool) -> None:
    tokens = words([token for each in documents for token in each])
    lengths = words([len(each) for each in documents])
    positions = words([at for each in documents for at in range(len(each)) if has_positions])
    ends, placed = longs([9] * 8), np.empty_like(positions)
    docs, often = np.empty_like(tokens), np.empty_like(tokens)
    kept = sort_places(tokens, lengths, positions, ends, docs, often, placed)
    assert ends[-1] == kept
    start = 0
    for token in range(7):
        mine = {at: each for at, each in enumerate(documents) if token in each}
        here = slice(int(ends[token]), int(ends[token + 1]))
        assert docs[here].tolist() == [*mine]
        assert often[here].tolist() == [each.count(token) for each in mine.values()]
        places = [at for each in mine.values() for at, found in enumerate(each) if found == token]
        if has_positions:
            assert placed[start : start + len(places)].tolist() == places
        start += len(places)


def test_sort_places_with_wrong_arrays_is_refused() -> None:
    two, ends, none = words([0, 1]), longs([0, 0, 0]), words([])

    def fails(tokens: list[int], lengths: list[int], positions: list[int], room: int) -> None:
        made, placed = np.empty(room, np.uint32), np.empty(len(positions), np.uint32)
        given = words(tokens), words(lengths), words(positions)
        with pytest.raises(ValueError, match=r"differ in number|too great"):
            sort_places(*given, ends, made, made.copy(), placed)

    fails([0, 1], [1], [], 2)
    fails([0, 1], [2], [1], 2)
    fails([0, 1], [2], [], 1)
    fails([0, 2], [2], [], 2)
    assert sort_places(two, words([2]), none, ends, two.copy(), two.copy(), none) == 2
