"""The chunks of a page, as its codecs see them: all at once.

Every codec gets the same buffers of all chunks side by side, and the number of values in each chunk,
and gives the values of all chunks in one block.  What is one buffer in one piece (a dictionary, the
levels of a page) is one chunk.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from pennon.core.byte_ranges import Int64Array
from pennon.core.cached_property import cached_property
from pennon.core.fast_dataclass import dataclass
from pennon.encoding.arrow_buffers import Bytes
from pennon.encoding.rows import Rows
from pennon.errors import FormatError, TooLargeError

_MOST_VALUES: Final = 1 << 28
"""Values that a few bytes may stand for (of one page; pylance's pages have fewer)."""


@dataclass(frozen=True, slots=True, eq=False)
class ChunkBuffers:
    """The same buffer of all chunks: chunk i has ``data[starts[i] : starts[i] + sizes[i]]``."""

    data: Bytes
    starts: Int64Array
    sizes: Int64Array


@dataclass(frozen=True, eq=False)
class Chunks:
    """The buffers of chunks: ``counts[i]`` values of chunk i lie in its ``buffers``, all of them within the data."""

    buffers: tuple[ChunkBuffers, ...]
    counts: Int64Array

    @classmethod
    def whole(cls, data: Bytes, count: int) -> Chunks:
        """Return ``count`` values of one buffer as one chunk."""
        sizes = np.array([len(data)], np.int64)
        buffer = ChunkBuffers(data, np.zeros(1, np.int64), sizes)
        return cls((buffer,), np.array([count], np.int64))

    @cached_property
    def first_values(self) -> Int64Array:
        """Return the number of the first value of each chunk, and the total at last."""
        found = np.zeros(len(self.counts) + 1, np.int64)
        self.counts.cumsum(out=found[1:])
        return found

    @property
    def values(self) -> int:
        """Return how many values there are."""
        return int(self.first_values[-1])

    def only(self) -> ChunkBuffers:
        """Return the one buffer.  Raises FormatError if there are more or none."""
        if len(self.buffers) != 1:
            message = f"chunks of {len(self.buffers)} buffers, where the encoding has one"
            raise FormatError(message)
        return self.buffers[0]

    def first(self) -> ChunkBuffers:
        """Return the first buffer.  Raises FormatError if there is none."""
        if not self.buffers:
            message = "chunks without the buffers that the encoding has"
            raise FormatError(message)
        return self.buffers[0]

    def without_first(self) -> Chunks:
        """Return what the buffers behind the first one are to an encoding inside."""
        return replace(self, buffers=self.buffers[1:])

    def scaled(self, factor: int) -> Chunks:
        """Return the chunks of the items, where every value has ``factor`` items."""
        if self.values * factor >= 1 << 48:
            message = f"{self.values} lists of {factor} items in one page"
            raise FormatError(message)
        return replace(self, counts=self.counts * factor)

    def check_sizes(self, bits_per_value: int) -> None:
        """Raise FormatError unless each chunk's one buffer has room for its values."""
        sizes = self.only().sizes
        if bits_per_value < 1 or bits_per_value >= 1 << 40:
            message = f"values of {bits_per_value} bits"
            raise FormatError(message)
        short = self.counts > sizes * 8 // bits_per_value
        if short.any():
            chunk = int(np.flatnonzero(short)[0])
            message = (
                f"chunk {chunk}: {self.counts[chunk]} values of {bits_per_value} bits in"
                f" {sizes[chunk]} bytes"
            )
            raise FormatError(message)

    def check_expanded(self) -> None:
        """Raise TooLargeError for more values than a few bytes may stand for."""
        if self.values > _MOST_VALUES:
            message = f"a few bytes stand for {self.values} values in one page"
            raise TooLargeError(message)

    def cut(self, items: Rows) -> Pieces:
        """Return the ranges of ``items`` cut at the borders of chunks."""
        borders = self.first_values
        if items.is_contiguous and items.starts[0] == 0 and items.count == self.values:
            return Pieces(
                np.arange(len(self.counts)), np.zeros(len(self.counts), np.int64), self.counts
            )
        starts, ends = items.starts, items.ends
        low = borders.searchsorted(starts, side="right") - 1
        high = borders.searchsorted(ends, side="left")
        low, high = np.maximum(low, 0), np.maximum(high, low)
        if items.is_contiguous:
            chunk = np.arange(low[0], high[0])
        else:
            cuts = high - low
            owner = np.arange(len(cuts)).repeat(cuts)
            nth = np.arange(len(owner)) - (cuts.cumsum() - cuts).repeat(cuts)
            chunk = low[owner] + nth
            starts, ends = starts[owner], ends[owner]
        begins = borders[chunk]
        first = np.maximum(starts, begins) - begins
        last = np.minimum(ends, borders[chunk + 1]) - begins
        return Pieces(chunk, first, np.maximum(last, first))


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Values ``[first[i], last[i])`` of chunk ``chunk[i]``, in order."""

    chunk: Int64Array
    first: Int64Array
    last: Int64Array
