"""The offsets kernels against twins that read like the format."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from pennon.encoding.kernels.offsets import decode_end_offsets, encode_end_offsets
from pennon.errors import FormatError


def slow_decode(stored: Any, ranges: Any, adjustment: int) -> Any:
    """Lengths and NULLs of rows, by looking at the whole page."""
    offsets, valid, spans = [0], [], []
    for start, end in ranges:
        ends = [value % adjustment for value in stored]
        first = ends[start - 1] if start else 0
        spans.append((first, ends[end - 1] if end else 0))
        for row in range(start, end):
            before = ends[row - 1] if row else 0
            offsets.append(offsets[-1] + ends[row] - before)
            valid.append(stored[row] < adjustment)
    return offsets, valid, spans


def page_of(chance: random.Random, rows: Any, nulls: float) -> Any:
    lengths = [chance.choice([0, 0, 1, 5]) for _ in range(rows)]
    ends = np.cumsum(lengths).tolist()
    adjustment = (ends[-1] if ends else 0) + 1
    stored = [end + adjustment * (chance.random() < nulls) for end in ends]
    return stored, adjustment


def entries_for(stored: Any, ranges: Any) -> Any:
    """What `read_spans` reads: the entry in front of a range, unless the range before ends there."""
    read, leads, previous = [], [], 0
    for start, end in ranges:
        leads.append(int(start > previous))
        read += stored[start - leads[-1] : end]
        previous = end
    return read, leads


def decode(
    read: Any,
    ranges: Any,
    leads: Any,
    adjustment: int,
    limit: Any,
    width: int = 8,
    *,
    wide: bool = False,
) -> Any:
    starts = np.array([start for start, _ in ranges], np.int64)
    ends = np.array([end for _, end in ranges], np.int64)
    stored = np.array(read, f"u{width}")
    return decode_end_offsets(
        stored, starts, ends, np.array(leads, np.uint8), adjustment, limit, wide
    )


@pytest.mark.parametrize("nulls", [0, 0.3, 1])
@pytest.mark.parametrize("width", [1, 2, 4, 8])
@pytest.mark.parametrize("wide", [False, True])
def test_offset_ranges_decode_as_the_whole_page(nulls: float, width: int, wide: bool) -> None:
    chance = random.Random(width)
    for _ in range(60):
        stored, adjustment = page_of(chance, chance.randint(1, 25), nulls)
        cuts = sorted(chance.sample(range(len(stored) + 1), 2 * min(3, (len(stored) + 1) // 2)))
        ranges = list(zip(cuts[0::2], cuts[1::2], strict=True))
        if chance.random() < 0.5 and cuts:  # ranges that touch
            ranges = list(pairwise(cuts))
        read, leads = entries_for(stored, ranges)
        offsets, validity, first, last = decode(
            read, ranges, leads, adjustment, 255, width, wide=wide
        )
        want_offsets, want_valid, want_spans = slow_decode(stored, ranges, adjustment)
        assert offsets.tolist() == want_offsets
        assert offsets.dtype == (np.int64 if wide else np.int32)
        assert list(zip(first.tolist(), last.tolist(), strict=True)) == want_spans
        if validity is None:
            assert all(want_valid)
        else:
            bits = np.unpackbits(validity, bitorder="little", count=len(want_valid))
            assert bits.astype(bool).tolist() == want_valid


@pytest.mark.parametrize(
    ("read", "ranges", "leads", "adjustment", "what"),
    [
        ([3, 2], [(0, 2)], [0], 9, "fall"),
        ([3, 11], [(0, 2)], [0], 9, "fall"),
        ([3, 18 + 3], [(0, 2)], [0], 9, "beyond"),
        ([3, 7], [(0, 2)], [0], 9, "beyond"),
        ([8, 8], [(2, 3)], [1], 9, "beyond"),
        ([5, 6, 4, 6], [(1, 2), (5, 6)], [1, 1], 9, "fall"),
        ([1], [(0, 2)], [0], 9, "too few"),
        ([0], [(0, 1)], [0], 0, "beyond"),
    ],
)
def test_damaged_offsets_are_format_errors(
    read: Any, ranges: Any, leads: Any, adjustment: int, what: str
) -> None:
    with pytest.raises(FormatError, match=what):
        decode(read, ranges, leads, adjustment, 6)


def test_huge_values_neither_wrap_nor_pass() -> None:
    top = 2**64 - 1
    for read, adjustment in [([top - 1], top), ([2**63], top), ([top], 1), ([top], 2**63 - 1)]:
        with pytest.raises(FormatError):
            decode(read, [(0, 1)], [0], adjustment, 2**63 - 1)


def test_offsets_beyond_31_bits_need_wide_offsets() -> None:
    with pytest.raises(OverflowError):
        decode([2**31], [(0, 1)], [0], 2**40, 2**63 - 1)
    offsets, *_ = decode([2**31], [(0, 1)], [0], 2**40, 2**63 - 1, wide=True)
    assert offsets.tolist() == [0, 2**31]


def test_encode_is_the_example_of_the_format() -> None:
    """ab, NULL, c of S4: ends 2, 2, 3 and an adjustment of 4."""
    offsets = np.array([2, 2, 4, 4, 5], np.int32)  # a sliced array: one row is cut off in front
    stored, adjustment, hidden = encode_end_offsets(offsets[1:], np.array([0b1010], np.uint8), 1)
    assert (stored.tolist(), adjustment, hidden) == ([2, 2 + 4, 3], 4, 0)


def test_encode_offsets_counts_bytes_under_nulls() -> None:
    stored, adjustment, hidden = encode_end_offsets(
        np.array([0, 3, 5], np.int64), np.array([0b10], np.uint8), 0
    )
    assert (stored.tolist(), adjustment, hidden) == ([3 + 6, 5], 6, 3)


def test_encode_checks_the_bitmap() -> None:
    with pytest.raises(ValueError, match="too short"):
        encode_end_offsets(np.zeros(10, np.int32), np.zeros(1, np.uint8), 0)
