"""The end of a data file, read once: it nearly always has all that tells where the rest lies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
        size_bytes = source.size_bytes
        first = max(0, size_bytes - TAIL_BYTES)
        (data,) = source.read([ByteRange(first, size_bytes - first)])
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
        outside = self._outside(extents)
        return self._found(extents, (yield outside) if outside else [])

    def read_now(
        self, extents: Sequence[ByteRange], read: Callable[[Sequence[ByteRequest]], list[pa.Buffer]]
    ) -> list[pa.Buffer]:
        """Return extents of the file; ``read`` is asked for those outside of the tail, if there are any."""
        outside = self._outside(extents)
        return self._found(extents, read(outside) if outside else [])

    def _outside(self, extents: Sequence[ByteRange]) -> list[ByteRequest]:
        first = self.first
        return [each for each in extents if each.position < first]

    def _found(self, extents: Sequence[ByteRange], outside: Sequence[pa.Buffer]) -> list[pa.Buffer]:
        """Return each extent: the next of those that were read outside, or a slice of the tail."""
        first, data, answers = self.first, self.data, iter(outside)
        return [
            next(answers)
            if extent.position < first
            else data.slice(extent.position - first, extent.size_bytes)
            for extent in extents
        ]
