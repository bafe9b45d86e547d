"""Rows to ranges of pages, against a slow twin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennon.encoding.rows import Rows
from pennon.encoding.v0_1.picks import Picks
from pennon.errors import FormatError


def places(picks: Picks) -> list[tuple[int, int]]:
    """Return (page, row) of every row picked."""
    found = zip(picks.pages.tolist(), picks.starts.tolist(), picks.ends.tolist(), strict=True)
    return [(page, row) for page, start, end in found for row in range(start, end)]


@given(st.lists(st.integers(0, 5), max_size=8), st.data())
def test_rows_of_pages(sizes: list[int], data: st.DataObject) -> None:
    borders = np.cumsum([0, *sizes]).astype(np.int64)
    every = [(page, row) for page, size in enumerate(sizes) for row in range(size)]
    wanted = sorted(data.draw(st.sets(st.integers(0, max(len(every) - 1, 0))))) if every else []
    for rows in (
        Rows.at(np.array(wanted, np.int64)),
        Rows.between(wanted[0], wanted[-1] + 1) if wanted else Rows.between(0, 0),
    ):
        picks = Picks.of(rows, borders)
        assert places(picks) == [every[row] for row in rows.indices().tolist()]
        assert picks.count == rows.count
        parted = picks.starts[1:] != picks.ends[:-1]
        assert (parted | (picks.pages[1:] != picks.pages[:-1])).all()


@given(st.lists(st.integers(1, 5), min_size=1, max_size=8))
def test_halves_of_picks_equal_the_whole(sizes: list[int]) -> None:
    borders = np.cumsum([0, *sizes]).astype(np.int64)
    whole = Picks.of(Rows.between(0, int(borders[-1])), borders)
    halves = whole.halves()
    if whole.count == 1:
        assert halves is None
        return
    assert halves is not None
    assert places(halves[0]) + places(halves[1]) == places(whole)
    assert halves[0].count + halves[1].count == whole.count
    assert halves[0].count
    assert halves[1].count


def test_items_beyond_63_bits() -> None:
    picks = Picks.of(Rows.between(0, 10), np.array([0, 10], np.int64))
    with pytest.raises(FormatError, match="more than any file holds"):
        picks.scaled(1 << 60)
