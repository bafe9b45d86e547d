"""The FSST kernel against a twin that reads like the format."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from pennon.encoding.kernels.fsst import decode_fsst, decode_fsst_chunks, decode_fsst_ranges
from pennon.errors import FormatError
from tests.seeds import each_seed

SYMBOLS = [b"a", b"the ", b"12345678", b"\x00\xff"]


def table() -> Any:
    symbols, lengths = np.zeros(256, np.uint64), np.zeros(256, np.uint8)
    for code, symbol in enumerate(SYMBOLS):
        symbols[code] = int.from_bytes(symbol, "little")
        lengths[code] = len(symbol)
    return symbols, lengths


def slow_decode(codes: bytes) -> Any:
    out, rest = b"", list(codes)
    while rest:
        code = rest.pop(0)
        out += bytes([rest.pop(0)]) if code == 255 else SYMBOLS[code]
    return out


def random_codes(chance: random.Random) -> Any:
    codes = b""
    for _ in range(chance.randint(0, 9)):
        codes += chance.choice([bytes([chance.randrange(4)]), bytes([255, chance.randrange(256)])])
    return codes


def decode(strings: Any, dtype: Any = np.int32) -> Any:
    data = b"".join(strings)
    offsets = np.cumsum([0, *map(len, strings)]).astype(dtype)
    return decode_fsst(np.frombuffer(data, np.uint8), offsets, *table())


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_fsst_strings_decode_as_the_twin(dtype: Any) -> None:
    chance = random.Random(5)
    for _ in range(50):
        strings = [random_codes(chance) for _ in range(chance.randint(0, 20))]
        offsets, data = decode(strings, dtype)
        found = [data[a:b].tobytes() for a, b in pairwise(offsets)]
        assert found == [slow_decode(codes) for codes in strings]
        assert len(data) == offsets[-1]


@each_seed(30)
def test_fsst_chunks_decode_as_the_twin(seed: int) -> None:
    """Strings of few codes and of many, with many escapes and without, some of all items."""
    chance = random.Random(seed)
    width, most = chance.choice([4, 8]), chance.choice([0, 3, 9, 40])
    lists = [
        [plain_or_random_codes(chance, most) for _ in range(chance.randint(0, 40))]
        for _ in range(chance.randint(1, 6))
    ]
    every = [slow_decode(codes) for strings in lists for codes in strings]
    cuts = sorted(chance.choices(range(len(every) + 1), k=chance.choice([2, 4, 8])))
    cuts = [0, len(every)] if seed % 3 == 0 else cuts
    chunks = [chunk_of(strings, width) for strings in lists]
    ends = np.cumsum([0, *map(len, chunks)])
    found, data = decode_fsst_chunks(
        np.frombuffer(b"".join(chunks), np.uint8),
        ends[:-1],
        np.diff(ends),
        np.array([len(strings) for strings in lists]),
        width,
        np.array(cuts[0::2]),
        np.array(cuts[1::2]),
        *table(),
    )
    wanted = [s for a, b in zip(cuts[0::2], cuts[1::2], strict=True) for s in every[a:b]]
    assert found.tolist() == np.cumsum([0, *map(len, wanted)]).tolist()
    assert data.tobytes() == b"".join(wanted)


@each_seed(30)
def test_fsst_ranges_decode_as_the_twin(seed: int) -> None:
    """Strings that lie apart, in any order, some twice, short ones and long ones."""
    chance = random.Random(seed)
    most = chance.choice([0, 3, 40, 4000])
    strings = [plain_or_random_codes(chance, most) for _ in range(chance.randint(0, 40))]
    data, places = b"\xff", []
    for string in strings:
        places.append((len(data), len(data) + len(string)))
        data += string + bytes([255] * chance.randint(0, 3))
    chosen = chance.choices(range(len(strings)), k=60) if strings else []
    starts, ends = np.array([places[at] for at in chosen], np.int64).reshape(-1, 2).T.copy()
    offsets, found = decode_fsst_ranges(np.frombuffer(data, np.uint8), starts, ends, *table())
    wanted = [slow_decode(strings[at]) for at in chosen]
    assert offsets.tolist() == np.cumsum([0, *map(len, wanted)]).tolist()
    assert found.tobytes() == b"".join(wanted)


@pytest.mark.parametrize(
    ("codes", "start", "end"),
    [(b"\x04", 0, 1), (b"\x00\xff\x00", 0, 2), (b"\x00", 0, 2), (b"\x00", 1, 0), (b"\x00", -1, 1)],
)
def test_bad_fsst_ranges_are_format_errors(codes: bytes, start: int, end: int) -> None:
    data, borders = np.frombuffer(codes, np.uint8), np.array([[0, start], [1, end]])
    with pytest.raises(FormatError):
        decode_fsst_ranges(data, borders[0], borders[1], *table())
    with pytest.raises(ValueError, match="differ in length"):
        decode_fsst_ranges(data, np.array([0, 1]), np.array([1]), *table())


def plain_or_random_codes(chance: random.Random, most: int) -> bytes:
    count = chance.randint(0, most)
    if chance.random() < 0.5:
        return bytes(chance.randrange(4) for _ in range(count))
    return b"".join(random_codes(chance) for _ in range(count // 4))


def chunk_of(strings: list[bytes], width: int) -> bytes:
    ends = np.cumsum([width * (len(strings) + 1), *map(len, strings)])
    return ends.astype(f"<u{width}").tobytes() + b"".join(strings)


@pytest.mark.parametrize(
    ("codes", "offsets"),
    [
        (b"\x00\x04", [12, 13, 14]),  # no such symbol
        (b"\x00\xff", [12, 13, 14]),  # an escape at the end
        (b"\xff\x01", [12, 13, 14]),  # an escape across two strings
        (b"\x00\x01", [12, 14, 13]),
        (b"\x00\x01", [12, 13, 99]),
    ],
)
def test_bad_chunks_are_format_errors(codes: bytes, offsets: list[int]) -> None:
    data = np.frombuffer(np.array(offsets, "<u4").tobytes() + codes, np.uint8)
    numbers = [np.array([number]) for number in (0, len(data), 2, 0, 2)]
    starts, sizes, counts, first, last = numbers
    with pytest.raises(FormatError):
        decode_fsst_chunks(data, starts, sizes, counts, 4, first, last, *table())


@pytest.mark.parametrize("codes", [b"\x04", b"\xfe", b"\xff", b"\x00\xff", b"\xff\x01\xff"])
def test_bad_codes_are_format_errors(codes: bytes) -> None:
    with pytest.raises(FormatError):
        decode([b"\x00", codes])


@pytest.mark.parametrize("offsets", [[0, 5], [-1, 1], [0, 2, 1, 3], [2, 1]])
def test_bad_offsets_are_format_errors(offsets: Any) -> None:
    with pytest.raises(FormatError):
        decode_fsst(np.zeros(4, np.uint8), np.array(offsets, np.int32), *table())


def test_symbols_of_more_than_eight_bytes_are_format_errors() -> None:
    symbols, lengths = table()
    lengths[7] = 9
    with pytest.raises(FormatError, match="9 bytes"):
        decode_fsst(np.zeros(1, np.uint8), np.array([0, 1], np.int32), symbols, lengths)
