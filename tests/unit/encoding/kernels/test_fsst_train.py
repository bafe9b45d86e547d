"""FSST tables and codes: against a twin that tries the symbols one after the other."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from pennon.encoding.kernels.fsst import decode_fsst
from pennon.encoding.kernels.fsst_train import count_symbols, encode_symbols
from pennon.encoding.symbol_table import parse_symbol_table
from pennon.encoding.v2_1.symbol_training import is_noise, ratio_of, sample_of, train
from pennon.encoding.v2_1.values import StringValues

PAIRS = np.full((512, 512), 7, np.uint32)
"""Memory to count in, of any content."""
SYMBOLS = [b"a", b"b", b"ab", b"abc", b"bcdef", b"abcdef", b"abcdefgh", b"\0", b"\0\0\0", b"zz"]


def table(symbols: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    numbers = [int.from_bytes(symbol, "little") for symbol in symbols]
    return np.array(numbers, np.uint64), np.array([len(s) for s in symbols], np.uint8)


def strings(values: list[bytes]) -> StringValues:
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int64)
    return StringValues(offsets, np.frombuffer(b"".join(values), np.uint8), 4)


def slow_encode(text: bytes, symbols: list[bytes]) -> bytes:
    """Take the longest symbol that fits, or escape a byte."""
    codes = b""
    while text:
        fitting = [s for s in symbols if text.startswith(s)]
        if fitting:
            best = max(fitting, key=len)
            codes += bytes([symbols.index(best)])
            text = text[len(best) :]
        else:
            codes += b"\xff" + text[:1]
            text = text[1:]
    return codes


@pytest.mark.parametrize("zeros", [False, True])
def test_fsst_encoding_takes_the_longest_symbols(*, zeros: bool) -> None:
    symbols = [s for s in SYMBOLS if zeros or len(s) == 1 or s[-1]]
    chance = random.Random(7)
    values = [
        bytes(chance.choice(b"abcdefgh\0zx") for _ in range(chance.randrange(20)))
        for _ in range(300)
    ]
    values += [bytes(chance.choice(b"abcdefgh") for _ in range(length)) for length in (3000, 7)]
    values += [b"abcdefgh" * 3, b"abcdefg", b"ab", b"", b"\0" * 9]
    made = strings(values)
    codes, ends = encode_symbols(made.data, made.offsets, *table(symbols))
    got = [codes[a:b].tobytes() for a, b in pairwise(ends)]
    assert got == [slow_encode(value, symbols) for value in values]


@pytest.mark.parametrize("count", range(1, 10))
@pytest.mark.parametrize("text", [b"ab", b"abcdefgh" * 500, b""])
def test_few_strings_have_each_its_own_codes(text: bytes, count: int) -> None:
    made = strings([text] * count)
    codes, ends = encode_symbols(made.data, made.offsets, *table(SYMBOLS))
    got = [codes[a:b].tobytes() for a, b in pairwise(ends)]
    assert got == [slow_encode(text, SYMBOLS)] * count


@pytest.mark.parametrize("more", [1, 2, 3, 4])
def test_blocks_of_few_strings_have_each_its_own_codes(more: int) -> None:
    text = b"abcdefgh" * (1 << 12)  # eight of which are a block
    made = strings([text] * (8 + more))
    _, ends = encode_symbols(made.data, made.offsets, *table(SYMBOLS))
    assert np.diff(ends).tolist() == [1 << 12] * (8 + more)


def test_offsets_and_tables_are_checked() -> None:
    data = np.zeros(4, np.uint8)
    with pytest.raises(ValueError, match="leave"):
        encode_symbols(data, np.array([0, 5], np.int64), *table([b"a"]))
    with pytest.raises(ValueError, match="fall"):
        encode_symbols(data, np.array([0, 3, 2, 4], np.int32), *table([b"a"]))
    with pytest.raises(ValueError, match="255"):
        encode_symbols(data, np.array([0, 4], np.int64), *table([bytes([i]) for i in range(256)]))
    with pytest.raises(ValueError, match="alike"):
        encode_symbols(data, np.array([0, 4], np.int64), *table([b"abc", b"abcde"]))
    too_long = np.zeros(1, np.uint64), np.array([9], np.uint8)
    with pytest.raises(ValueError, match="bytes"):
        count_symbols(data, np.array([0, 4]), *too_long, 1, PAIRS)
    with pytest.raises(ValueError, match="512"):
        count_symbols(data, np.array([0, 4]), *table([]), 1, PAIRS[:511])


def test_fsst_candidates_are_symbols_and_pairs_with_their_gain() -> None:
    made = strings([b"abab", b"ab"])
    found = count_symbols(made.data, made.offsets, *table([]), 1, PAIRS)
    saved = {
        int(symbol).to_bytes(8, "little")[:length]: gain
        for symbol, length, gain in zip(*(part.tolist() for part in found), strict=True)
    }
    assert saved == {b"a": 3 * 8, b"b": 3 * 8, b"ab": 3 * 2, b"ba": 1 * 2}


@pytest.mark.parametrize("count", [1, 3, 5000])
def test_trained_codes_decode_to_the_strings(count: int) -> None:
    values = [f"https://example.com/{n * 7919 % 1000}/index.html".encode() for n in range(count)]
    made = strings(values)
    found = train(made)
    coded = found.encode(made)
    parsed = parse_symbol_table(found.serialize())
    assert parsed is not None
    ends, data = decode_fsst(coded.data, coded.offsets, parsed.symbols, parsed.lengths)
    assert data.tobytes() == b"".join(values)
    assert ends.tolist() == made.offsets.tolist()
    assert len(found.serialize()) == 2312


def test_fsst_training_is_deterministic_and_shrinks_text_to_a_third() -> None:
    made = strings([f"user{n % 97}@mail{n % 13}.example.org".encode() for n in range(20_000)])
    found, again = train(sample_of(made)), train(sample_of(made))
    assert found.serialize() == again.serialize()
    assert ratio_of(sample_of(made), found) < 1 / 3
    assert len(found.encode(made).data) < made.size_bytes / 3


def test_random_bytes_are_noise_and_text_is_not() -> None:
    rng = np.random.default_rng(3)
    assert is_noise(strings([rng.bytes(4000) for _ in range(20)]))
    assert not is_noise(strings([b"plain text, plain words"] * 100))


def test_fsst_training_counts_only_symbols_of_the_text() -> None:
    made = strings([b"abab"])
    symbols, _, _ = count_symbols(made.data, made.offsets, *table([]), 2, PAIRS)
    assert sorted(int(symbol).to_bytes(2, "little") for symbol in symbols) == [
        b"a\0",
        b"ab",
        b"b\0",
    ]
    with pytest.raises(ValueError, match="never"):
        count_symbols(made.data, made.offsets, *table([]), 0, PAIRS)
