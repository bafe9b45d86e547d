"""A page's buffers, as its decoders see them."""

from __future__ import annotations

from pennon.core.byte_ranges import Extent
from pennon.core.fast_dataclass import dataclass
from pennon.errors import FormatError


@dataclass(frozen=True, slots=True)
class PageBuffers:
    """Where the buffers lie that a page's encoding may name, and how many rows the page has.

    ``page`` are the page's own buffers, ``column`` those of its column's metadata, ``file`` the
    file's global buffers.  All extents were checked against the file's size when they were parsed.
    """

    rows: int
    page: tuple[Extent, ...]
    column: tuple[Extent, ...] = ()
    file: tuple[Extent, ...] = ()

    def find(self, place: str, index: int) -> Extent:
        """Return the extent of one buffer; ``place`` is ``page``, ``column`` or ``file``."""
        buffers: tuple[Extent, ...] = getattr(self, place)
        if not 0 <= index < len(buffers):
            message = f"encoding names {place} buffer {index}, but there are {len(buffers)}"
            raise FormatError(message)
        return buffers[index]
