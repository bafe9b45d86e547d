"""Lookup of the chunks that hold given rows; more of this in `test_point_read`."""

import numpy as np
import pytest

from pennon.encoding.kernels.chunk_lookup import ChunkTable, find_pieces

RANDOM = np.random.default_rng(11)


@pytest.mark.parametrize("count", [1, 2, 3, 40, 3_000])
@pytest.mark.parametrize("chunks", [1, 2, 7, 500])
def test_chunk_lookup_finds_near_and_far_chunks(chunks: int, count: int) -> None:
    sizes = RANDOM.integers(1, 9, chunks)
    first_rows = np.concatenate([[0], np.cumsum(sizes)])
    table = ChunkTable(64, 8 * first_rows, first_rows, first_rows, np.zeros(chunks, np.uint8))
    rows = np.unique(RANDOM.integers(0, first_rows[-1], count))
    places, starts, ends, *_ = find_pieces(
        [table], np.zeros(1, np.int64), np.array([0, len(rows)]), rows, rows + 1
    )
    wanted = np.unique(np.searchsorted(first_rows, rows, "right") - 1)
    assert places[1].tolist() == wanted.tolist()
    assert np.sum(ends - starts) == 8 * np.sum(sizes[wanted])
