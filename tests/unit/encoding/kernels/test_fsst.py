"""The FSST kernel against a twin that reads like the format."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from pennon.encoding.kernels.fsst import decode_fsst
from pennon.errors import FormatError

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
def test_strings_decode_as_the_twin_says(dtype: Any) -> None:
    chance = random.Random(5)
    for _ in range(50):
        strings = [random_codes(chance) for _ in range(chance.randint(0, 20))]
        data, offsets = decode(strings, dtype)
        found = [data[a:b].tobytes() for a, b in pairwise(offsets)]
        assert found == [slow_decode(codes) for codes in strings]
        assert len(data) == offsets[-1]


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
