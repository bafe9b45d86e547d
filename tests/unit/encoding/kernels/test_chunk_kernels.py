"""The kernels of 2.1 that take all chunks of a page, against twins that read like the format."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from pennon.encoding.kernels import fastlanes
from pennon.encoding.kernels.full_zip import place_sized, unzip
from pennon.encoding.kernels.miniblocks import split_chunks
from pennon.encoding.kernels.packed_rows import split_rows
from pennon.encoding.kernels.row_positions import place_rows
from pennon.encoding.kernels.runs import expand_runs, join_streams, split_runs
from pennon.encoding.kernels.strings import pick_strings
from pennon.errors import FormatError
from tests.seeds import each_seed

ORDER = [0, 4, 2, 6, 1, 5, 3, 7]
GAP = b"\xa5" * 3


def numbers(values: Sequence[int]) -> np.ndarray:
    return np.array(values, np.int64)


def laid_out(chunks: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Put chunks into one buffer with junk between them; return it, their starts and sizes."""
    data, starts = b"", []
    for chunk in chunks:
        data += GAP
        starts.append(len(data))
        data += chunk
    sizes = numbers([len(chunk) for chunk in chunks])
    return np.frombuffer(data + GAP, np.uint8), numbers(starts), sizes


# --- headers --------------------------------------------------------------------------------------


def split_slowly(chunk: bytes, level_buffers: int, value_buffers: int, is_large: bool) -> list:
    """Return the number of levels and the (start, size) of each buffer of one chunk."""
    form = "<H" + "H" * level_buffers + ("I" if is_large else "H") * value_buffers
    levels, *sizes = struct.unpack_from(form, chunk)
    places, at = [], -(-struct.calcsize(form) // 8) * 8
    for size in sizes:
        places.append((at, size))
        at = -(-(at + size) // 8) * 8
    return [levels, *places]


@each_seed(40)
def test_split_chunks_equals_the_twin(seed: int) -> None:
    chance = random.Random(seed)
    level_buffers, value_buffers = chance.randint(0, 2), chance.randint(0, 3)
    is_large = chance.random() < 0.5
    form = "<H" + "H" * level_buffers + ("I" if is_large else "H") * value_buffers
    chunks = []
    for _ in range(chance.randint(1, 5)):
        given = [chance.randint(0, 20) for _ in range(level_buffers + value_buffers)]
        chunk = struct.pack(form, chance.randint(0, 9), *given)
        for size in given:
            chunk += bytes(-len(chunk) % 8) + chance.randbytes(size)
        chunks.append(chunk + bytes(-len(chunk) % 8))
    data, starts, sizes = laid_out(chunks)
    levels, found, lengths = split_chunks(
        data, starts, sizes, level_buffers, value_buffers, is_large
    )
    for number, chunk in enumerate(chunks):
        wanted = split_slowly(chunk, level_buffers, value_buffers, is_large)
        mine = [
            (int(found[b, number] - starts[number]), int(lengths[b, number]))
            for b in range(level_buffers + value_buffers)
        ]
        assert [int(levels[number]), *mine] == wanted


@pytest.mark.parametrize(
    ("chunk", "size"),
    [
        (struct.pack("<HH", 0, 9), 8),  # no room for the buffer
        (struct.pack("<HH", 0, 1) + bytes(4), 3),  # no room for the header
        (struct.pack("<HH", 0, 0xFFFF) + bytes(20), 24),
    ],
)
def test_split_chunks_refuses(chunk: bytes, size: int) -> None:
    data = np.frombuffer(chunk.ljust(size, b"\0"), np.uint8)
    with pytest.raises(FormatError, match="chunk 0"):
        split_chunks(data, numbers([0]), numbers([size]), 0, 1, is_large=False)


def test_split_chunks_outside_their_buffer_is_refused() -> None:
    with pytest.raises(FormatError, match="leaves its buffer"):
        split_chunks(np.zeros(8, np.uint8), numbers([0]), numbers([16]), 0, 1, is_large=False)


# --- bit-packing ----------------------------------------------------------------------------------


def pack_slowly(values: Sequence[int], width: int, bits: int) -> bytes:
    """Pack 1024 values: lane by lane one string of bits, row r of it the values of the order."""
    lanes = 1024 // bits
    words = [[0] * lanes for _ in range(width)]
    for lane in range(lanes):
        string = 0
        for row in range(bits):
            value = values[16 * ORDER[row // 8] + 128 * (row % 8) + lane]
            string |= value << (row * width)
        for word in range(width):
            words[word][lane] = string >> (word * bits) & ((1 << bits) - 1)
    return b"".join(word.to_bytes(bits // 8, "little") for row in words for word in row)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_unpack_inline_equals_the_twin(bits: int) -> None:
    chance = random.Random(bits)
    chunks: list[bytes] = []
    wanted: list[int] = []
    counts: list[int] = []
    for count in (1, 1023, 1024, 1025, 0, 2050):
        chunk = b""
        for start in range(0, count, 1024):
            width = chance.choice([0, 1, bits // 2 + 1, bits])
            values = [chance.getrandbits(width) if width else 0 for _ in range(1024)]
            chunk += width.to_bytes(bits // 8, "little") + pack_slowly(values, width, bits)
            wanted += values[: count - start]
        chunks.append(chunk)
        counts.append(count)
    data, starts, sizes = laid_out(chunks)
    target = np.empty(sum(counts), f"u{bits // 8}")
    fastlanes.unpack_inline(data, starts, sizes, numbers(counts), target)
    assert target.tolist() == wanted
    with pytest.raises(FormatError, match="packed in blocks"):
        fastlanes.unpack_inline(data, starts, sizes - 1, numbers(counts), target)


def test_unpack_inline_refuses_wide_bits() -> None:
    data = np.full(4096, 33, np.uint8)
    where = (numbers([0]), numbers([4096]), numbers([1]))
    with pytest.raises(FormatError, match="chunk 0"):
        fastlanes.unpack_inline(data, *where, np.empty(1, np.uint8))
    with pytest.raises(FormatError, match="chunk 0"):
        fastlanes.unpack_inline(data, *where, np.empty(1, np.uint16))


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("raw_tail", [False, True])
def test_unpack_blocks_equals_the_twin(bits: int, *, raw_tail: bool) -> None:
    chance = random.Random(bits)
    width = bits - 3
    chunks, wanted, counts = [], [], [1, 1024, 1030, 2048]
    for count in counts:
        values = [chance.getrandbits(width) for _ in range(count)]
        wanted += values
        whole = count // 1024 * 1024
        chunk = b"".join(
            pack_slowly(values[start : start + 1024], width, bits)
            for start in range(0, whole, 1024)
        )
        if raw_tail:
            chunk += b"".join(value.to_bytes(bits // 8, "little") for value in values[whole:])
        elif count > whole:
            chunk += pack_slowly(values[whole:] + [0] * (1024 - count + whole), width, bits)
        chunks.append(chunk)
    data, starts, sizes = laid_out(chunks)
    target = np.empty(sum(counts), f"u{bits // 8}")
    fastlanes.unpack_blocks(data, starts, sizes, numbers(counts), width, target)
    assert target.tolist() == wanted
    with pytest.raises(FormatError, match="chunk 0"):
        fastlanes.unpack_blocks(data, starts, sizes - 1, numbers(counts), width, target)


# --- runs and streams -----------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("length_bits", [8, 16, 32])
def test_expand_runs_equals_the_twin(bits: int, length_bits: int) -> None:
    chance = random.Random(bits * length_bits)
    values, lengths, counts, wanted = [], [], [], []
    for _ in range(4):
        runs = [(chance.getrandbits(bits), chance.randint(0, 200)) for _ in range(9)]
        expanded = [value for value, length in runs for _ in range(length)]
        count = len(expanded) - chance.choice([0, 0, 1])  # what is too much is cut off
        wanted += expanded[:count]
        counts.append(count)
        values.append(b"".join(v.to_bytes(bits // 8, "little") for v, _ in runs))
        lengths.append(b"".join(n.to_bytes(length_bits // 8, "little") for _, n in runs))
    target = np.empty(sum(counts), f"u{bits // 8}")
    value_data, length_data = laid_out(values), laid_out(lengths)
    expand_runs(*value_data, *length_data, length_bits // 8, numbers(counts), target)
    assert target.tolist() == wanted
    more = numbers(counts)
    more[-1] += 300
    large = np.empty(len(target) + 300, target.dtype)
    with pytest.raises(FormatError, match="do not make"):
        expand_runs(*value_data, *length_data, length_bits // 8, more, large)
    cut = (value_data[0], value_data[1], value_data[2] - bits // 8)
    with pytest.raises(FormatError, match="chunk 0"):
        expand_runs(*cut, *length_data, length_bits // 8, numbers(counts), target)


def test_split_runs_finds_where_lengths_begin() -> None:
    parts = [size.to_bytes(8, "little") + bytes(size + 3) for size in (0, 4, 200)]
    data, starts, sizes = laid_out(parts)
    assert split_runs(data, starts, sizes).tolist() == [0, 4, 200]
    assert split_runs(data, starts[:0], sizes[:0]).tolist() == []
    for bad in (sizes - 4, np.full(3, 7), np.zeros(3, np.int64), -sizes, sizes + len(data)):
        with pytest.raises(FormatError, match="beyond the end of their buffer"):
            split_runs(data, starts, bad)
    with pytest.raises(FormatError, match="beyond the end of their buffer"):
        split_runs(np.full(16, 255, np.uint8), np.zeros(1, np.int64), np.array([16]))
    with pytest.raises(ValueError, match="differ in length"):
        split_runs(data, starts, sizes[1:])


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_join_streams_equals_the_twin(width: int) -> None:
    counts = [3, 0, 1, 100]
    rows = [np.random.default_rng(n).bytes(n * width) for n in counts]
    chunks = [b"".join(row[byte::width] for byte in range(width)) for row in rows]
    data, starts, sizes = laid_out(chunks)
    target = np.empty(sum(counts) * width, np.uint8)
    join_streams(data, starts, sizes, numbers(counts), width, target)
    assert target.tobytes() == b"".join(rows)
    with pytest.raises(FormatError, match="chunk 0"):
        join_streams(data, starts, sizes + 1, numbers(counts), width, target)


# --- strings --------------------------------------------------------------------------------------


def string_chunk(strings: Sequence[bytes], width: int) -> bytes:
    """Return offsets from the begin of the chunk, the bytes, and junk as padding."""
    ends = np.cumsum([(len(strings) + 1) * width, *map(len, strings)])
    return ends.astype(f"u{width}").tobytes() + b"".join(strings) + b"H" * 3


@each_seed(30)
def test_pick_strings_equals_the_twin(seed: int) -> None:
    chance = random.Random(seed)
    width = chance.choice([4, 8])
    lists = [
        [chance.randbytes(chance.randint(0, 9)) for _ in range(chance.randint(0, 12))]
        for _ in range(chance.randint(1, 6))
    ]
    every = [string for strings in lists for string in strings]
    cuts = sorted(chance.choices(range(len(every) + 1), k=chance.choice([2, 4, 8])))
    data, starts, sizes = laid_out([string_chunk(strings, width) for strings in lists])
    counts = numbers([len(strings) for strings in lists])
    first, last = numbers(cuts[0::2]), numbers(cuts[1::2])
    offsets, values = pick_strings(data, starts, sizes, counts, width, first, last)
    wanted = [s for a, b in zip(first, last, strict=True) for s in every[a:b]]
    assert offsets.tolist() == np.cumsum([0, *map(len, wanted)]).tolist()
    assert values.tobytes() == b"".join(wanted)


@pytest.mark.parametrize("offsets", [[12, 13, 99], [12, 11, 15], [200, 201, 202]])
def test_pick_strings_refuses(offsets: list[int]) -> None:
    chunk = np.frombuffer(np.array(offsets, np.uint32).tobytes() + b"abcdef", np.uint8)
    with pytest.raises(FormatError, match="fall or leave"):
        pick_strings(
            chunk, numbers([0]), numbers([18]), numbers([2]), 4, numbers([0]), numbers([2])
        )


def test_pick_strings_of_a_chunk_without_room() -> None:
    with pytest.raises(FormatError, match="cannot hold 3 offsets"):
        pick_strings(
            np.zeros(8, np.uint8),
            numbers([0]),
            numbers([8]),
            numbers([2]),
            4,
            numbers([0]),
            numbers([2]),
        )


# --- full-zip -------------------------------------------------------------------------------------


@each_seed(40)
def test_place_sized_equals_the_twin(seed: int) -> None:
    chance = random.Random(seed)
    width = chance.choice([1, 2, 4, 8])
    values = [chance.randbytes(chance.randint(0, 20)) for _ in range(chance.randint(0, 30))]
    zipped = b"".join(len(value).to_bytes(width, "little") + value for value in values)
    whole = np.frombuffer(zipped, np.uint8), np.array([0]), np.array([len(zipped)])
    firsts, lasts = place_sized(*whole, width, len(values))
    assert [zipped[a:b] for a, b in zip(firsts, lasts, strict=True)] == values
    # The same entries with holes between some of them.
    borders = np.cumsum([0, *(width + len(value) for value in values)])
    cuts = sorted({0, len(values), chance.randint(0, len(values)), chance.randint(0, len(values))})
    lows, highs = borders[cuts[:-1]], borders[cuts[1:]]
    shift = 3 * np.arange(1, len(cuts))
    apart = b"".join(b"???" + zipped[a:b] for a, b in zip(lows, highs, strict=True))
    holed = np.frombuffer(apart, np.uint8)
    firsts, lasts = place_sized(holed, lows + shift, highs + shift, width, len(values))
    assert [apart[a:b] for a, b in zip(firsts, lasts, strict=True)] == values
    damaged = [(zipped[: chance.randrange(len(zipped))], len(values))] if zipped else []
    damaged += [(zipped, len(values) + 1), (zipped + b"\0", len(values)), (b"\xff" * 9, 1)]
    for data, entries in damaged:
        array = np.frombuffer(data, np.uint8)
        with pytest.raises(FormatError, match="full-zip page"):
            place_sized(array, np.array([0]), np.array([len(data)]), width, entries)
    with pytest.raises(FormatError, match="outside its data"):
        place_sized(holed, np.array([0]), np.array([len(apart) + 1]), width, 1)


@each_seed(40)
def test_unzip_equals_the_twin(seed: int) -> None:
    chance = random.Random(seed)
    word, bits_def = chance.choice([(0, 0), (1, 2), (2, 9), (4, 16)])
    size_width = chance.choice([0, 1, 2, 4, 8])
    value_width = 0 if size_width else chance.randint(1, 9)
    visible_to = chance.randint(0, 3) if word else 0
    data, reps, defs, values = b"", [], [], []
    for _ in range(chance.randint(0, 30)):
        rep = chance.randint(0, 3) if word else 0
        level = chance.randint(0, 3) if word else 0
        data += (rep << bits_def | level).to_bytes(word, "little")
        reps.append(rep)
        defs.append(level)
        if level > visible_to:
            continue
        value = chance.randbytes(value_width or chance.randint(0, 9))
        if size_width and level:
            value = b""
        elif size_width:
            data += len(value).to_bytes(size_width, "little")
        data += value
        values.append(value)
    arguments = (word, bits_def, visible_to, value_width, size_width)
    rep_levels, levels, offsets, joined = unzip(np.frombuffer(data, np.uint8), *arguments)
    assert rep_levels.tolist() == reps
    assert levels.tolist() == defs
    assert joined.tobytes() == b"".join(values)
    assert offsets.tolist() == (np.cumsum([0, *map(len, values)]).tolist() if size_width else [])
    if len(data) > 1 and value_width != 1 and not (word == 1 and not values):
        for cut in range(1, len(data)):
            try:
                found = unzip(np.frombuffer(data[:cut], np.uint8), *arguments)
            except FormatError:
                continue
            assert len(found[0]) < len(reps)


# --- packed rows ----------------------------------------------------------------------------------


def test_split_rows_of_packed_structs() -> None:
    rows = [(b"abcd", b"x", b"yy"), None, (b"efgh", b"", b"z" * 9)]
    data, offsets = b"", [0]
    for row in rows:
        if row is not None:
            data += row[0] + len(row[1]).to_bytes(4, "little") + row[1]
            data += len(row[2]).to_bytes(8, "little") + row[2]
        offsets.append(len(data))
    table = np.frombuffer(data, np.uint8)
    fixed, short, long = split_rows(table, numbers(offsets), numbers([4, -4, -8]))
    assert fixed[1].tobytes() == b"abcd\0\0\0\0efgh"
    assert (short[0].tolist(), short[1].tobytes()) == ([0, 1, 1, 1], b"x")
    assert (long[0].tolist(), long[1].tobytes()) == ([0, 2, 2, 11], b"yy" + b"z" * 9)
    for widths in ([4, -4], [5, -4, -8], [4, -8, -8]):
        with pytest.raises(FormatError, match="packed row"):
            split_rows(table, numbers(offsets), numbers(widths))
    with pytest.raises(FormatError, match="packed rows with a field"):
        split_rows(np.zeros(0, np.uint8), numbers([0] * 9), numbers([1 << 31]))


# --- rows -----------------------------------------------------------------------------------------


@each_seed(60)
def test_place_rows_equals_the_twin(seed: int) -> None:
    """Rows of random levels, cut into chunks anywhere between values, some chunks left out."""
    chance = random.Random(seed)
    rows = [
        [chance.choice([0, 0, 0, 3]) for _ in range(chance.randint(1, 6))]
        for _ in range(chance.randint(1, 25))
    ]
    levels = [(1 if n == 0 else 0, level) for row in rows for n, level in enumerate(row)]
    borders = sorted({0, len(levels), *chance.sample(range(len(levels) + 1), min(len(levels), 4))})
    begins = list(np.cumsum([0, *map(len, rows)]))
    wanted = [
        (start, min(start + chance.randint(1, 3), len(rows)))
        for start in sorted(chance.sample(range(len(rows)), min(len(rows), 4)))
    ]
    ranges = [r for n, r in enumerate(wanted) if n == 0 or r[0] >= max(e for _, e in wanted[:n])]
    chunks = list(pairwise(borders))
    needed = [
        c
        for c, (low, high) in enumerate(chunks)
        if any(begins[start] < high and begins[end] > low for start, end in ranges)
    ]
    stored = [levels[at] for c in needed for at in range(*chunks[c])]
    places = [at for c in needed for at in range(*chunks[c])]
    rep, definition = (np.array(each, np.uint16) for each in zip(*stored, strict=True))
    tables = (
        numbers([chunks[c][1] - chunks[c][0] for c in needed]),
        numbers([sum(levels[at][1] == 0 for at in range(*chunks[c])) for c in needed]),
        numbers([sum(begin < chunks[c][0] for begin in begins[:-1]) for c in needed]),
        numbers([sum(begin < chunks[c][1] for begin in begins[:-1]) for c in needed]),
        np.array([n > 0 and needed[n - 1] == c - 1 for n, c in enumerate(needed)], np.uint8),
    )
    first, last = (numbers(each) for each in zip(*ranges, strict=True))
    found = place_rows(rep, definition, 1, 2, *tables, first, last)
    for number, (start, end) in enumerate(ranges):
        low, high = places.index(begins[start]), places.index(begins[end] - 1) + 1
        assert [int(each[number]) for each in found[:2]] == [low, high]
        values = [sum(level == 0 for level in definition[:at]) for at in (low, high)]
        assert [int(each[number]) for each in found[2:]] == values
    for table in (1, 3):
        tables[table][-1] += 1
        with pytest.raises(FormatError, match="chunks"):
            place_rows(rep, definition, 1, 2, *tables, first, last)
        tables[table][-1] -= 1
