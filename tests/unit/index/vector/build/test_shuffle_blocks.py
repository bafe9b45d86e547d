"""Coded vectors cut into blocks, which are gathered again."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from pennon.index.base import Values
from pennon.index.vector.build import shuffle_blocks
from pennon.index.vector.model import Model
from pennon.index.vector.settings import VectorSettings

DIM, PARTITIONS = 8, 5
RNG = np.random.default_rng(0)
MODEL = Model(VectorSettings("IVF_FLAT"), RNG.normal(size=(PARTITIONS, DIM)).astype(np.float32))
ROW_BYTES = 4 * DIM + 8


def values(rows: np.ndarray) -> Values:
    vectors = RNG.normal(size=(len(rows), DIM)).astype(np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIM)
    return Values(column, rows.astype(np.uint64))


def test_shuffle_blocks_are_produced_while_reading() -> None:
    read = 0

    def parts() -> Iterator[Values]:
        nonlocal read
        for start in range(0, 50_000, 1000):
            read += 1000
            yield values(np.arange(start, start + 1000))

    with (
        patch.object(shuffle_blocks, "HELD_BYTES", 2000 * ROW_BYTES),
        patch("pennon.index.vector.build.partitions._AHEAD", 1000 * ROW_BYTES),
    ):
        cut = shuffle_blocks.cut_blocks(parts(), MODEL)
        assert next(cut)[0] == 0
        assert read < 10_000
        cut.close()


def test_blocks_have_a_bound_and_all_rows() -> None:
    rows = np.repeat(np.arange(3000), RNG.integers(1, 6, 3000))  # several vectors of a row
    given = values(rows)
    with patch.object(shuffle_blocks, "BLOCK_BYTES", 100 * ROW_BYTES):
        cut = list(shuffle_blocks.cut_blocks([given], MODEL))
    assert max(len(block) for _, block in cut) < 110 * ROW_BYTES + 1000
    numbers = [number for number, _ in cut]
    assert numbers == sorted(numbers)
    assert len(cut) > len(rows) // 100
    backwards = list(reversed(cut))
    backwards.sort(key=lambda block: block[0])
    orders = (cut, backwards)
    found = [list(shuffle_blocks.gathered(order, MODEL, 0, PARTITIONS)) for order in orders]
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one.rows, np.sort(one.rows))
        assert np.array_equal(one.rows, other.rows)
        assert np.array_equal(one.columns[0], other.columns[0])
    assert sum(len(each.rows) for each in found[0]) == len(rows)
