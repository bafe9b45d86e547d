"""Frames of stored blocks against the codec of Arrow, and damaged ones."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.kernels.frames import copy_stored, stored_sizes
from pennon.encoding.v2_1.codecs import CODECS
from pennon.encoding.v2_1.encodings import BufferCompression, Flat, General, Variable
from pennon.encoding.v2_1.general import inflate_values
from pennon.encoding.v2_1.variable import string_block
from pennon.errors import LanceError
from tests.seeds import each_seed

CODEC = pa.Codec("zstd")
IMAGES = General(BufferCompression("zstd"), Variable(Flat(64)))


def block(kind: int, body: bytes, size: int, *, last: bool) -> bytes:
    return (size << 3 | kind << 1 | last).to_bytes(3, "little") + body


def frame(chance: random.Random, plain: bytes) -> bytes:
    """Return a frame of raw blocks and runs, with any kind of header."""
    single = chance.random() < 0.5
    sizes = [kind for kind in (0, 1, 2, 3) if kind == 3 or len(plain) < (256, 65792, 1 << 32)[kind]]
    flag = chance.choice([kind for kind in sizes if kind != 1 or len(plain) >= 256])
    width = (1 if single else 0, 2, 4, 8)[flag]
    told = len(plain) - (256 if flag == 1 else 0)
    out = b"\x28\xb5\x2f\xfd" + bytes([flag << 6 | single << 5])
    out += b"" if single else b"\x58"  # a window of 2 MiB
    out += told.to_bytes(width, "little") if width else b""
    at = 0
    while True:
        size = min(chance.choice([0, 1, 7, 4000, 100_000]), len(plain) - at)
        part = plain[at : at + size]
        at += size
        last = at == len(plain)
        if part and part == part[:1] * size:
            out += block(1, part[:1], size, last=last)
        else:
            out += block(0, part, size, last=last)
        if last:
            return out


def ranges(parts: list[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    borders = np.cumsum([3, *map(len, parts)])
    return np.frombuffer(b"..." + b"".join(parts), np.uint8), borders[:-1], borders[1:]


def some_bytes(chance: random.Random) -> bytes:
    size = chance.choice([0, 1, 5, 300, 70_000])
    return chance.randbytes(1) * size if chance.random() < 0.3 else chance.randbytes(size)


@each_seed(40)
def test_stored_zstd_frames_equal_the_codec(seed: int) -> None:
    chance = random.Random(seed)
    plain = [some_bytes(chance) for _ in range(6)]
    frames = [frame(chance, part) for part in plain]
    for part, made in zip(plain, frames, strict=True):
        assert CODEC.decompress(made, len(part), asbytes=True) == part
    data, starts, ends = ranges(frames)
    sizes = stored_sizes(data, starts, ends)
    assert sizes.tolist() == [len(part) for part in plain]
    target = np.zeros(sizes.sum(), np.uint8)
    copy_stored(data, starts, ends, target, np.cumsum(sizes) - sizes, sizes)
    assert target.tobytes() == b"".join(plain)


def test_other_frames_are_for_the_codec() -> None:
    made = frame(random.Random(1), b"abcdefgh" * 100)
    others = [b"", made[:5], made[:-1], made + b"\0", made + made, b"x" + made[1:]]
    others.append(CODEC.compress(b"abcdefgh" * 100, asbytes=True))
    others += [made[:4] + bytes([made[4] | bit]) + made[5:] for bit in (1, 2, 4, 8)]
    header = b"\x28\xb5\x2f\xfd\x20\x03"
    others += [header + block(kind, b"abc", 3, last=True) for kind in (2, 3)]
    data, starts, ends = ranges(others)
    assert stored_sizes(data, starts, ends).tolist() == [-1] * len(others)
    assert stored_sizes(data[:0], np.zeros(2, np.int64), np.zeros(2, np.int64)).tolist() == [-1, -1]


def test_frame_copy_with_wrong_arguments_is_refused() -> None:
    made = frame(random.Random(1), b"abc")
    data, starts, ends = ranges([made])
    zero, three = np.zeros(1, np.int64), np.array([3])
    for wrong in ((starts, ends + 1), (ends, starts), (starts - 9, ends), (starts, ends[:0])):
        with pytest.raises(ValueError, match=r"frame lies|differ in length"):
            stored_sizes(data, *wrong)
    for target, place, size in ((2, zero, three), (3, zero + 1, three), (9, zero, zero - 1)):
        with pytest.raises(ValueError, match="outside the target"):
            copy_stored(data, starts, ends, np.zeros(target, np.uint8), place, size)
    for other in (2, 4):
        with pytest.raises(ValueError, match="of another size"):
            copy_stored(data, starts, ends, np.zeros(9, np.uint8), zero, np.array([other]))


@each_seed(30)
def test_values_stored_and_compressed_side_by_side(seed: int) -> None:
    """Damage gives an error, or values that are as many."""
    chance = random.Random(seed)
    plain = [chance.choice([some_bytes(chance), b"text " * 500]) for _ in range(8)]
    parts = [
        len(part).to_bytes(8, "little") + CODEC.compress(part, asbytes=True) if part else b""
        for part in plain
    ]
    data, starts, ends = ranges(parts)
    found = inflate_values(IMAGES, data, starts, ends, CODECS)
    offsets = np.cumsum([0, *map(len, plain)])
    assert found == string_block(offsets, np.frombuffer(b"".join(plain), np.uint8))
    damaged = data.copy()
    chosen = chance.choice([number for number, part in enumerate(parts) if part] or [0])
    for _ in range(20):
        at = min(int(starts[chosen]) + chance.randrange(24), len(data) - 1)
        damaged[at] = chance.randrange(256)
        try:
            assert inflate_values(IMAGES, damaged, starts, ends, CODECS).rows == len(plain)
        except LanceError:
            damaged[at] = data[at]
