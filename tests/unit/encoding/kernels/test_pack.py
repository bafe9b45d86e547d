"""Packing against a twin that places one value at a time, and against the kernels that unpack."""

from __future__ import annotations

import numpy as np
import pytest

from pennon.encoding.kernels.fastlanes import unpack_blocks, unpack_inline
from pennon.encoding.kernels.pack import block_widths, pack_blocks, pack_inline

ORDER = [0, 4, 2, 6, 1, 5, 3, 7]
WORDS = [np.uint8, np.uint16, np.uint32, np.uint64]


def slow_pack(values: np.ndarray, width: int) -> bytes:
    """Pack 1024 values, as the docstring of `fastlanes.unpack` says it, bit by bit."""
    bits = values.dtype.itemsize * 8
    lanes = 1024 // bits
    columns = [0] * lanes
    for row in range(bits):
        for lane in range(lanes):
            value = int(values[16 * ORDER[row // 8] + 128 * (row % 8) + lane])
            columns[lane] |= value << (row * width)
    words = [
        columns[lane] >> (bits * i) & ((1 << bits) - 1)
        for i in range(width)
        for lane in range(lanes)
    ]
    return np.array(words, values.dtype).tobytes()


def random_values(dtype: type, width: int, count: int) -> np.ndarray:
    rng = np.random.default_rng(width)
    raw = rng.integers(0, 1 << 63, count, np.uint64, endpoint=True) * np.uint64(2)
    return (raw >> np.uint64(64 - width)).astype(dtype) if width else np.zeros(count, dtype)


@pytest.mark.parametrize("dtype", WORDS)
def test_pack_blocks_of_every_width_equals_the_twin(dtype: type) -> None:
    for width in range(1, np.dtype(dtype).itemsize * 8 + 1):
        values = random_values(dtype, width, 1024)
        packed, sizes = pack_blocks(values, np.array([1024]), width)
        assert packed.tobytes() == slow_pack(values, width)
        assert sizes.tolist() == [128 * width]


@pytest.mark.parametrize("dtype", WORDS)
@pytest.mark.parametrize("count", [0, 1, 1023, 1024, 1025, 3000])
def test_blocks_of_different_widths_round_trip(dtype: type, count: int) -> None:
    values = np.concatenate([random_values(dtype, width, 700) for width in (3, 0, 8, 5, 1)])[:count]
    widths = block_widths(values)
    blocks = [values[start : start + 1024] for start in range(0, count, 1024)]
    assert widths.tolist() == [int(block.max()).bit_length() for block in blocks]
    data, sizes = pack_inline(values, widths)
    again: np.ndarray = np.empty(count, dtype)
    counts = np.array([len(block) for block in blocks], np.int64)
    unpack_inline(data, np.cumsum(sizes) - sizes, sizes, counts, again)
    assert again.tolist() == values.tolist()


@pytest.mark.parametrize("counts", [[5], [1024, 1024, 7], [2048, 900], [0, 3, 0], [1, 1023, 4096]])
@pytest.mark.parametrize("width", [1, 4, 15])
def test_chunks_of_one_width_round_trip(counts: list[int], width: int) -> None:
    chunks = np.array(counts, np.int64)
    values = random_values(np.uint16, width, sum(counts))
    data, sizes = pack_blocks(values, chunks, width)
    again = np.empty(len(values), np.uint16)
    unpack_blocks(data, np.cumsum(sizes) - sizes, sizes, chunks, width, again)
    assert again.tolist() == values.tolist()


def test_chunk_tail_is_packed_only_if_smaller() -> None:
    values = random_values(np.uint16, 4, 300)
    _, sizes = pack_blocks(values, np.array([255, 45]), 4)
    assert sizes.tolist() == [2 * 255, 2 * 45]  # 4 bits: a packed block has 512 bytes
    _, sizes = pack_blocks(values, np.array([300]), 4)
    assert sizes.tolist() == [512]


def test_pack_blocks_with_wrong_chunk_sizes_is_refused() -> None:
    values = np.zeros(10, np.uint16)
    for counts in ([9], [11], [12, -2]):
        with pytest.raises(ValueError, match="divide"):
            pack_blocks(values, np.array(counts), 1)
    with pytest.raises(ValueError, match="width"):
        pack_blocks(values, np.array([10]), 17)
    with pytest.raises(ValueError, match="width"):
        pack_inline(values, np.array([17], np.uint8))
    with pytest.raises(ValueError, match="each block"):
        pack_inline(values, np.array([1, 1], np.uint8))
