"""Zones are cut at the same rows for any batches."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from pennon.index.base import Values
from pennon.index.scalar.zones import Zones, cut_zones

ROWS = np.concatenate([np.arange(0, 23), np.arange(40, 45), (3 << 32) + np.arange(7)]).astype(
    np.uint64
)
"""Of fragments 0, with a gap, and 3."""
ZONES = [[*range(8)], [*range(8, 16)], [*range(16, 24)], [*range(24, 28)], [*range(28, 35)]]
"""The places among `ROWS` of zones of eight rows."""


def parts_of(sizes: list[int]) -> list[Values]:
    ends = np.cumsum([0, *sizes])
    assert ends[-1] == len(ROWS)
    values = pa.array(np.arange(len(ROWS)))
    return [Values(values[a:b], ROWS[a:b]) for a, b in pairwise(ends)]


@pytest.mark.parametrize(
    "sizes",
    [[35], [8, 8, 8, 4, 7], [8, 8, 12, 7], [3, 5, 27], [28, 7], [30, 5], [0, 35, 0], [1] * 35],
)
def test_zones_are_cut(sizes: list[int]) -> None:
    zones = list(cut_zones(iter(parts_of(sizes)), 8))
    assert [zone.values.to_pylist() for zone in zones] == ZONES
    assert [zone.rows.tolist() for zone in zones] == [ROWS[places].tolist() for places in ZONES]


def test_cut_zones_of_zero_rows() -> None:
    assert list(cut_zones([], 8)) == []
    assert list(cut_zones([Values(pa.array([], pa.int64()), np.empty(0, np.uint64))], 8)) == []


def test_rows_of_zones() -> None:
    """Neighbours are one range; zones that overlap, or come in another order, give each row once."""
    fragments, lengths = np.zeros(4, np.uint64), np.full(4, 10, np.uint64)
    zones = Zones.of(fragments, np.array([0, 10, 30, 35], np.uint64), lengths)
    for numbers, expected in (([0, 1], [(0, 19)]), ([0, 2, 3], [(0, 9), (30, 44)]), ([], [])):
        found = zones.rows(np.array(numbers, np.int64))
        assert list(zip(found.starts.tolist(), found.lasts.tolist(), strict=True)) == expected
    turned = Zones.of(fragments, np.array([30, 0, 35, 10], np.uint64), lengths)
    found = turned.rows(np.arange(4))
    assert list(zip(found.starts.tolist(), found.lasts.tolist(), strict=True)) == [
        (0, 19),
        (30, 44),
    ]
