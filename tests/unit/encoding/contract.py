"""What every codec must hold, whatever it is: `check_contract` on a page written by anybody."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import ByteRange, ByteRequest
from pennon.encoding.assemble import assemble_as
from pennon.encoding.page import PageBuffers
from pennon.encoding.read_protocol import run
from pennon.encoding.rows import Rows
from pennon.encoding.v2_0 import wire
from pennon.encoding.v2_0.codecs import CODECS
from pennon.encoding.v2_0.encodings import ArrayEncoding
from pennon.errors import LanceError

MAX_ROUNDS = 2
_GAP = b"\xa5" * 3


@dataclass(slots=True)
class MemoryPage:
    """A page in a file of its own; its buffers lie at odd positions, with junk between them."""

    encoding: ArrayEncoding
    rows: int
    buffers: PageBuffers
    data: bytes
    rounds: int = 0

    @classmethod
    def build(cls, encoding: ArrayEncoding, rows: int, buffers: Sequence[bytes]) -> MemoryPage:
        data = b""
        extents = []
        for buffer in buffers:
            data += _GAP
            extents.append(ByteRange(len(data), len(buffer)))
            data += buffer
        return cls(encoding, rows, PageBuffers(rows, tuple(extents)), data + _GAP)

    def read(self, requests: Sequence[ByteRequest]) -> list[pa.Buffer]:
        self.rounds += 1
        return [pa.py_buffer(self._bytes(request)) for request in requests]

    def _bytes(self, request: ByteRequest) -> bytes:
        if isinstance(request, ByteRange):
            assert 0 <= request.position <= request.end <= len(self.data)
            return self.data[request.position : request.end]
        ranges = list(zip(request.starts.tolist(), request.ends.tolist(), strict=True))
        assert all(0 <= start <= end <= len(self.data) for start, end in ranges)
        return b"".join(self.data[start:end] for start, end in ranges)

    def decode(self, data_type: pa.DataType, rows: Rows) -> pa.Array:
        self.rounds = 0
        block = run(CODECS.decode(self.encoding, self.buffers, rows), self.read)
        assert block.rows == rows.count
        return assemble_as(block, data_type)


def check_contract(
    encoding: ArrayEncoding, buffers: Sequence[bytes], expected: pa.Array, *, rounds: int = 1
) -> None:
    """Decode all, nothing, each row, slices at every border, random takes and ranges; then damage.

    ``rounds``: how many rounds a read may take.
    """
    assert wire.parse_array_encoding(wire.serialize_array_encoding(encoding)) == encoding
    page = MemoryPage.build(encoding, len(expected), buffers)
    for rows in choices_of_rows(len(expected)):
        array = page.decode(expected.type, rows)
        array.validate(full=True)
        wanted = expected.take(pa.array(rows.indices()))
        assert array.to_pylist() == wanted.to_pylist(), rows
        assert page.rounds <= rounds <= MAX_ROUNDS
    check_damage(encoding, buffers, expected)


def choices_of_rows(count: int) -> Iterator[Rows]:
    """Yield the rows to ask of a page of ``count`` rows."""
    chance = random.Random(count)
    yield Rows.between(0, count)
    yield Rows.between(0, 0)
    yield Rows.at(np.empty(0, np.int64))
    yield Rows.at(np.arange(count))
    borders = sorted(
        {b for b in (0, 1, 7, 8, 9, 63, 64, 1023, 1024, 1025, count - 1, count) if 0 <= b <= count}
    )
    for start, end in combinations(borders, 2):
        yield Rows.between(start, end)
    for _ in range(10):
        some = sorted(chance.sample(range(count), min(count, chance.randint(0, 20))))
        yield Rows.at(np.array(some, np.int64))
        cuts = sorted(chance.sample(range(count + 1), min(count + 1, 6)))
        cuts = cuts[: len(cuts) // 2 * 2]
        starts, ends = np.array(cuts[0::2], np.int64), np.array(cuts[1::2], np.int64)
        yield Rows.ranges(starts, ends)


def check_damage(encoding: ArrayEncoding, buffers: Sequence[bytes], expected: pa.Array) -> None:
    """Cut and flip buffers: an error of ours, or an array that is valid in itself."""
    chance = random.Random(7)
    for number, buffer in enumerate(buffers):
        if not buffer:
            continue
        damaged = [buffer[:-1], b"", buffer[: len(buffer) // 2]]
        for _ in range(20):
            flipped = bytearray(buffer)
            flipped[chance.randrange(len(buffer))] ^= 1 << chance.randrange(8)
            damaged.append(bytes(flipped))
        for bad in damaged:
            changed = [*buffers[:number], bad, *buffers[number + 1 :]]
            page = MemoryPage.build(encoding, len(expected), changed)
            for rows in (Rows.between(0, len(expected)), Rows.at(np.arange(0, len(expected), 3))):
                try:
                    array = page.decode(expected.type, rows)
                except LanceError:
                    continue
                array.validate(full=True)
                assert len(array) == rows.count
