"""Full-zip pages and chunks, put together as plain twins say."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from pennon.encoding.kernels.chunks import cut_strings, put_together, write_strings
from pennon.encoding.kernels.full_zip import unzip
from pennon.encoding.kernels.interleave_bytes import interleave

NONE = np.empty(0, np.uint16)


def strings(values: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int64)
    return np.frombuffer(b"".join(values), np.uint8), offsets


def test_interleaved_byte_strings_follow_their_levels_and_sizes() -> None:
    rep = np.array([1, 0, 1, 1], np.uint16)
    definition = np.array([0, 1, 2, 0], np.uint16)
    data, offsets = strings([b"ab", b"", b"c"])
    zipped, starts = interleave(rep, definition, 2, 1, 1, 1, data, 0, offsets, 4)
    wanted = [b"\x04" + struct.pack("<I", 2) + b"ab", b"\x01", b"\x06"]
    wanted.append(b"\x04" + struct.pack("<I", 1) + b"c")
    assert zipped.tobytes() == b"".join(wanted)
    assert starts.tolist() == [0, 8, 9, 15]
    again = unzip(zipped, 1, 2, 1, 0, 4)
    assert [part.tolist() for part in again] == [
        rep.tolist(),
        definition.tolist(),
        offsets.tolist(),
        list(b"abc"),
    ]


@pytest.mark.parametrize("word_width", [1, 2, 4])
def test_interleaved_fixed_width_nulls_keep_their_slot(word_width: int) -> None:
    definition = np.array([0, 1, 0], np.uint16)
    zipped, starts = interleave(
        NONE, definition, 1, word_width, 0, 1, np.arange(6, dtype=np.uint8), 2, None, 0
    )
    words = [level.to_bytes(word_width, "little") for level in (0, 1, 0)]
    assert zipped.tobytes() == words[0] + b"\0\1" + words[1] + b"\2\3" + words[2] + b"\4\5"
    assert starts.tolist() == [number * (word_width + 2) for number in range(4)]


def test_interleaved_values_without_levels() -> None:
    data, offsets = strings([b"x", b"yz"])
    zipped, starts = interleave(NONE, NONE, 0, 0, 0, 0, data, 0, offsets, 8)
    assert zipped.tobytes() == struct.pack("<Q", 1) + b"x" + struct.pack("<Q", 2) + b"yz"
    assert starts.tolist() == [0, 9, 19]


def test_interleaved_values_of_wrong_count_are_refused() -> None:
    data, offsets = strings([b"x", b"yz"])
    with pytest.raises(ValueError, match="visible"):
        interleave(NONE, np.zeros(3, np.uint16), 1, 1, 0, 1, data, 0, offsets, 4)
    with pytest.raises(ValueError, match="visible"):
        interleave(NONE, np.zeros(2, np.uint16), 1, 1, 0, 1, data, 2, None, 0)
    with pytest.raises(ValueError, match="fall"):
        interleave(NONE, NONE, 0, 0, 0, 0, data, 0, np.array([0, 3, 2], np.int64), 4)


def test_strings_are_cut_into_chunks_of_powers_of_two() -> None:
    _, offsets = strings([b"x" * 10] * 100)
    assert cut_strings(offsets, 4, 400, 4096).tolist() == [16, 16, 16, 16, 16, 20]
    assert cut_strings(offsets, 4, 10_000, 4096).tolist() == [100]
    assert cut_strings(offsets, 4, 10_000, 64).tolist() == [64, 36]
    assert cut_strings(offsets[:4], 4, 1, 64).tolist() == [1, 1, 1]


@pytest.mark.parametrize("width", [4, 8])
def test_chunks_of_strings_begin_with_their_offsets(width: int) -> None:
    data, offsets = strings([b"ab", b"", b"cde"])
    packed, sizes = write_strings(data, offsets, np.array([2, 1]), width)
    first = np.array([3 * width, 3 * width + 2, 3 * width + 2], f"<u{width}").tobytes() + b"ab"
    second = np.array([2 * width, 2 * width + 3], f"<u{width}").tobytes() + b"cde"
    whole = [part + b"\x48" * (-len(part) % width) for part in (first, second)]
    assert packed.tobytes() == b"".join(whole)
    assert sizes.tolist() == [len(part) for part in whole]
    with pytest.raises(ValueError, match="divide"):
        write_strings(data, offsets, np.array([2, 2]), width)


def test_a_chunk_is_its_sizes_and_its_buffers_filled_up() -> None:
    buffers = [np.arange(3, dtype=np.uint8), np.arange(9, dtype=np.uint8)]
    counts, logs, sizes = np.array([5, 0]), np.array([10, 0], np.uint8), [[3, 0], [8, 1]]
    made = put_together(counts, logs, buffers, sizes, 1, is_large=False)
    assert made is not None
    data, words = made
    assert words.dtype == np.uint16
    first = struct.pack("<HHH", 5, 3, 8) + b"\xfe" * 2 + b"\0\1\2" + b"\xfe" * 5 + bytes(range(8))
    second = struct.pack("<HHH", 0, 0, 1) + b"\xfe" * 2 + b"\x08" + b"\xfe" * 7
    assert data.tobytes() == first + second
    assert words.tolist() == [(len(first) // 8 - 1) << 4 | 10, (len(second) // 8 - 1) << 4]


def test_wide_chunks_have_sizes_of_32_bits_for_values_only() -> None:
    buffers = [np.arange(3, dtype=np.uint8), np.arange(9, dtype=np.uint8)]
    counts, logs, sizes = np.array([5, 0]), np.array([10, 0], np.uint8), [[3, 0], [8, 1]]
    made = put_together(counts, logs, buffers, sizes, 1, is_large=True)
    assert made is not None
    data, words = made
    assert words.dtype == np.uint32
    first = struct.pack("<HHI", 5, 3, 8) + b"\0\1\2" + b"\xfe" * 5 + bytes(range(8))
    second = struct.pack("<HHI", 0, 0, 1) + b"\x08" + b"\xfe" * 7
    assert data.tobytes() == first + second
    assert words.tolist() == [(len(first) // 8 - 1) << 4 | 10, (len(second) // 8 - 1) << 4]


@pytest.mark.parametrize("is_large", [False, True])
def test_chunk_assembly_above_the_size_limit_returns_none(is_large: bool) -> None:
    logs, none, one = np.zeros(1, np.uint8), np.array([0]), np.array([65536])
    big = np.zeros(32768, np.uint8)
    assert put_together(none, logs, [big[:32760]], [[32760]], 0, is_large) is not None
    assert put_together(none, logs, [big], [[32768]], 0, is_large) is None
    assert put_together(one, logs, [big[:8]], [[8]], 0, is_large) is None
    with pytest.raises(ValueError, match="divide"):
        put_together(none, logs, [big[:8]], [[7]], 0, is_large)
    with pytest.raises(ValueError, match="levels"):
        put_together(none, logs, [big[:8]], [[8]], 2, is_large)
