"""The tests that every page encoding of file version 2.0 must pass.

    class TestMyEncoding(EncodingContract):
        def page(self) -> EncodedPage:
            return EncodedPage(Flat(64, BufferRef(0)), [bytes(16)], pa.array([0, 0], pa.int64()))

pytest runs the methods that begin with ``test_``.  A page is decoded whole, not at all, row by row, in slices at every
border, in random takes and ranges, and with damaged buffers.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

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

MAX_ROUNDS: Final = 2
_GAP: Final = b"\xa5" * 3


@dataclass(frozen=True, slots=True)
class EncodedPage:
    """A page by hand: its encoding, its buffers, the values that they mean, and the rounds that a read may take."""

    encoding: ArrayEncoding
    buffers: Sequence[bytes]
    expected: pa.Array[Any]
    rounds: int = 1


@dataclass(slots=True)
class PageInMemory:
    """A page in a file of its own; its buffers lie at odd positions, with junk between them."""

    encoding: ArrayEncoding
    buffers: PageBuffers
    data: bytes
    rounds: int = 0

    @classmethod
    def build(cls, encoding: ArrayEncoding, rows: int, buffers: Sequence[bytes]) -> PageInMemory:
        """Put buffers into a file."""
        data = b""
        extents = []
        for buffer in buffers:
            data += _GAP
            extents.append(ByteRange(len(data), len(buffer)))
            data += buffer
        return cls(encoding, PageBuffers(rows, tuple(extents)), data + _GAP)

    def read(self, requests: Sequence[ByteRequest]) -> list[pa.Buffer]:
        """Answer one round of requests."""
        self.rounds += 1
        return [pa.py_buffer(self._bytes(request)) for request in requests]

    def _bytes(self, request: ByteRequest) -> bytes:
        if isinstance(request, ByteRange):
            assert 0 <= request.position <= request.end <= len(self.data)
            return self.data[request.position : request.end]
        ranges = list(zip(request.starts.tolist(), request.ends.tolist(), strict=True))
        assert all(0 <= start <= end <= len(self.data) for start, end in ranges)
        return b"".join(self.data[start:end] for start, end in ranges)

    def decode(self, data_type: pa.DataType, rows: Rows) -> pa.Array[Any]:
        """Decode rows, and count the rounds."""
        self.rounds = 0
        block = run(CODECS.decode(self.encoding, self.buffers, rows), self.read)
        assert block.rows == rows.count
        return assemble_as(block, data_type)


class EncodingContract:
    """The conformance suite of an encoding: see the module."""

    def page(self) -> EncodedPage:
        """Return a page in the encoding."""
        raise NotImplementedError

    def test_encoding_survives_protobuf(self) -> None:
        """The message of an encoding gives the same encoding."""
        encoding = self.page().encoding
        assert wire.parse_array_encoding(wire.serialize_array_encoding(encoding)) == encoding

    def test_every_choice_of_rows_is_decoded(self) -> None:
        """A read takes no more rounds than the page says, and never more than two."""
        case = self.page()
        expected = case.expected
        page = PageInMemory.build(case.encoding, len(expected), case.buffers)
        for rows in choices_of_rows(len(expected)):
            array = page.decode(expected.type, rows)
            array.validate(full=True)
            wanted = expected.take(pa.array(rows.indices()))
            assert array.to_pylist() == wanted.to_pylist(), rows
            assert page.rounds <= case.rounds <= MAX_ROUNDS

    def test_damaged_buffers_give_an_error_or_valid_rows(self) -> None:
        """Buffers are cut, and bits are flipped."""
        case = self.page()
        expected = case.expected
        for buffers in _damaged(case.buffers):
            page = PageInMemory.build(case.encoding, len(expected), buffers)
            for rows in (Rows.between(0, len(expected)), Rows.at(np.arange(0, len(expected), 3))):
                try:
                    array = page.decode(expected.type, rows)
                except LanceError:
                    continue
                array.validate(full=True)
                assert len(array) == rows.count


def choices_of_rows(count: int) -> Iterator[Rows]:
    """Yield the rows to ask of a page with ``count`` rows."""
    chance = random.Random(count)  # noqa: S311 - the same rows each time
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


def _damaged(buffers: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Yield the buffers with one of them cut, or with a flipped bit."""
    chance = random.Random(7)  # noqa: S311 - the same damage each time
    for number, buffer in enumerate(buffers):
        if not buffer:
            continue
        changed = [buffer[:-1], b"", buffer[: len(buffer) // 2]]
        for _ in range(20):
            flipped = bytearray(buffer)
            flipped[chance.randrange(len(buffer))] ^= 1 << chance.randrange(8)
            changed.append(bytes(flipped))
        for bad in changed:
            yield [*buffers[:number], bad, *buffers[number + 1 :]]
