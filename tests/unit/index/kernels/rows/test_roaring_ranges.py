"""Unions of Roaring bitmaps beside pyroaring's, and bytes that are refused."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64

from pennon.errors import FormatError
from pennon.index.kernels.rows.roaring_ranges import parse_sets

ADDRESSES, TREEMAP = 1, 2
WHOLE = (7).to_bytes(4, "little") + bytes(4)
"""All rows of fragment 7."""
SHAPES = {
    "empty": [],
    "one": [7],
    "ends": [0, 65_535, 65_536, 2**32 - 1],
    "values": range(0, 8192, 2),
    "bits": range(0, 40_000, 3),
    "bits in words": [at for at in range(65_536) if at & 127 < 100],
    "all bits": range(65_536),
    "runs": [*range(100, 60_000), *range(65_530, 65_536), *range(200_000, 200_005)],
    "mixed": [*range(5000), *range(70_000, 140_000, 3), 10**9],
}


def part(high: int, bitmap: BitMap) -> bytes:
    body = bitmap.serialize()
    return high.to_bytes(4, "little") + len(body).to_bytes(4, "little") + body


def address_set(*parts: bytes) -> bytes:
    return len(parts).to_bytes(4, "little") + b"".join(parts)


def bitmap_of(numbers: Iterable[int], *, with_runs: bool) -> BitMap:
    found = BitMap(numbers, optimize=False)
    if with_runs:
        found.run_optimize()
    return found


def parse(sets: list[bytes], form: int) -> list[tuple[int, int]]:
    starts, lasts = parse_sets(b"".join(sets), np.cumsum([0, *map(len, sets)]), form)
    assert (lasts >= starts).all()
    pairs = list(zip(starts.tolist(), lasts.tolist(), strict=True))
    assert all(after[0] > before[1] + 1 for before, after in pairwise(pairs))
    return pairs


def numbers(pairs: list[tuple[int, int]]) -> list[int]:
    return [n for first, last in pairs for n in range(first, last + 1)]


@pytest.mark.parametrize("with_runs", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_containers_of_every_kind(name: str, *, with_runs: bool) -> None:
    bitmap = bitmap_of(SHAPES[name], with_runs=with_runs)
    assert numbers(parse([address_set(part(0, bitmap))], ADDRESSES)) == list(SHAPES[name])


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("other", SHAPES)
def test_roaring_sets_are_united(name: str, other: str) -> None:
    wanted = sorted({*SHAPES[name], *SHAPES[other]})
    for with_runs in (False, True):
        a = bitmap_of(SHAPES[name], with_runs=with_runs)
        b = bitmap_of(SHAPES[other], with_runs=not with_runs)
        sets = [address_set(part(0, a)), address_set(part(0, b))]
        assert numbers(parse(sets, ADDRESSES)) == wanted


@given(
    st.lists(st.sets(st.integers(0, (1 << 34) - 1) | st.integers(0, 99), max_size=30), max_size=4)
)
def test_roaring_treemaps_are_united(groups: list[set[int]]) -> None:
    found = parse([BitMap64(each).serialize() for each in groups], TREEMAP)
    assert numbers(found) == sorted(set().union(*groups))


def test_fragments_in_any_order_and_more_than_once() -> None:
    parts = [part(3, BitMap([5])), part(1, BitMap([9])), part(3, BitMap([4, 70_000]))]
    assert numbers(parse([address_set(*parts)], ADDRESSES)) == [
        (1 << 32) + 9,
        (3 << 32) + 4,
        (3 << 32) + 5,
        (3 << 32) + 70_000,
    ]


def test_roaring_union_with_whole_fragments() -> None:
    some = address_set(part(7, BitMap([0, 5, 70_000])), part(8, BitMap([1])))
    whole = [(7 << 32, (8 << 32) - 1), ((8 << 32) + 1, (8 << 32) + 1)]
    for sets in ([some, address_set(WHOLE)], [address_set(WHOLE), some, address_set(WHOLE)]):
        assert parse(sets, ADDRESSES) == whole
    joined = [address_set(WHOLE), address_set(part(8, BitMap([0])))]
    assert parse(joined, ADDRESSES) == [(7 << 32, 8 << 32)]


def test_roaring_union_of_zero_sets_is_empty() -> None:
    assert parse([], ADDRESSES) == parse([bytes(4)], ADDRESSES) == parse([bytes(8)], TREEMAP) == []


def test_truncated_roaring_sets_are_refused() -> None:
    for with_runs in (False, True):
        values = [*range(10), *range(70_000, 140_000, 2)]
        data = address_set(part(2, bitmap_of(values, with_runs=with_runs)))
        for size in [*range(80), *range(80, len(data), 997)]:
            with pytest.raises(FormatError):
                parse([data[:size]], ADDRESSES)


def test_damaged_roaring_set_raises_format_error_or_parses() -> None:
    rng = random.Random(20)
    whole = address_set(part(0, bitmap_of(range(0, 70_000, 700), with_runs=False)))
    for with_runs in (False, True):
        values = [*range(0, 600, 3), *range(70_000, 80_000)]
        data = address_set(part(0, bitmap_of(values, with_runs=with_runs)))
        for _ in range(1500):
            wrong = bytearray(data)
            wrong[rng.randrange(min(len(data), 80))] ^= 1 << rng.randrange(8)
            try:
                parse([whole, bytes(wrong)], ADDRESSES)
                parse([bytes(wrong)], ADDRESSES)
            except FormatError:
                continue


@pytest.mark.parametrize(
    "body",
    [
        "3a300000 01000000 0000 0100 10000000 0500 0400",  # values that fall
        "3a300000 01000000 0000 0100 10000000 0400 0400",  # one of them twice
        "3a300000 02000000 0100 0000 0100 0000 18000000 1a000000 0400 0500",  # a key twice
        "3b300000 01 0000 0300 0200 0400 0100 0500 0100",  # runs that overlap
        "3b300000 01 0000 0300 0100 0400 0100",  # two numbers that say they are four
        "3b300000 01 0000 0100 0100 ffff 0100",  # a run past the end
        "3a300000 01000100 0000 0100 10000000 0400 0500",  # more containers than there can be
        "3c300000 01000000 0000 0100 10000000 0400 0500",  # another cookie
    ],
)
def test_damaged_roaring_bitmaps_are_refused(body: str) -> None:
    data = bytes.fromhex(body)
    wrong = address_set(bytes(4) + len(data).to_bytes(4, "little") + data)
    for sets in ([wrong], [address_set(part(0, BitMap([9, 5]))), wrong]):
        with pytest.raises(FormatError, match="a set of rows"):
            parse(sets, ADDRESSES)


def test_roaring_bitmap_with_wrong_cardinality_is_refused() -> None:
    data = bytearray(address_set(part(0, bitmap_of(range(0, 40_000, 3), with_runs=False))))
    data[-8000] ^= 0xFF
    for sets in ([bytes(data)], [address_set(part(0, BitMap([1]))), bytes(data)]):
        with pytest.raises(FormatError, match="other numbers than it says"):
            parse(sets, ADDRESSES)


@pytest.mark.parametrize(
    ("borders", "form", "message"),
    [
        ([0, 5], 1, "leave the data"),
        ([-1, 4], 1, "leave the data"),
        ([0, 4, 2], 1, "fall"),
        ([], 1, "borders"),
        ([0, 4], 0, "forms"),
        ([0, 4], 3, "forms"),
    ],
)
def test_parse_sets_refuses_wrong_borders_and_forms(
    borders: list[int], form: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        parse_sets(bytes(4), np.array(borders, np.int64), form)
