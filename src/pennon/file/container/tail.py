"""The end of a data file, read once: it nearly always has all that tells where the rest lies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Self

import pyarrow as pa

from pennon.core.byte_ranges import ByteRange, ByteRequest
from pennon.core.fast_dataclass import dataclass
from pennon.core.units import KIB
from pennon.encoding.read_protocol import Steps
from pennon.io.store import ObjectReader
from pennon.io.tail_reader import KnownEnd

TAIL_BYTES: Final = 64 * KIB


@dataclass(frozen=True, slots=True)
class Tail:
    """The bytes of a file from position ``first`` to its end."""

    first: int
    data: pa.Buffer

    @classmethod
    def read(cls, source: ObjectReader) -> Self:
        """Read the tail of a file, in one request."""
        first = max(0, source.size_bytes - TAIL_BYTES)
        (data,) = source.read([ByteRange(first, source.size_bytes - first)])
        return cls(first, data)

    def behind(self, source: ObjectReader) -> ObjectReader:
        """Return a reader of the file that asks a remote store for nothing that lies in the tail."""
        return source if source.is_mapped else KnownEnd(source, self.first, self.data)

    @property
    def file_bytes(self) -> int:
        """Return the size of the file."""
        return self.first + int(self.data.size)

    def last(self, size_bytes: int) -> bytes:
        """Return the last bytes of the file, fewer if it has no more."""
        data: bytes = self.data.slice(max(0, self.data.size - size_bytes)).to_pybytes()
        return data

    def read_extents(self, extents: Sequence[ByteRange]) -> Steps[list[pa.Buffer]]:
        """Return the steps that read extents of the file; those within the tail cost nothing."""
        outside: list[ByteRequest] = [each for each in extents if each.position < self.first]
        answers = iter((yield outside) if outside else [])
        return [
            next(answers)
            if extent.position < self.first
            else self.data.slice(extent.position - self.first, extent.size_bytes)
            for extent in extents
        ]
