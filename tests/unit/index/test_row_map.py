"""Row maps: the new addresses of rows after a compaction, and removed rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennon.errors import FormatError
from pennon.index.row_map import RowMap
from pennon.index.row_set import RowSet

MOVES = RowMap(
    np.array([0, 10, 20], np.uint64),
    np.array([3, 14, 20], np.uint64),
    np.array([100, 7, 0], np.uint64),
)
WHERE = {**{n: 100 + n for n in range(4)}, **{n: n - 3 for n in range(10, 15)}, 20: 0}


@given(st.lists(st.integers(0, 25)))
def test_row_map_of_single_rows(old: list[int]) -> None:
    found, there = MOVES.numbers(np.array(old, np.uint64))
    assert there.tolist() == [n in WHERE for n in old]
    assert found.tolist() == [WHERE[n] for n in old if n in WHERE]


@given(st.sets(st.integers(0, 25)))
def test_row_map_of_row_sets(old: set[int]) -> None:
    found = MOVES.rows(RowSet.of(np.array(sorted(old), np.uint64)))
    assert found.numbers().tolist() == sorted(WHERE[n] for n in old if n in WHERE)


@given(st.sets(st.integers(0, 25)))
def test_row_maps_in_sequence(old: set[int]) -> None:
    later = RowMap(
        np.array([0, 5, 100, 103], np.uint64),
        np.array([2, 9, 101, 103], np.uint64),
        np.array([50, 0, 60, 3], np.uint64),
    )
    rows = RowSet.of(np.array(sorted(old), np.uint64))
    found = MOVES.then(later).rows(rows)
    assert found.numbers().tolist() == later.rows(MOVES.rows(rows)).numbers().tolist()


def test_rows_of_fragments_one_after_another() -> None:
    starts, lasts = np.array([4, 20, 3], np.uint64), np.array([6, 20, 3], np.uint64)
    found, there = RowMap.joined([RowMap.of_order(starts, lasts, [7, 8, 9], [2, 0, 3])]).numbers(
        np.array([3, 4, 5, 6, 7, 20], np.uint64)
    )
    at = [(int(number) >> 32, int(number) & 0xFFFFFFFF) for number in found]
    assert at == [(9, 2), (7, 0), (7, 1), (9, 0), (9, 1)]
    assert there.tolist() == [True, True, True, True, False, True]


def test_row_map_with_too_many_new_rows_is_refused() -> None:
    one = np.array([4], np.uint64)
    with pytest.raises(FormatError, match="1 rows of fragments were rewritten as 2"):
        RowMap.of_order(one, one, [7], [2])


def test_empty_row_map() -> None:
    nothing = RowMap.keeping(RowSet.of(np.empty(0, np.uint64)))
    assert nothing.rows(RowSet.of(np.array([1, 2], np.uint64))).is_empty
    assert not nothing.numbers(np.array([1, 2], np.uint64))[1].any()


def test_row_map_of_unmoved_rows() -> None:
    kept = RowMap.keeping(RowSet.of(np.array([4, 5, 9], np.uint64)))
    found, there = kept.numbers(np.array([9, 6, 4], np.uint64))
    assert found.tolist() == [9, 4]
    assert there.tolist() == [True, False, True]
