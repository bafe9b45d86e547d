"""The choice of fragments that are compacted together, and the rows of new files."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennon.core.units import FragmentId
from pennon.ops.compact.choose import choose, even_shares
from pennon.ops.compact.options import CompactOptions
from pennon.table.fragment import DataFileRef, Fragment
from pennon.table.indices import Index


def bins(
    sizes: list[tuple[int, int]], indices: list[frozenset[int] | None] | None = None, **options: Any
) -> list[list[int]]:
    """Return the ids of the bins of fragments of (physical, live) rows, of 10 bytes a row."""
    fragments = [
        (Fragment(FragmentId(n), (DataFileRef("x", (), (), 2, 1, 10 * rows),), rows), rows, live)
        for n, (rows, live) in enumerate(sizes)
    ]
    known = [
        Index(
            uuid=str(number),
            name="i",
            field_ids=(),
            fragment_ids=None if ids is None else frozenset(map(FragmentId, ids)),
            dataset_version=1,
        )
        for number, ids in enumerate(indices or [])
    ]
    found = choose(fragments, known, CompactOptions(**options))
    return [[candidate.fragment.id for candidate in each] for each in found]


FULL, SMALL = (100, 100), (10, 10)


def test_compaction_bins_join_neighbours_and_skip_single_fragments() -> None:
    sizes = [FULL, SMALL, SMALL, FULL, SMALL, FULL, SMALL, SMALL]
    assert bins(sizes, target_rows_per_fragment=50) == [[1, 2], [6, 7]]


def test_deleted_rows_are_a_reason_by_themselves() -> None:
    sizes = [FULL, (100, 90), (100, 89), FULL]
    assert bins(sizes, target_rows_per_fragment=50) == [[2]]
    assert bins(sizes, target_rows_per_fragment=50, materialize_deletions_threshold=0.0) == [
        [1],
        [2],
    ]
    assert bins(sizes, target_rows_per_fragment=50, materialize_deletions=False) == []
    assert bins([(0, 0), (5, 0)], target_rows_per_fragment=1) == [[0, 1]]


def test_compaction_bins_are_split_at_the_target_rows() -> None:
    assert bins([SMALL] * 5, target_rows_per_fragment=20) == [[0, 1], [2, 3, 4]]
    assert bins([SMALL] * 9, target_rows_per_fragment=25) == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_fragments_of_different_indices_are_not_mixed() -> None:
    covered = frozenset({0, 1, 2})
    assert bins([SMALL] * 5, [covered]) == [[0, 1, 2], [3, 4]]
    assert bins([SMALL] * 5, [covered, frozenset({1})]) == [[3, 4]]
    assert bins([SMALL] * 5, [None]) == [[0, 1, 2, 3, 4]]


def test_compaction_bins_end_at_excluded_fragments() -> None:
    assert bins([SMALL] * 5, excluded_fragment_ids=(2, 2, 99)) == [[0, 1], [3, 4]]


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        ({"max_source_fragments": 2}, [[0, 1]]),
        ({"max_source_fragments": 1}, []),
        ({"max_source_rows": 39}, [[0, 1]]),
        ({"max_source_rows": 40}, [[0, 1], [2, 3]]),
        ({"max_source_bytes": 399}, [[0, 1]]),
        ({"max_source_bytes": 100_000}, [[0, 1], [2, 3], [4, 5, 6]]),
    ],
)
def test_bounds_of_one_compaction(bound: dict[str, Any], expected: list[list[int]]) -> None:
    assert bins([SMALL] * 7, target_rows_per_fragment=20, **bound) == expected


def test_compaction_bins_skip_files_at_the_byte_limit() -> None:
    """Rows of 10 bytes; a file ends for its bytes from 1,024 rows on."""
    full, half = (2000, 2000), (1000, 1000)
    assert bins([full, full, full], max_bytes_per_file=20_000) == []
    assert bins([half, half, full], max_bytes_per_file=20_000) == [[0, 1]]
    assert bins([full, half, half, half], max_bytes_per_file=20_000) == [[1, 2, 3]]
    assert bins([(2000, 1000), full], max_bytes_per_file=20_000) == [[0]]
    assert bins([(1900, 1900)] * 3, max_bytes_per_file=20_000) == []
    assert bins([(1900, 1900)] * 3, max_bytes_per_file=30_000) == [[0, 1, 2]]
    assert bins([SMALL, SMALL], max_bytes_per_file=1) == [[0, 1]]


@given(st.integers(0, 10_000), st.integers(1, 500))
def test_compaction_files_have_even_row_counts(rows: int, target: int) -> None:
    shares = even_shares(rows, target)
    assert sum(shares) == rows
    assert all(share >= min(target, rows) for share in shares)
    assert not shares or max(shares) - min(shares) <= 1
    assert not shares or max(shares) < 2 * target or rows < target
