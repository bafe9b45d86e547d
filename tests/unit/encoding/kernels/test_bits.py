"""The bit kernels against twins that handle one bit at a time."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.kernels import fastlanes
from pennon.encoding.kernels.bits import pick_bits, set_bits, unpack_bits
from pennon.encoding.kernels.lz4 import decoded_size
from tests.seeds import each_seed


def bits_of(data: np.ndarray) -> list[int]:
    return [int(data[i // 8]) >> (i % 8) & 1 for i in range(8 * len(data))]


@each_seed(50)
def test_pick_bits_equals_the_twin(seed: int) -> None:
    chance = random.Random(seed)
    source = np.frombuffer(chance.randbytes(chance.randint(0, 40)), np.uint8)
    limit = len(source) * 8
    pairs = [sorted((chance.randint(0, limit), chance.randint(0, limit))) for _ in range(5)]
    pairs += [[bit, bit + 1] for bit in chance.sample(range(limit), min(limit, 5))]
    starts, ends = np.array(pairs, np.int64).T.copy()
    wanted = [bit for start, end in pairs for bit in bits_of(source)[start:end]]
    target = np.full(-(-len(wanted) // 8) + 1, 255, np.uint8)
    pick_bits(source, starts, ends, target)
    assert bits_of(target) == wanted + [0] * (8 * len(target) - len(wanted))


@pytest.mark.parametrize(
    ("starts", "ends"), [([-1], [3]), ([4], [3]), ([0], [17]), ([0, 0], [16, 16]), ([0, 0], [1])]
)
def test_pick_bits_checks_first(starts: list[int], ends: list[int]) -> None:
    target = np.full(2, 7, np.uint8)
    with pytest.raises(ValueError, match="bit ranges"):
        pick_bits(np.zeros(2, np.uint8), np.array(starts), np.array(ends), target)
    assert target.tolist() == [7, 7]


@each_seed(50)
def test_unpack_bits_equals_the_twin(seed: int) -> None:
    chance = random.Random(seed)
    width, signed = chance.randint(1, 64), chance.random() < 0.5
    source = np.frombuffer(chance.randbytes(200), np.uint8)
    bits = bits_of(source)
    starts = [chance.randint(0, 1600 - 5 * width) for _ in range(3)]
    counts = [chance.randint(0, 5) for _ in starts]
    wanted = []
    for start, count in zip(starts, counts, strict=True):
        for number in range(count):
            own = bits[start + number * width : start + (number + 1) * width]
            value = sum(bit << place for place, bit in enumerate(own))
            wanted.append(value - (own[-1] << width) if signed else value)
    target = np.empty(sum(counts), np.uint64)
    unpack_bits(source, np.array(starts), np.array(counts), width, signed, target)
    assert (target.view(np.int64) if signed else target).tolist() == wanted


@pytest.mark.parametrize(
    ("start", "count", "width", "room"),
    [
        (0, 3, 8, 3),
        (9, 1, 8, 1),
        (-1, 1, 8, 1),
        (0, 1, 65, 1),
        (0, 1, 0, 1),
        (0, 2, 4, 1),
        (0, 1 << 62, 4, 1),
        (0, -1, 4, 0),
    ],
)
def test_unpack_bits_checks_first(start: int, count: int, width: int, room: int) -> None:
    target = np.empty(room, np.uint64)
    with pytest.raises(ValueError, match="packed values"):
        unpack_bits(
            np.zeros(2, np.uint8),
            np.array([start]),
            np.array([count]),
            width,
            signed=False,
            target=target,
        )


@pytest.mark.parametrize(
    ("words", "width", "values"),
    [(32, 1, 1024), (33, 1, 1024), (32, 1, 1000), (0, 0, 1024), (1056, 33, 1024)],
)
def test_fastlanes_checks_first(words: int, width: int, values: int) -> None:
    packed, target = np.zeros(words, np.uint32), np.zeros(values, np.uint32)
    if (words, width, values) == (32, 1, 1024):
        fastlanes.unpack(packed, width, target)
        return
    with pytest.raises(ValueError, match=r"bit width|whole chunks"):
        fastlanes.unpack(packed, width, target)


@each_seed(30)
def test_lz4_decoded_size(seed: int) -> None:
    chance = random.Random(seed)
    plain = b"".join(bytes([chance.randrange(4)]) * chance.randint(1, 600) for _ in range(20))
    plain += chance.randbytes(chance.randint(0, 600))
    block = pa.Codec("lz4_raw").compress(plain).to_pybytes()
    assert decoded_size(np.frombuffer(block, np.uint8)) == len(plain)


def test_truncated_lz4_block_is_refused() -> None:
    block = pa.Codec("lz4_raw").compress(bytes(range(100))).to_pybytes()
    with pytest.raises(ValueError, match="cut off"):
        decoded_size(np.frombuffer(block[:-1], np.uint8))


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
@pytest.mark.parametrize(("start", "count"), [(0, 0), (0, 1), (3, 5), (0, 64), (7, 130), (8, 992)])
def test_set_bits_finds_positions_of_set_bits(share: float, start: int, count: int) -> None:
    bits = np.random.default_rng(3).random(1000) < share
    packed = np.packbits(bits, bitorder="little")
    expected = np.flatnonzero(bits[start : start + count])
    found = np.empty(len(expected), np.int64)
    set_bits(packed, start, count, found)
    assert found.tolist() == expected.tolist()
    with pytest.raises(ValueError, match="do not fill"):
        set_bits(packed, start, count, np.empty(len(expected) + 1, np.int64))
    if len(expected):
        with pytest.raises(ValueError, match="do not fill"):
            set_bits(packed, start, count, np.empty(len(expected) - 1, np.int64))


@pytest.mark.parametrize(("start", "count"), [(-1, 2), (0, 9), (8, 1), (0, -1)])
def test_set_bits_outside_the_source_is_refused(start: int, count: int) -> None:
    with pytest.raises(ValueError, match="leave the source"):
        set_bits(np.zeros(1, np.uint8), start, count, np.empty(0, np.int64))
