"""Posting lists written and read again; decoding of bytes is tested in tests/unit/index/text."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennon.errors import FormatError
from pennon.index.kernels.text.posting_lists import decode_lists
from pennon.index.kernels.text.postings import (
    add_scores,
    decode_blocks,
    decode_position_lists,
    decode_positions,
    find_frequencies,
)
from pennon.index.kernels.text.postings_write import (
    encode_impacts,
    encode_position_lists,
    encode_positions,
    encode_postings,
)

LISTS = st.lists(
    st.dictionaries(
        st.integers(0, 1 << 31),
        st.lists(st.integers(0, 1 << 31), min_size=1, max_size=4),
        max_size=300,
    ),
    min_size=1,
    max_size=4,
)
NONE = np.empty(0, np.uint8)


def words(values: list[int]) -> np.ndarray:
    return np.array(values, np.uint32)


@given(LISTS, st.sampled_from([(128, False), (128, True), (256, True)]))
def test_postings_are_written_and_read(
    lists: list[dict[int, list[int]]], coding: tuple[int, bool]
) -> None:
    size, is_varint = coding
    ends = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    docs = words([doc for each in lists for doc in sorted(each)])
    places = [sorted(each[doc]) for each in lists for doc in sorted(each)]
    frequencies = words([len(each) for each in places])
    positions = words([place for each in places for place in each])
    lengths = words([1 + int(doc) % 5000 for doc in docs])
    blocks = -(-np.diff(ends) // size)
    room = 2100 * int(blocks.sum()) + 20 * len(docs) + 4 * len(lists)
    target, blobs = np.empty(room, np.uint8), np.zeros(int(blocks.sum()) + 1, np.int64)
    scores = np.ones(len(docs), np.float32)
    used = encode_postings(ends, docs, frequencies, scores, size, is_varint, target, blobs)
    assert used == blobs[-1]
    streams = np.empty(5 * len(positions) + 128, np.uint8)
    stream_ends, starts = np.zeros(len(ends), np.int64), np.empty(int(blocks.sum()), np.uint32)
    encode_positions(ends, frequencies, positions, size, streams, stream_ends, starts)
    first = 0
    for token, count in enumerate(np.diff(ends)):
        if not count:
            continue
        mine = slice(ends[token], ends[token + 1])
        here = blobs[first : first + blocks[token] + 1]
        found, often = np.empty(count, np.uint32), np.empty(count, np.uint32)
        last = int(count - size * (blocks[token] - 1))
        chosen = np.arange(blocks[token])
        decode_blocks(target, here, chosen, size, last, is_varint, 1 << 32, found, often)
        assert found.tolist() == docs[mine].tolist()
        assert often.tolist() == frequencies[mine].tolist()
        within = starts[first : first + blocks[token]].astype(np.int64) + stream_ends[token]
        counts = np.full(blocks[token], size, np.int64)
        counts[-1] = last
        read = np.empty(int(often.sum()), np.uint32)
        decode_positions(streams, np.append(within, stream_ends[token + 1]), counts, often, read)
        assert read.tolist() == [place for each in places[mine] for place in each]
        first += blocks[token]
    every, often = np.empty(len(docs), np.uint32), np.empty(len(docs), np.uint32)
    of_tokens, counts = np.concatenate([[0], np.cumsum(blocks)]), np.diff(ends)
    decode_lists(target, blobs, of_tokens, counts, size, is_varint, 1 << 32, every, often)
    assert every.tolist() == docs.tolist()
    assert often.tolist() == frequencies.tolist()
    groups = -(-np.diff(ends) // (32 * size))
    bounds = np.empty(16 * int((blocks + groups).sum()), np.uint8)
    bound_ends = np.zeros(int((blocks + groups).sum()) + 1, np.int64)
    encode_impacts(ends, docs, frequencies, lengths, size, bounds, bound_ends)
    bounded = [
        best_pair(bounds[start:end].tobytes()) for start, end in pairwise(bound_ends.tolist())
    ]
    at = 0
    for token, count in enumerate(np.diff(ends).tolist()):
        for span in (size, 32 * size):
            for start in range(int(ends[token]), int(ends[token]) + count, span):
                end = min(start + span, int(ends[token]) + count)
                last, frequency, code = bounded[at]
                assert last == docs[end - 1]
                assert frequency == frequencies[start:end].max()
                assert code == length_code(int(lengths[start:end].min()))
                at += 1
    assert at == len(bounded)


def best_pair(blob: bytes) -> tuple[int, int, int]:
    """Return last document, frequency and code of length of bounds of one pair."""
    numbers, shift = [0], 0
    for byte in blob:
        numbers[-1] |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(0)
            shift = 0
    last, pairs, pair, *rest = numbers[:-1]
    assert pairs == 1
    return last, 1 + (pair >> 1), rest[0] if pair & 1 else 1


def length_code(length: int) -> int:
    """Return how bounds write a length: exactly below 8, else its four highest bits."""
    bits = length.bit_length()
    return length if length < 8 else (bits - 3) << 3 | length >> bits - 4 & 7


def test_scores_of_documents() -> None:
    docs, often, lengths = words([0, 3, 4, 9]), words([1, 2, 1, 1]), words([5] * 10)
    whole = np.zeros(10, np.float32)
    add_scores(docs, often, lengths, 2.0, 5.0, whole)
    assert np.flatnonzero(whole).tolist() == [0, 3, 4, 9]
    assert whole[0] == pytest.approx(2.0 * 2.2 / (1 + 1.2))
    short = np.zeros(4, np.float32)
    add_scores(docs, often, lengths, 2.0, 5.0, short)
    assert np.flatnonzero(short).tolist() == [0, 3]


def test_frequencies_of_some_documents() -> None:
    found = np.empty(4, np.uint32)
    find_frequencies(words([2, 5, 9]), words([7, 8, 9]), words([0, 5, 9, 11]), found)
    assert found.tolist() == [0, 8, 9, 0]


def test_posting_encoders_refuse_wrong_arrays() -> None:
    ends, one, scores = np.array([0, 2], np.int64), words([1]), np.ones(1, np.float32)
    with pytest.raises(ValueError, match="posting lists"):
        encode_postings(ends, one, one, scores, 128, True, NONE, np.zeros(2, np.int64))  # noqa: FBT003
    with pytest.raises(ValueError, match="posting lists"):
        encode_impacts(ends, one, one, one, 128, NONE, np.zeros(3, np.int64))
    with pytest.raises(ValueError, match="posting lists"):
        encode_positions(ends, one, one, 128, NONE, np.zeros(2, np.int64), words([0]))
    with pytest.raises(ValueError, match="differ in number"):
        find_frequencies(one, one, one, words([0, 0]))


@given(st.lists(st.lists(st.integers(0, 1 << 31), max_size=300), min_size=1, max_size=9))
def test_positions_as_lists(lists: list[list[int]]) -> None:
    frequencies = words([len(each) for each in lists])
    positions = words([place for each in lists for place in sorted(each)])
    blobs = 1 + -(-frequencies.astype(np.int64) // 128)
    target = np.empty(8 * len(lists) + 5 * len(positions) + 128, np.uint8)
    ends = np.zeros(int(blobs.sum()) + 1, np.int64)
    encode_position_lists(frequencies, positions, target, ends)
    read = np.empty_like(positions)
    lists_of = np.concatenate([[0], np.cumsum(blobs)])
    decode_position_lists(target, ends, lists_of, frequencies, read)
    assert read.tolist() == positions.tolist()


def test_damaged_posting_lists_are_refused() -> None:
    ends, docs = np.array([0, 2, 3], np.int64), words([1, 2, 5])
    target, blobs = np.empty(100, np.uint8), np.zeros(3, np.int64)
    encode_postings(ends, docs, words([1, 1, 1]), np.ones(3, np.float32), 128, True, target, blobs)  # noqa: FBT003
    found, often = np.empty(3, np.uint32), np.empty(3, np.uint32)

    def decode(of_tokens: list[int], counts: list[int], limit: int) -> None:
        lists, sizes = np.array(of_tokens, np.int64), np.array(counts, np.int64)
        decode_lists(target, blobs, lists, sizes, 128, True, limit, found, often)  # noqa: FBT003

    decode([0, 1, 2], [2, 1], 6)
    for of_tokens, counts, limit in (
        ([0, 1, 2], [2, 1], 5),
        ([0, 1, 2], [1, 2], 6),
        ([0, 2, 2], [2, 1], 6),
        ([0, 1, 3], [2, 1], 6),
        ([-1, 1, 2], [2, 1], 6),
        ([0, 1, 2], [2, -1], 6),
    ):
        with pytest.raises(FormatError, match=r"posting list . of 2 is damaged"):
            decode(of_tokens, counts, limit)
