"""Sets of rows beside sets of Python's own."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pennon.index.row_set import ALL, NONE, RowMask, RowSet, Selection, of_fragments

MOST = 60
SETS = st.sets(st.integers(0, MOST - 1))
EVERY = set(range(MOST))


def row_set(numbers: set[int]) -> RowSet:
    return RowSet.of(np.array(list(numbers), np.uint64))


def members(rows: RowSet) -> set[int]:
    """Return those of the first numbers that are in a set; its ranges rise and do not touch."""
    assert (rows.lasts >= rows.starts).all()
    assert all(int(b) - int(a) > 1 for a, b in zip(rows.lasts[:-1], rows.starts[1:], strict=True))
    found = set(np.flatnonzero(rows.contains(np.arange(MOST, dtype=np.uint64))).tolist())
    falling = np.arange(MOST - 1, -1, -1, dtype=np.uint64)
    assert found == set(falling[rows.contains(falling)].tolist())
    pairs = zip(rows.starts.tolist(), rows.lasts.tolist(), strict=True)
    assert found == {n for a, b in pairs for n in range(a, min(b + 1, MOST))}
    return found


@given(SETS, SETS, SETS)
def test_row_set_operations_equal_python_sets(a: set[int], b: set[int], c: set[int]) -> None:
    x, y, z = map(row_set, (a, b, c))
    assert members(x) == a
    assert members(x.union(y, z)) == a | b | c
    assert members(x.intersection(y)) == a & b
    assert members(x.complement()) == EVERY - a
    assert members(x.complement().complement()) == a
    assert members(x.complement().intersection(y)) == b - a
    assert members(x.complement().union(y)) == (EVERY - a) | b
    assert members(x.complement().intersection(y.complement())) == EVERY - a - b


@given(SETS, st.sampled_from([1, 2, 300]), st.sampled_from([0, 65_000]))
def test_row_mask_equals_its_row_set(a: set[int], times: int, first: int) -> None:
    """It has bits only where ranges are many and close."""
    numbers = {first + n + MOST * time for time in range(times) for n in a}
    asked = np.arange(first - 10 if first else 0, first + MOST * times + 10, dtype=np.uint64)
    mask = RowMask.of(row_set(numbers))
    for each in (asked, asked[::-1].copy()):
        assert mask.contains(each).tolist() == [n in numbers for n in each.tolist()]
    assert mask.bits is None or times > 1


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9))))
def test_ranges_in_any_order_may_overlap(ranges: list[tuple[int, int]]) -> None:
    starts = np.array([start for start, _ in ranges], np.uint64)
    lasts = np.array([start + more for start, more in ranges], np.uint64)
    wanted = {n for start, more in ranges for n in range(start, start + more + 1)}
    assert members(RowSet.of_ranges(starts, lasts)) == wanted


def test_row_set_at_the_ends_of_64_bits() -> None:
    ends = RowSet.of(np.array([0, (1 << 64) - 1], np.uint64))
    inner = ends.complement()
    assert (int(inner.starts[0]), int(inner.lasts[0])) == (1, (1 << 64) - 2)
    assert ends.union(inner).is_all
    assert (ALL.complement().is_empty, NONE.complement().is_all) == (True, True)


def test_row_set_of_adjacent_fragments_is_one_range() -> None:
    rows = of_fragments([3, 7, 4])
    assert rows.starts.tolist() == [3 << 32, 7 << 32]
    assert rows.lasts.tolist() == [(5 << 32) - 1, (8 << 32) - 1]


@given(SETS, SETS, SETS, SETS)
def test_selection_bounds_contain_the_result_of_and_or_not(
    a: set[int], b: set[int], c: set[int], d: set[int]
) -> None:
    """Whatever the truth between the bounds of two parts, it is between those of the whole."""
    left = Selection(row_set(a), row_set(a | b))
    right = Selection(row_set(c), row_set(c | d))
    for truth_of_left in (a, a | b):
        for truth_of_right in (c, c | d):
            both, either = truth_of_left & truth_of_right, truth_of_left | truth_of_right
            found = left.and_(right)
            assert members(found.must) <= both <= members(found.may)
            found = left.or_(right)
            assert members(found.must) <= either <= members(found.may)
    exact = Selection.exact(row_set(a)).and_(Selection.exact(row_set(c)))
    assert exact.is_exact
    assert members(exact.must) == a & c
