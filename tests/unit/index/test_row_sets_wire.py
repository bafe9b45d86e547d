"""Sets of rows as index files hold them: reference index-scalar, 2.1."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64

from pennon.errors import FormatError
from pennon.index.row_set import RowSet
from pennon.index.row_sets_wire import (
    parse_address_sets,
    parse_treemap,
    serialize_address_set,
    serialize_treemaps,
)

TWO_ROWS = bytes.fromhex(
    "01000000 00000000 14000000 3a300000 01000000 0000 0100 10000000 0400 0500"
)
ADDRESSES = st.sets(
    st.builds(lambda high, low: high << 32 | low, st.integers(0, 3), st.integers(0, 200_000)),
    max_size=40,
)


def numbers(rows: RowSet) -> list[int]:
    pairs = zip(rows.starts.tolist(), rows.lasts.tolist(), strict=True)
    return [n for a, b in pairs for n in range(a, b + 1)]


def address_set(rows: set[int]) -> bytes:
    highs = sorted({row >> 32 for row in rows})
    parts = [BitMap([row & 0xFFFFFFFF for row in rows if row >> 32 == high]) for high in highs]
    for part in parts:
        part.run_optimize()
    words = [len(highs).to_bytes(4, "little")]
    for high, part in zip(highs, parts, strict=True):
        body = part.serialize()
        words += [high.to_bytes(4, "little"), len(body).to_bytes(4, "little"), body]
    return b"".join(words)


def test_the_bytes_of_two_rows() -> None:
    assert numbers(parse_address_sets([TWO_ROWS])) == [4, 5]
    assert numbers(parse_address_sets([bytes(4)])) == []
    assert numbers(parse_treemap(bytes.fromhex("0100000000000000 00000000") + TWO_ROWS[12:])) == [
        4,
        5,
    ]


def test_address_set_with_zero_size_is_a_whole_fragment() -> None:
    found = parse_address_sets([bytes.fromhex("01000000 02000000 00000000")])
    assert (found.starts.tolist(), found.lasts.tolist()) == ([2 << 32], [(3 << 32) - 1])


@given(ADDRESSES, ADDRESSES)
def test_sets_of_another_library(a: set[int], b: set[int]) -> None:
    assert numbers(parse_address_sets([address_set(a), address_set(b)])) == sorted(a | b)
    assert numbers(parse_treemap(BitMap64(a).serialize())) == sorted(a)


def test_long_runs_take_no_memory() -> None:
    full = BitMap()
    full.add_range(0, 1 << 26)
    full.run_optimize()
    found = parse_address_sets(
        [b"".join([TWO_ROWS[:8], len(full.serialize()).to_bytes(4, "little"), full.serialize()])]
    )
    assert (found.starts.tolist(), found.lasts.tolist()) == ([0], [(1 << 26) - 1])


@pytest.mark.parametrize("cut", range(1, len(TWO_ROWS)))
def test_truncated_row_sets_are_refused(cut: int) -> None:
    with pytest.raises(FormatError):
        parse_address_sets([TWO_ROWS[:cut]])
    with pytest.raises(FormatError):
        parse_treemap((bytes.fromhex("0100000000000000 00000000") + TWO_ROWS[12:])[:cut])


def test_row_set_of_unordered_and_repeated_rows() -> None:
    assert RowSet.of(np.array([9, 7, 7, 8], np.uint64)).starts.tolist() == [7]


@given(ADDRESSES)
def test_row_sets_are_read_by_pyroaring(rows: set[int]) -> None:
    ascending = np.array(sorted(rows), np.uint64)
    treemap = serialize_treemaps(ascending, np.array([0, len(rows)]))[0].as_py()
    assert set(BitMap64.deserialize(treemap)) == rows
    assert parse_address_sets([serialize_address_set(ascending)]).numbers().tolist() == sorted(rows)


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("count", [1, 4096, 4097, 70_000, 300_000])
def test_dense_and_sparse_sets(count: int, step: int) -> None:
    rows = np.arange(count, dtype=np.uint64) * np.uint64(step)
    written = serialize_address_set(rows)
    assert (parse_address_sets([written]).numbers() == rows).all()
    assert BitMap.deserialize(written[12:]) == BitMap(rows.astype(np.uint32))


def test_a_run_is_written_as_one() -> None:
    assert len(serialize_address_set(np.arange(60_000, dtype=np.uint64))) < 40
