"""LZ4 blocks against Arrow's own decoder, and damaged ones."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.kernels.lz4 import decoded_size, inflate_blocks
from pennon.errors import FormatError
from tests.seeds import each_seed

CODEC = pa.Codec("lz4_raw")


def text(chance: random.Random, size: int) -> bytes:
    """Bytes with repeats of all distances: runs, short cycles, far copies, noise."""
    out = bytearray()
    while len(out) < size:
        kind = chance.randrange(4)
        if kind == 0 or not out:
            out += chance.randbytes(chance.randint(1, 40))
        elif kind == 1:
            out += bytes([chance.randrange(256)]) * chance.randint(1, 600)
        elif kind == 2:
            out += bytes(out[-chance.randint(1, 9) :]) * chance.randint(1, 60)
        else:
            at = chance.randrange(len(out))
            out += out[at : at + chance.randint(1, 300)]
    return bytes(out[:size])


def inflate(blocks: list[bytes], sizes: list[int]) -> bytes:
    ends = np.cumsum([0, *map(len, blocks)])
    target = np.zeros(sum(sizes), np.uint8)
    data = np.frombuffer(b"".join(blocks), np.uint8)
    inflate_blocks(data, ends[:-1], ends[1:], np.array(sizes, np.int64), target)
    return target.tobytes()


@each_seed(60)
def test_lz4_blocks_round_trip(seed: int) -> None:
    chance = random.Random(seed)
    plain = [text(chance, chance.choice([0, 1, 5, 17, 300, 8192, 70_000])) for _ in range(5)]
    blocks = [CODEC.compress(each, asbytes=True) for each in plain]
    assert inflate(blocks, [len(each) for each in plain]) == b"".join(plain)
    assert [decoded_size(np.frombuffer(b, np.uint8)) for b in blocks] == [len(p) for p in plain]


@each_seed(200)
def test_damaged_blocks_are_format_errors_or_some_bytes(seed: int) -> None:
    chance = random.Random(seed)
    plain = text(chance, chance.choice([20, 300, 8192]))
    block = bytearray(CODEC.compress(plain, asbytes=True))
    for _ in range(chance.randint(1, 3)):
        block[chance.randrange(len(block))] = chance.choice(
            [0, 15, 240, 255, chance.randrange(256)]
        )
    block = block[: chance.choice([len(block), chance.randint(1, len(block))])]
    try:
        found = inflate([bytes(block)], [len(plain)])
    except FormatError:
        return
    assert len(found) == len(plain)


@pytest.mark.parametrize("sizes", [[3], [5], [0]])
def test_lz4_block_of_wrong_size_is_refused(sizes: list[int]) -> None:
    with pytest.raises(FormatError, match="LZ4 block 0"):
        inflate([CODEC.compress(b"abcd", asbytes=True)], sizes)
