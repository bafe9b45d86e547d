"""A page's buffers, as its decoders see them."""

from __future__ import annotations

from collections.abc import Sequence

from pennon.core.byte_ranges import ByteRange
from pennon.core.fast_dataclass import dataclass
from pennon.errors import FormatError


@dataclass(frozen=True, slots=True)
class PageBuffers:
    """The positions of the buffers that a page's encoding may name, and the page's number of rows.

    ``page`` are the page's own buffers, ``column`` those of its column's metadata, ``file`` the
    file's global buffers.  All extents were checked against the file's size when they were parsed.
    """

    rows: int
    page: Sequence[ByteRange]
    column: Sequence[ByteRange] = ()
    file: Sequence[ByteRange] = ()

    def find(self, place: str, index: int) -> ByteRange:
        """Return the extent of one buffer; ``place`` is ``page``, ``column`` or ``file``."""
        buffers: Sequence[ByteRange] = getattr(self, place)
        if not 0 <= index < len(buffers):
            message = f"encoding names {place} buffer {index}, but there are {len(buffers)}"
            raise FormatError(message)
        return buffers[index]
