"""Maps of rows that compactions moved, beside dictionaries of Python's own."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennon.core.units import FragmentId
from pennon.errors import FormatError
from pennon.index.moved_rows import MovedRows
from pennon.index.row_set import ALL, RowSet, Selection
from pennon.table.fragment_reuse import FragmentDigest, ReuseGroup, ReuseVersion, covered_now
from pennon.table.roaring import serialize_roaring

MOST = 12
OFFSETS = st.sets(st.integers(0, MOST - 1))
Row = tuple[int, int]


def address(row: Row) -> int:
    return row[0] << 32 | row[1]


def rows_of(rows: Iterable[Row]) -> RowSet:
    return RowSet.of(np.array([address(row) for row in rows], np.uint64))


def treemap(rows: Iterable[Row]) -> bytes:
    highs: dict[int, list[int]] = {}
    for fragment, offset in sorted(rows):
        highs.setdefault(fragment, []).append(offset)
    parts = [
        struct.pack("<I", high) + serialize_roaring(np.array(low, np.uint32))
        for high, low in highs.items()
    ]
    return struct.pack("<Q", len(parts)) + b"".join(parts)


def group(kept: dict[int, set[int]], new: dict[int, int], size: int = MOST) -> ReuseGroup:
    """Return what became of fragments of ``size`` rows each."""
    rows = [(fragment, offset) for fragment, offsets in kept.items() for offset in offsets]
    return ReuseGroup(
        treemap(rows),
        tuple(FragmentDigest(FragmentId(each), size) for each in kept),
        tuple(FragmentDigest(FragmentId(each), rows) for each, rows in new.items()),
    )


def cut(rows: int, first: int) -> dict[int, int]:
    """Return the sizes of new fragments: two, one of one row, one with the rest; one of none besides."""
    return {first: min(rows, 1), first + 1: 0, first + 2: max(rows - 1, 0)}


def moved(kept: dict[int, set[int]], new: dict[int, int]) -> dict[Row, Row]:
    """Return where each row goes, in the order in which the fragments stand."""
    targets = [(fragment, offset) for fragment, rows in new.items() for offset in range(rows)]
    old = [(fragment, offset) for fragment in kept for offset in sorted(kept[fragment])]
    return dict(zip(old, targets, strict=True))


@given(OFFSETS, OFFSETS, OFFSETS, OFFSETS, st.sets(st.tuples(st.integers(0, 4), OFFSETS.map(len))))
def test_rows_move_twice(
    a: set[int], b: set[int], c: set[int], d: set[int], asked: set[Row]
) -> None:
    """Fragments 2 and 0, in this order, become 10 to 12, and these with 1 become 20 to 22; 3 and 4 stay."""
    first = {2: a, 0: b}, cut(len(a) + len(b), 10)
    sizes = first[1]
    second_kept = {10: {n for n in c if n < sizes[10]}, 12: {n for n in c if n < sizes[12]}, 1: d}
    second = second_kept, cut(sum(map(len, second_kept.values())), 20)
    map_1, map_2 = moved(*first), moved(*second)
    groups = [group(*first), group(*second, size=2 * MOST)]
    moves = MovedRows.of([ReuseVersion(5, (groups[0],)), ReuseVersion(9, (groups[1],))])

    def now(row: Row) -> Row | None:
        if row[0] in (0, 2):
            found = map_1.get(row)
            return None if found is None else map_2.get(found)
        return map_2.get(row) if row[0] == 1 else row

    expected = [there for row in asked if (there := now(row)) is not None]
    found = moves.selection(Selection.exact(rows_of(asked)))
    assert found.is_exact
    assert same(found.may, rows_of(expected))
    without = moves.selection(Selection.superset(rows_of(asked).complement()))
    assert without.must.is_empty
    assert same(without.may, rows_of(expected).complement())
    assert moves.selection(Selection.superset(ALL)).may.is_all
    covered = covered_now(frozenset(map(FragmentId, (0, 2, 1, 4))), moves.versions)
    assert covered == {4, 11, 20, 21, 22}


def same(one: RowSet, other: RowSet) -> bool:
    return (
        one.starts.tolist() == other.starts.tolist() and one.lasts.tolist() == other.lasts.tolist()
    )


def test_half_covered_groups_are_not_covered() -> None:
    version = ReuseVersion(1, (group({0: {0}, 1: {0}}, {5: 2}),))
    covered = covered_now(frozenset(map(FragmentId, (0, 3))), [version])
    assert covered == {3}


def test_moved_rows_of_a_later_dropped_fragment() -> None:
    moves = MovedRows.of([ReuseVersion(1, (group({0: {0, 1}}, {5: 2}),))])
    asked = Selection.exact(rows_of([(0, 1), (7, 0)]))
    assert same(moves.selection(asked).may, rows_of([(5, 1), (7, 0)]))
    numbers, there = moves.numbers(np.array([1, 9, 7 << 32], np.uint64))
    assert numbers.tolist() == [(5 << 32) + 1, 7 << 32]
    assert there.tolist() == [True, False, True]


def test_moved_rows_mark_doubtful_fragments_of_old_indices() -> None:
    """Those younger than a compaction that the index is older than, and those that came of such ones."""
    versions = [
        ReuseVersion(5, (group({0: {0}, 1: {0}}, {3: 2}),)),
        ReuseVersion(9, (group({7: {0}, 8: {0}}, {12: 2}),)),
    ]
    moves = MovedRows.of(versions)
    ids = frozenset(map(FragmentId, (2, 3, 4, 12)))
    assert moves.doubtful(ids, 5) == {4, 12}
    assert moves.doubtful(ids, 4) == {4, 12}
    assert moves.doubtful(ids, 6) == frozenset()
    assert moves.doubtful(frozenset([FragmentId(13)]), 6) == {13}
    assert moves.doubtful(ids, 10) == frozenset()
    assert MovedRows.of(versions[:1]).doubtful(frozenset([FragmentId(3)]), 1) == frozenset()


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([group({0: {0, 1}}, {5: 3})], "2 rows of fragments were rewritten as 3"),
        (
            [group({0: {0}}, {5: 1}), group({0: {1}}, {6: 1})],
            "says twice what became of a fragment",
        ),
        ([group({0: {0, 7}}, {5: 2}, size=7)], "keeps rows that its old fragments do not have"),
        ([group({0: {0}}, {1 << 40: 1})], "names fragments that no table has"),
        (
            [ReuseGroup(treemap([(0, 0), (3, 1)]), (FragmentDigest(FragmentId(0), 4),), ())],
            "keeps rows",
        ),
    ],
)
def test_moved_rows_of_impossible_reuse_groups_are_refused(
    groups: list[ReuseGroup], message: str
) -> None:
    with pytest.raises(FormatError, match=message):
        MovedRows.of([ReuseVersion(1, tuple(groups))])
