"""Levels as runs: each chunk by itself, long runs in pieces, and only where that is smaller."""

from __future__ import annotations

import numpy as np
import pytest

from pennon.encoding.rows import Rows
from pennon.encoding.v2_1.chunks import ChunkBuffers, Chunks
from pennon.encoding.v2_1.codecs import CODECS
from pennon.encoding.v2_1.encodings import Encoding, Flat, OutOfLineBitpacking, Rle
from pennon.encoding.v2_1.page import LevelArray, LevelChunks, decode_levels, encode_levels
from pennon.encoding.v2_1.page_rules import RULES_OF_2_1, RULES_OF_2_2
from pennon.errors import FormatError, TooLargeError

NO_BITS = OutOfLineBitpacking(16, Flat(0))


def read(coded: LevelChunks, counts: np.ndarray) -> LevelArray:
    """Return the levels, decoded."""
    starts = np.cumsum(coded.sizes) - coded.sizes
    chunks = Chunks((ChunkBuffers(coded.data, starts, coded.sizes),), counts)
    return decode_levels(coded.encoding, chunks, CODECS)


def test_a_chunk_of_runs_is_its_size_its_values_and_its_lengths() -> None:
    levels = np.repeat([0, 1, 0], [300, 1, 699]).astype(np.uint16)
    counts = np.array([400, 600])
    coded = encode_levels(levels, counts, RULES_OF_2_2)
    assert coded.encoding == Rle(Flat(16), Flat(8))
    values = np.array([0, 0, 1, 0], "<u2").tobytes()
    first = (8).to_bytes(8, "little") + values + bytes([255, 45, 1, 99])
    second = (6).to_bytes(8, "little") + bytes(6) + bytes([255, 255, 90])
    assert coded.data.tobytes() == first + second
    assert coded.sizes.tolist() == [len(first), len(second)]
    assert (read(coded, counts) == levels).all()


@pytest.mark.parametrize("seed", range(20))
def test_level_runs_round_trip(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 2000, rng.integers(1, 30))
    levels = np.repeat(rng.integers(0, 4, len(lengths)), lengths).astype(np.uint16)
    counts = np.full(-(-len(levels) // 700), 700)
    counts[-1] = len(levels) - counts[:-1].sum()
    assert (read(encode_levels(levels, counts, RULES_OF_2_2), counts) == levels).all()


def test_levels_without_runs_and_of_2_1_are_bitpacked() -> None:
    counts = np.array([4096])
    often = (np.arange(4096) % 2).astype(np.uint16)
    packed = OutOfLineBitpacking(16, Flat(1))
    assert encode_levels(often, counts, RULES_OF_2_2).encoding == packed
    assert encode_levels(np.sort(often), counts, RULES_OF_2_1).encoding == packed


def test_levels_of_short_chunks_are_packed_if_smaller() -> None:
    counts = np.full(8, 128)
    levels = np.tile(np.repeat([0, 1], [20, 12]), 32).astype(np.uint16)
    packed = OutOfLineBitpacking(16, Flat(1))
    coded = encode_levels(levels, counts, RULES_OF_2_2)
    assert coded.encoding == packed
    assert (read(coded, counts) == levels).all()
    assert encode_levels(levels, np.array([1024]), RULES_OF_2_2).encoding == packed
    assert encode_levels(np.sort(levels), counts, RULES_OF_2_2).encoding == Rle(Flat(16), Flat(8))


def test_levels_packed_to_no_bits_are_zeros() -> None:
    coded = LevelChunks(NO_BITS, np.empty(0, np.uint8), np.zeros(2, np.int64))
    assert read(coded, np.array([3, 2])).tolist() == [0] * 5


@pytest.mark.parametrize("encoding", [NO_BITS, Rle(Flat(16), Flat(8))], ids=["no bits", "runs"])
def test_levels_with_false_count_are_refused_before_allocation(encoding: Encoding) -> None:
    coded = LevelChunks(encoding, np.zeros(8, np.uint8), np.array([8]))
    with pytest.raises(TooLargeError, match="a few bytes stand for"):
        read(coded, np.array([1 << 40]))


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_values_packed_to_zero_bits_are_refused(bits: int) -> None:
    whole = Chunks.whole(np.empty(0, np.uint8), (1 << 32) - 1)
    with pytest.raises(FormatError, match="no bits at all"):
        CODECS.decode_blocks(OutOfLineBitpacking(bits, Flat(0)), whole, Rows.between(0, 1))
