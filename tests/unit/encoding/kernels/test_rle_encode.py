"""Run lengths, byte streams and values under NULLs against plain twins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

import numpy as np
import pytest

from pennon.encoding.kernels.rle_encode import (
    count_runs,
    encode_runs,
    fill_nulls,
    hash_pieces,
    join_pieces,
    number_pieces,
    split_streams,
    tally,
)

WORDS = [np.uint8, np.uint16, np.uint32, np.uint64]


def slow_runs(values: list[int]) -> list[tuple[int, int]]:
    """Return values and lengths; what is longer than 255 is several runs."""
    runs = []
    for value, group in groupby(values):
        left = len(list(group))
        while left:
            runs.append((value, min(left, 255)))
            left -= min(left, 255)
    return runs


@pytest.mark.parametrize("dtype", WORDS)
@pytest.mark.parametrize("spread", [1, 3, 40, 300])
def test_rle_runs_of_each_chunk_equal_the_twin(dtype: type, spread: int) -> None:
    rng = np.random.default_rng(spread)
    values: np.ndarray = np.repeat(rng.integers(0, 200, 9000 // spread), spread).astype(dtype)
    found, lengths, counts, runs = encode_runs(values, 4096, 2000)
    assert counts.sum() == len(values)
    at = run = 0
    for count, size in zip(counts.tolist(), runs.tolist(), strict=True):
        pairs = zip(
            found[run : run + size].tolist(), lengths[run : run + size].tolist(), strict=True
        )
        assert list(pairs) == slow_runs(values[at : at + count].tolist())
        assert size * (np.dtype(dtype).itemsize + 1) <= 2000
        at, run = at + count, run + size
    assert all(count & (count - 1) == 0 and count <= 4096 for count in counts[:-1].tolist())
    assert count_runs(values) == len(list(groupby(values.tolist())))


def test_rle_chunk_is_the_largest_fitting_power_of_two() -> None:
    values = np.arange(100, dtype=np.uint8)
    _, _, counts, _ = encode_runs(values, 4096, 2 * 40)
    assert counts.tolist() == [32, 32, 36]
    _, _, counts, _ = encode_runs(np.zeros(5000, np.uint8), 4096, 1000)
    assert counts.tolist() == [4096, 904]
    with pytest.raises(ValueError, match="room"):
        encode_runs(values, 4096, 1)


def test_rle_encoding_of_zero_values() -> None:
    empty = np.empty(0, np.uint32)
    assert count_runs(empty) == 0
    assert [len(part) for part in encode_runs(empty, 4096, 100)] == [0, 0, 0, 0]


def test_streams_hold_one_byte_of_all_values_of_a_chunk() -> None:
    data = np.arange(24, dtype=np.uint8)
    split = split_streams(data, 4, np.array([4, 2]))
    first = data[:16].reshape(4, 4).T.tobytes()
    assert split.tobytes() == first + data[16:].reshape(2, 4).T.tobytes()
    with pytest.raises(ValueError, match="divide"):
        split_streams(data, 4, np.array([4, 3]))


@pytest.mark.parametrize("offset", [0, 3])
def test_fill_nulls_repeats_the_value_before(offset: int) -> None:
    valid = np.array([0, 0, 1, 0, 1, 1, 0], bool)
    bits = np.packbits(np.concatenate([np.ones(offset, bool), valid]), bitorder="little")
    values = np.array([9, 9, 1, 9, 2, 3, 9], np.uint16)
    assert fill_nulls(values, bits, offset).tolist() == [1, 1, 1, 1, 2, 3, 3]
    assert fill_nulls(values, np.zeros(2, np.uint8), 0).tolist() == [0] * 7
    with pytest.raises(ValueError, match="bitmap"):
        fill_nulls(values, bits, 10)


@pytest.mark.parametrize(("most", "room"), [(1, 9), (3, 90), (64, 20), (4096, 8186)])
def test_runs_of_any_length_are_cut_at_chunks_and_at_255(most: int, room: int) -> None:
    rng = np.random.default_rng(most)
    values = np.repeat(rng.integers(0, 3, 60), rng.integers(1, 700, 60)).astype(np.uint64)
    found, lengths, counts, runs = encode_runs(values, most, room)
    assert np.repeat(found, lengths).tolist() == values.tolist()
    assert counts.max() <= most
    assert (runs <= max(room // 9, 1)).all()
    ends = np.cumsum(lengths, dtype=np.int64)
    assert np.isin(np.cumsum(counts), ends).all()


def test_equal_pieces_have_equal_hashes() -> None:
    rng = np.random.default_rng(3)
    data = rng.integers(0, 256, 4000, np.uint8)
    data[2000:] = data[:2000]
    sizes = np.tile(np.arange(0, 200, 7), 2)
    half = len(sizes) // 2
    starts = np.tile(np.arange(half) * 9, 2)
    starts[half:] += 2000
    hashes = hash_pieces(data, starts, sizes)
    assert hashes[:half].tolist() == hashes[half:].tolist()
    assert len(set(hashes.tolist())) == half
    assert len(set(hash_pieces(data, np.arange(100), np.full(100, 11)).tolist())) == 100


def test_pieces_outside_the_data_are_refused() -> None:
    data = np.zeros(10, np.uint8)
    for start, size in ((-1, 2), (9, 2), (11, 0), (0, -1)):
        with pytest.raises(ValueError, match="leaves"):
            hash_pieces(data, np.array([start]), np.array([size]))
    with pytest.raises(ValueError, match="size for each"):
        hash_pieces(data, np.array([0, 1]), np.array([1]))
    assert hash_pieces(data, np.array([10]), np.array([0])).tolist() == [0]


@pytest.mark.parametrize("dtype", WORDS)
@pytest.mark.parametrize("items", [1, 5, 3000])
def test_keys_are_tallied_as_the_twin_does(dtype: type, items: int) -> None:
    rng = np.random.default_rng(items)
    keys: np.ndarray = rng.integers(0, items, 2000).astype(dtype)
    counts = Counter(keys.tolist())
    times = Counter(counts.values())
    found = tally(keys, keys.astype(np.int64))
    assert found == (len(counts), times[1], times[2], sum(counts))
    assert tally(keys[:0], np.zeros(0, np.int64)) == (0, 0, 0, 0)
    with pytest.raises(ValueError, match="size for each"):
        tally(keys, np.zeros(3, np.int64))


def pieces_of(texts: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes and offsets of byte strings."""
    offsets = np.cumsum([0, *map(len, texts)])
    return np.frombuffer(b"".join(texts), np.uint8), offsets


@pytest.mark.parametrize("items", [1, 2, 40, 3000])
@pytest.mark.parametrize("longest", [1, 7, 8, 9, 128])
def test_pieces_are_numbered_by_their_first_occurrence(items: int, longest: int) -> None:
    rng = np.random.default_rng(items)
    base = [
        rng.integers(97, 123, rng.integers(0, longest + 1)).astype(np.uint8) for _ in range(items)
    ]
    texts = [base[number].tobytes() for number in rng.integers(0, items, 1500)]
    texts += [b"", b"\0", b"\0\0", b"a", b"a\0"]
    data, offsets = pieces_of(texts)
    for counted in (0, 1, 900, len(texts)):
        found = number_pieces(data, offsets, counted)
        assert found is not None
        numbers, places, tallied = found
        distinct = list(dict.fromkeys(texts))
        assert [distinct[number] for number in numbers] == texts
        assert [texts[place] for place in places] == distinct
        counts = Counter(texts[:counted])
        times = Counter(counts.values())
        assert tallied == (len(counts), times[1], times[2], sum(map(len, counts)))
    ends, joined = join_pieces(data, offsets, places)
    assert joined.tobytes() == b"".join(distinct)
    assert ends.tolist() == np.cumsum([0, *map(len, distinct)]).tolist()


def test_long_pieces_and_pieces_without_bytes_are_not_numbered() -> None:
    assert number_pieces(*pieces_of([b"a", b"x" * 129]), 2) is None
    assert number_pieces(*pieces_of([b"", b""]), 2) is None


@pytest.mark.parametrize("offsets", [[-1, 1], [0, 2, 1], [0, 11], [12, 13], []])
def test_numbered_pieces_outside_the_data_are_refused(offsets: list[int]) -> None:
    data = np.zeros(10, np.uint8)
    with pytest.raises(ValueError, match="piece"):
        number_pieces(data, np.array(offsets, np.int64), 0)
    if offsets:
        places = np.arange(len(offsets) - 1, dtype=np.int32)
        with pytest.raises(ValueError, match="leaves"):
            join_pieces(data, np.array(offsets, np.int64), places)
    with pytest.raises(ValueError, match="no such piece"):
        join_pieces(data, np.array([0, 1]), np.array([1], np.int32))
