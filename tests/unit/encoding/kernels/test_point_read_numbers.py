"""Numbers that are picked by whole blocks, and how much room there is for values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pennon.encoding.kernels.chunk_lookup import ChunkTable
from pennon.encoding.kernels.pack import pack_blocks
from pennon.encoding.kernels.point_read import PickCode, pick_pieces
from pennon.encoding.rows import Rows
from pennon.encoding.v2_1.point_read import CutRows, KnownPage, PickedChunks
from pennon.errors import FormatError
from tests.unit.encoding.kernels.test_point_read import ARRAYS, RANDOM, Page, run_on


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("count", [1, 700, 1024, 5000])
def test_numbers_packed_out_of_line(bits: int, count: int) -> None:
    """One by one and by whole blocks; the last block may be plain words."""
    for width in (1, 3, bits // 2 + 1, bits - 1):
        values = RANDOM.integers(0, 1 << width, count, np.uint64).astype(f"u{bits // 8}")
        packed, sizes = pack_blocks(values, np.array([count]), width)
        header = np.array([0, int(sizes[0]), 0, 0], "<u2").view(np.uint8)
        data = np.concatenate([header, packed])
        offsets, firsts = np.array([0, len(data)]), np.array([0, count])
        table = ChunkTable(0, offsets, firsts, firsts, np.zeros(1, np.uint8))
        for start, end in ((0, count), (count // 3, count), (count // 2, count // 2 + 1)):
            zero, cuts = np.zeros(1, np.int64), np.array([0, 1])
            found = pick_pieces(
                [table],
                [PickCode((0, 0, 0, 0, 0, 0, 4, bits, width, 0, 0, 0))],
                zero,
                cuts,
                np.array([start]),
                np.array([end]),
                zero,
                zero,
                zero,
                [data],
                [0],
            )
            assert np.array_equal(found[2].view(values.dtype), values[start:end])


def test_a_wide_value_of_few_bytes_is_refused() -> None:
    """A damaged page may say that its values are wide; room for them is not made."""
    page = Page.of(ARRAYS["vector"])
    wide = replace(page.recipe, value_bytes=1 << 27)
    known = KnownPage(page.index, page.index.table(0), wide)
    found = PickedChunks.of([known], CutRows.of_page(Rows.at(np.arange(0, 9000, 2))))
    with pytest.raises(FormatError, match="4500 values of 134217728 bytes"):
        run_on(found, page.data, peek=True)
