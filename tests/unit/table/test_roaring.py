"""Roaring bitmaps, beside pyroaring."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from pennon.errors import FormatError, TooLargeError
from pennon.table.kernels.roaring import read_bits
from pennon.table.roaring import Offsets, parse_roaring, serialize_roaring

SETS = {
    "empty": [],
    "one": [7],
    "ends": [0, 65535, 65536, 2**32 - 1],
    "full array container": list(range(0, 8192, 2)),
    "smallest bitmap container": list(range(0, 8194, 2)),
    "runs": [*range(100, 60000), *range(200000, 200005)],
    "five run containers": [v for k in range(5) for v in range(k << 16, (k << 16) + 9000)],
    "whole container": list(range(65536)),
    "mixed": [*range(5000), *range(70000, 140000, 3), 10**9],
}


def array(values: list[int]) -> Offsets:
    return np.array(values, np.uint32)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("with_runs", [False, True])
def test_roaring_of_croaring_is_read(name: str, with_runs: bool) -> None:
    bitmap = BitMap(SETS[name], optimize=False)
    if with_runs:
        bitmap.run_optimize()
    assert parse_roaring(bitmap.serialize()).tolist() == SETS[name]


@pytest.mark.parametrize("name", SETS)
def test_roaring_is_written_like_croaring(name: str) -> None:
    data = serialize_roaring(array(SETS[name]))
    assert data == BitMap(SETS[name], optimize=False).serialize()
    assert parse_roaring(data).tolist() == SETS[name]


@settings(max_examples=100, deadline=None)
@given(st.sets(st.integers(0, 2**32 - 1), max_size=300))
def test_roaring_sets_round_trip(values: set[int]) -> None:
    assert parse_roaring(serialize_roaring(array(sorted(values)))).tolist() == sorted(values)


@pytest.mark.parametrize("containers", [0, 1, 3, 4, 7, 8, 9, 17])
def test_a_range_is_a_run_in_each_container(containers: int) -> None:
    for count in (containers << 16, (containers << 16) + 1, (containers << 16) + 4321):
        bitmap = BitMap(range(count), optimize=False)
        bitmap.run_optimize()
        data = serialize_roaring(np.arange(count, dtype=np.uint32), with_runs=True)
        assert np.array_equal(parse_roaring(data), np.arange(count))
        assert BitMap.deserialize(data) == bitmap
        assert count % (1 << 16) == 1 or data == bitmap.serialize()


def test_truncated_roaring_bitmap_is_refused() -> None:
    for with_runs in (False, True):
        bitmap = BitMap([*range(10), *range(70000, 140000, 2)], optimize=False)
        if with_runs:
            bitmap.run_optimize()
        data = bitmap.serialize()
        for size in [*range(60), *range(60, len(data), 997)]:
            with pytest.raises(FormatError):
                parse_roaring(data[:size])


def test_damaged_roaring_bitmap_raises_format_error_or_is_sorted() -> None:
    rng = random.Random(20)
    for with_runs in (False, True):
        bitmap = BitMap([*range(0, 600, 3), *range(70000, 80000)], optimize=False)
        if with_runs:
            bitmap.run_optimize()
        for _ in range(1500):
            data = bytearray(bitmap.serialize())
            data[rng.randrange(min(len(data), 80))] ^= 1 << rng.randrange(8)
            try:
                values = parse_roaring(bytes(data)).astype(np.int64)
            except FormatError:
                continue
            assert np.all(np.diff(values) > 0)


def test_roaring_bitmap_above_the_value_limit_is_refused() -> None:
    data = BitMap(range(1 << 20)).serialize()
    assert len(data) < 300
    assert len(parse_roaring(data, 1 << 20)) == 1 << 20
    with pytest.raises(TooLargeError, match="1048576 values, more than 1000"):
        parse_roaring(data, 1000)


def test_bits_of_a_container_are_read_up_to_its_size() -> None:
    bits = np.zeros(8192, np.uint8)
    bits[[0, 1000, 8191]] = 0b1000_0001
    places = [0, 7, 8000, 8007, 65528, 65535]
    assert read_bits(bits, 6).tolist() == places
    assert read_bits(bits, 9).tolist() == places
    assert read_bits(bits, 2).tolist() == places[:3], "more than it says"
    assert read_bits(np.zeros(8192, np.uint8), 0).tolist() == []
    with pytest.raises(ValueError, match="a container of 8191 bytes"):
        read_bits(bits[1:], 6)
