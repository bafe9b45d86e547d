"""Positions of version 0.1: a slow twin, and refusals."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennon.encoding.kernels.positions import decode_positions
from pennon.errors import FormatError


def slow(
    stored: list[int], counts: list[int], mark_empty: bool
) -> tuple[list[int], list[bool], list[int], list[int]]:
    offsets, valid, starts, ends = [0], [], [], []
    at = 0
    for count in counts:
        run = stored[at : at + count + 1]
        at += count + 1
        starts.append(run[0])
        ends.append(run[-1])
        for start, end in pairwise(run):
            offsets.append(offsets[-1] + end - start)
            valid.append(end > start or not mark_empty)
    return offsets, valid, starts, ends


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=12), max_size=6),
    st.sampled_from([np.int32, np.int64]),
    st.booleans(),
    st.booleans(),
)
def test_decode_positions_equals_the_twin(
    runs: list[list[int]], kind: type[np.int32 | np.int64], mark_empty: bool, wide: bool
) -> None:
    stored = [int(each) for run in runs for each in np.cumsum(run)]
    counts = np.array([len(run) - 1 for run in runs], np.int64)
    pages = np.arange(len(runs), dtype=np.int64)
    limits = np.full(len(runs), 40, np.int64)
    got = decode_positions(np.array(stored, kind), counts, pages, limits, mark_empty, wide)
    offsets, valid, starts, ends = slow(stored, counts.tolist(), mark_empty)
    assert got[0].tolist() == offsets
    assert got[0].dtype == (np.int64 if wide else np.int32)
    if all(valid):
        assert got[1] is None
    else:
        assert got[1] is not None
        bits = np.unpackbits(got[1], bitorder="little", count=len(valid))
        assert bits.astype(bool).tolist() == valid
    assert (got[2].tolist(), got[3].tolist()) == (starts, ends)


def decode(stored: list[int], counts: list[int], pages: list[int], limit: int = 10) -> None:
    runs = len(counts)
    decode_positions(
        np.array(stored, np.int64),
        np.array(counts, np.int64),
        np.array(pages, np.int64),
        np.full(runs, limit, np.int64),
        mark_empty=True,
        wide=False,
    )


@pytest.mark.parametrize(
    ("stored", "counts", "pages", "message"),
    [
        ([5, 4], [1], [0], "fall"),
        ([1, 3, 2, 4], [3], [0], "fall"),
        ([-1, 4], [1], [0], "fall"),
        ([1, 11], [1], [0], "behind the end"),
        ([0, 5, 4, 6], [1, 1], [0, 0], "fall"),
        ([0], [1], [0], "too few"),
        ([0, 1], [-1], [0], "too few"),
        ([], [0], [0], "too few"),
    ],
)
def test_damaged_positions_are_refused(
    stored: list[int], counts: list[int], pages: list[int], message: str
) -> None:
    with pytest.raises(FormatError, match=message):
        decode(stored, counts, pages)


def test_positions_after_runs_of_other_pages() -> None:
    decode([0, 5, 4, 6], [1, 1], [0, 1])


def test_32_bits_are_too_few() -> None:
    with pytest.raises(OverflowError):
        decode([0, 1 << 31], [1], [0], 1 << 40)
    with pytest.raises(OverflowError):
        decode([0, 1 << 30, 0, 1 << 30], [1, 1], [0, 1], 1 << 40)


def test_arrays_of_different_length() -> None:
    with pytest.raises(ValueError, match="differ in length"):
        decode([0, 1], [1], [0, 0])
