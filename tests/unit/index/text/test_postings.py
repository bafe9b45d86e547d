"""Posting lists, byte by byte: reference index-scalar, 13.5."""

from __future__ import annotations

import random
import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennon.errors import FormatError
from pennon.index.text.postings import Blobs, BlockPostings, PositionLists, PositionStreams
from tests.unit.index.text.packing import blobs, packed, postings, varint

HELLO = bytes.fromhex("0ed9bd3f 00 06 01 01")
"""f32 1.4831865; documents 0 and 6 as differences; frequencies 1 and 1."""
LISTS = st.dictionaries(st.integers(0, 5000), st.integers(1, 300), min_size=1, max_size=700)


def of(data: bytes, count: int, **more: object) -> BlockPostings:
    found = BlockPostings(blobs([data]), count, 128, True, 8)  # noqa: FBT003
    return replace(found, **more)  # type: ignore[arg-type]


def test_a_short_list_is_its_differences_and_its_frequencies() -> None:
    docs, frequencies = of(HELLO, 2).decode()
    assert docs.tolist() == [0, 6]
    assert frequencies.tolist() == [1, 1]


def test_old_tails_are_plain_words() -> None:
    data = struct.pack("<f4I", 1.0, 3, 7, 2, 9)
    docs, frequencies = of(data, 2, is_varint=False).decode()
    assert docs.tolist() == [3, 7]
    assert frequencies.tolist() == [2, 9]


@given(LISTS, st.sampled_from([128, 256]), st.booleans())
def test_lists_of_any_length(found: dict[int, int], size: int, is_varint: bool) -> None:
    docs = sorted(found)
    counts = [found[each] for each in docs]
    made = postings(docs, counts, size, is_varint=is_varint or size == 256)
    made.check()
    decoded, frequencies = made.decode()
    assert decoded.tolist() == docs
    assert frequencies.tolist() == counts
    assert made.firsts().tolist() == docs[::size]
    some = np.arange(0, -(-len(docs) // size), 2)
    chosen, _ = made.decode(some)
    assert chosen.tolist() == [d for at in some for d in docs[at * size : (at + 1) * size]]


@pytest.mark.parametrize("size", [128, 256])
def test_damaged_posting_list_raises_format_error_or_parses(size: int) -> None:
    rng = random.Random(size)
    docs = sorted(rng.sample(range(3000), 2 * size + 40))
    good = postings(docs, [1 + d % 9 for d in docs], size, documents=3000)
    errors = 0
    for _ in range(400):
        data = bytearray(good.blocks.data.tobytes())
        data[rng.randrange(len(data))] = rng.randrange(256)
        end = rng.choice((len(data), rng.randrange(len(data))))
        ends = np.minimum(good.blocks.ends, end)
        bad = replace(good, blocks=Blobs(np.frombuffer(bytes(data[:end]), np.uint8), ends))
        try:
            bad.firsts()
            found, _ = bad.decode()
        except FormatError:
            errors += 1
            continue
        assert (np.diff(found.astype(np.int64)) > 0).all()
        assert int(found[-1]) < 3000
    assert errors > 200


def test_a_list_of_more_documents_than_its_blocks_hold() -> None:
    with pytest.raises(FormatError, match="a posting list of 200 documents of 8 has 1 blocks"):
        of(HELLO, 200).check()


def test_positions_of_documents_are_lists_of_blobs() -> None:
    """Document 0 has position 4; document 6 has 128 packed ones, and two plain ones behind them."""
    many = list(range(5, 5 + 3 * 128, 3))
    bits, words = packed([0, *([3] * 127)], 4)
    parts = [
        struct.pack("<I", 1),
        struct.pack("<I", 4),
        struct.pack("<I", 130),
        struct.pack("<IB", 5, bits) + words,
        struct.pack("<2I", 900, 901),
    ]
    data = bytes.fromhex("0ed9bd3f 00 06 01 8201")
    lists = PositionLists(blobs(parts), np.array([0, 2, 5], np.int64))
    places = of(data, 2, positions=lists).places()
    assert places is not None
    assert places.ends.tolist() == [0, 1, 131]
    assert places.values.tolist() == [4, *many, 900, 901]
    short = PositionLists(blobs(parts), np.array([0, 1, 5], np.int64))
    with pytest.raises(FormatError, match="the positions of document 0"):
        of(data, 2, positions=short).places()
    few = PositionLists(blobs(parts), np.array([0, 5], np.int64))
    with pytest.raises(FormatError, match="of 2 documents has positions of 1"):
        of(data, 2, positions=few).places()


def test_positions_of_a_block_are_one_stream() -> None:
    """128 numbers are packed, the rest are varints; a document's first one is no difference."""
    counts, positions = [3, 131], [7, 9, 400, *range(10, 10 + 2 * 131, 2)]
    steps = [7, 2, 391, 10, *([2] * 130)]
    bits, words = packed(steps[:128], 4)
    stream = bytes([bits]) + words + b"".join(map(varint, steps[128:]))
    data = bytes.fromhex("0ed9bd3f 00 06 03 8301")
    places = of(data, 2, positions=PositionStreams(blobs([stream]))).places()
    assert places is not None
    assert places.ends.tolist() == [0, 3, sum(counts)]
    assert places.values.tolist() == positions
    for bad in (stream[:-1], stream + b"\0", b""):
        with pytest.raises(FormatError, match="positions"):
            of(data, 2, positions=PositionStreams(blobs([bad]))).places()
