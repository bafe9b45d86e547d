"""Bloom filters beside the hash of single values, and arguments that are refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennon.index.kernels.rows.bloom import insert_fixed, insert_varied, xxhash64
from tests.unit.index.kernels.rows.plain_xxhash import plain_xxhash64

SALT = (
    0x47B6137B,
    0x44974D91,
    0x8824AD5B,
    0xA2B7289D,
    0x705495C7,
    0x2DF1424B,
    0x9EFC4947,
    0x5C6BFB31,
)


def by_hand(values: list[bytes], blocks: int) -> list[int]:
    """Return the words of a filter of values: reference index-scalar, 7."""
    words = [0] * (8 * blocks)
    for value in values:
        found = plain_xxhash64(value)
        block = ((found >> 32) * blocks) >> 32
        for at, salt in enumerate(SALT):
            words[8 * block + at] |= 1 << ((((found & 0xFFFFFFFF) * salt) & 0xFFFFFFFF) >> 27)
    return words


KNOWN = {
    b"": 0xEF46DB3751D8E999,
    b"a": 0xD24EC4F1A98C6E5B,
    b"abc": 0x44BC2CF5AD770999,
    b"Nobody inspects the spammish repetition": 0xFBCEA83C8A378BF1,
}
"""Published values, and those of the specification's own generator."""


@pytest.mark.parametrize("data", KNOWN)
def test_xxhash64_of_known_bytes(data: bytes) -> None:
    assert xxhash64(data) == plain_xxhash64(data) == KNOWN[data]


@given(st.binary(max_size=200))
def test_xxhash64_equals_the_plain_one(data: bytes) -> None:
    assert xxhash64(data) == plain_xxhash64(data)


@given(st.lists(st.binary(max_size=70)), st.sampled_from([1, 2, 8, 64]))
def test_bloom_insert_of_variable_width_values_equals_the_twin(
    values: list[bytes], blocks: int
) -> None:
    words = np.zeros(8 * blocks, np.uint32)
    offsets = np.cumsum([0, *map(len, values)], dtype=np.int32)
    insert_varied(words, np.frombuffer(b"".join(values), np.uint8), offsets)
    assert words.tolist() == by_hand(values, blocks)


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_bloom_insert_of_fixed_width_values_equals_the_twin(width: int) -> None:
    data = np.random.default_rng(width).integers(0, 256, 50 * width, np.uint8)
    values = [data[at : at + width].tobytes() for at in range(0, len(data), width)]
    words = np.zeros(32, np.uint32)
    insert_fixed(words, data, width)
    assert words.tolist() == by_hand(values, 4)


def test_a_published_filter() -> None:
    words = np.zeros(8, np.uint32)
    insert_fixed(words, np.array([1, 2, 3], "<i4").view(np.uint8), 4)
    assert words.astype("<u4").tobytes().hex() == (
        "240004000000000c004080000502000080000084002040000000500200380000"
    )


@pytest.mark.parametrize(("words", "width"), [(0, 4), (7, 4), (8, 0), (8, -1), (8, 3)], ids=str)
def test_bloom_insert_of_fixed_values_with_wrong_sizes_is_refused(words: int, width: int) -> None:
    with pytest.raises(ValueError, match="filter"):
        insert_fixed(np.zeros(words, np.uint32), np.zeros(4, np.uint8), width)


@pytest.mark.parametrize("offsets", [[0, 5], [3, 1], [-1, 2], [0, 2, 1]], ids=str)
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_bloom_insert_with_wrong_offsets_is_refused(offsets: list[int], kind: type) -> None:
    with pytest.raises(ValueError, match="offsets"):
        insert_varied(np.zeros(8, np.uint32), np.zeros(4, np.uint8), np.array(offsets, kind))
