"""Roaring bitmaps beside pyroaring's, and arguments that are refused."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64

from pennon.table.kernels.roaring import serialize_sets

ROWS = st.lists(
    st.lists(
        st.one_of(st.integers(0, 100), st.integers(0, 200_000), st.integers(0, (1 << 32) - 1)),
        max_size=30,
        unique=True,
    ).map(sorted),
    max_size=5,
)


def sets(groups: list[list[int]], form: int, *, with_runs: bool) -> list[bytes]:
    rows = np.array([row for group in groups for row in group], np.uint64)
    borders = np.cumsum([0, *map(len, groups)])
    data, offsets = serialize_sets(rows, borders, form, with_runs)
    return [data[a:b].tobytes() for a, b in pairwise(offsets.tolist())]


@given(ROWS)
def test_roaring_bitmaps_without_runs_equal_pyroaring(groups: list[list[int]]) -> None:
    assert sets(groups, 0, with_runs=False) == [BitMap(group).serialize() for group in groups]


@given(ROWS)
def test_bitmaps_with_runs(groups: list[list[int]]) -> None:
    found = sets(groups, 0, with_runs=True)
    assert [list(BitMap.deserialize(each)) for each in found] == groups
    for group, data in zip(groups, found, strict=True):
        smallest = BitMap(group)
        smallest.run_optimize()
        assert len(data) <= len(smallest.serialize())


@pytest.mark.parametrize("with_runs", [False, True])
@pytest.mark.parametrize("step", [1, 2, 17])
@pytest.mark.parametrize("count", [4096, 4097, 65_536, 300_000])
def test_containers_of_every_kind(count: int, step: int, *, with_runs: bool) -> None:
    rows = list(range(7, 7 + count * step, step))
    (found,) = sets([rows], 0, with_runs=with_runs)
    assert BitMap.deserialize(found) == BitMap(rows)


@given(st.lists(st.integers(0, (1 << 40) - 1), max_size=30, unique=True).map(sorted))
def test_roaring_treemaps_equal_pyroaring(rows: list[int]) -> None:
    (found,) = sets([rows], 2, with_runs=True)
    assert list(BitMap64.deserialize(found)) == rows


def test_an_address_set() -> None:
    (found,) = sets([[4, 5]], 1, with_runs=True)
    assert found == bytes.fromhex(
        "01000000 00000000 14000000 3a300000 01000000 0000 0100 10000000 0400 0500"
    )


@pytest.mark.parametrize(
    ("rows", "borders", "form", "message"),
    [
        ([1, 1], [0, 2], 0, "ascend"),
        ([2, 1], [0, 2], 1, "ascend"),
        ([1 << 32], [0, 1], 0, "ascend"),
        ([1, 2], [0, 3], 2, "leave the rows"),
        ([1, 2], [-1, 1], 2, "leave the rows"),
        ([1, 2], [0, 2, 1], 2, "fall"),
        ([1, 2], [], 2, "borders"),
        ([1, 2], [0, 2], 3, "forms"),
    ],
)
def test_roaring_kernel_refuses_wrong_rows_and_borders(
    rows: list[int], borders: list[int], form: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        serialize_sets(np.array(rows, np.uint64), np.array(borders, np.int64), form, True)  # noqa: FBT003
