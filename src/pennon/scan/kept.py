"""The rows that a filter kept, and how the columns behind it are read for them.

To read a row by itself costs about as much as to read some hundred bytes in sequence.  So rows that
lie closer than that, in bytes of a column, are read in one range, and what lies between them is
dropped afterwards.  With that one rule a column of wide values is read row by row, a narrow one as a
whole if the filter keeps many rows and here and there if it keeps few, and of rows that lie
together just their ranges::

    kept        *    * *  *                         *
    wide        |    | |  |                         |
    narrow      [---------]                         |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pennon.encoding.rows import Rows
from pennon.encoding.selection import keep
from pennon.ranges import Int64Array
from pennon.scan.arrays import bool_array
from pennon.scan.fragment_reader import Chunks, PreparedRead
from pennon.scan.live_rows import LiveSlice


@dataclass(frozen=True, slots=True, eq=False)
class Cover:
    """Ranges that hold all rows wanted; ``wanted`` tells which of theirs are (None: all)."""

    rows: Rows
    wanted: pa.Array[Any] | None

    @classmethod
    def of(cls, physical: Int64Array, gap_rows: int) -> Cover:
        """Cover sorted, distinct rows; those with at most ``gap_rows`` between them share a range."""
        if not len(physical):
            return cls(Rows.between(0, 0), None)
        borders = np.flatnonzero(np.diff(physical) > gap_rows + 1)
        starts = physical[np.concatenate([[0], borders + 1])]
        ends = physical[np.concatenate([borders, [len(physical) - 1]])] + 1
        rows = Rows.ranges(starts, ends)
        if rows.count == len(physical):
            return cls(rows, None)
        sizes = ends - starts
        shifts = starts - (np.cumsum(sizes) - sizes)
        counts = np.diff(np.concatenate([[0], borders + 1, [len(physical)]]))
        wanted = np.zeros(rows.count, np.bool_)
        wanted[physical - np.repeat(shifts, counts)] = True
        return cls(rows, bool_array(wanted))

    def pick(self, chunks: Chunks) -> Chunks:
        """Return the rows wanted, given those of all ranges."""
        return chunks if self.wanted is None else keep_chunks(chunks, self.wanted)


def keep_chunks(chunks: Chunks, mask: pa.Array[Any]) -> Chunks:
    """Return the values for which ``mask`` is true; at least one chunk, that may be empty."""
    kept, first = [], 0
    for chunk in chunks:
        kept.append(keep(chunk, mask.slice(first, len(chunk))))
        first += len(chunk)
    return [chunk for chunk in kept if len(chunk)] or kept[:1]


def slice_chunks(chunks: Chunks, start: int, rows: int) -> Chunks:
    """Return some values of a column; at least one chunk, that may be empty."""
    found = []
    for chunk in chunks:
        part = chunk.slice(min(max(start, 0), len(chunk)), max(rows, 0))
        rows -= len(part)
        start -= len(chunk)
        if len(part):
            found.append(part)
    return found or [chunks[0].slice(0, 0)]


def true_rows(mask: pa.BooleanArray) -> Int64Array:
    """Return the numbers of the rows for which a mask is true (not false, not NULL)."""
    if mask.null_count:
        mask = pc.fill_null(mask, False)  # noqa: FBT003 - Arrow's own order
    bits = mask.buffers()[1]
    if mask.offset % 8 or bits is None:
        return np.asarray(pc.indices_nonzero(mask).to_numpy(), np.int64)
    first = mask.offset // 8
    found = _set_bits(np.frombuffer(bits, np.uint8)[first : first + (len(mask) + 7) // 8])
    return found if not len(found) or found[-1] < len(mask) else found[found < len(mask)]


def _set_bits(octets: npt.NDArray[np.uint8]) -> Int64Array:
    """Return the numbers of the bits that are set; fast where these are few."""
    filled = np.flatnonzero(octets)
    if len(filled) * 2 > len(octets):
        return np.flatnonzero(np.unpackbits(octets, bitorder="little"))
    bits = np.unpackbits(octets[filled], bitorder="little").reshape(-1, 8)
    octet, bit = np.nonzero(bits)
    found: Int64Array = filled[octet] * 8 + bit
    return found


def read_live(columns: PreparedRead, wanted: LiveSlice) -> list[Chunks]:
    """Return the live rows of a stretch, for each field."""
    if not len(wanted.holes):
        return columns.read(wanted.stretch)
    if not wanted.is_sparse:
        return columns.read(wanted.ranges())
    alive = bool_array(wanted.mask())
    return [keep_chunks(chunks, alive) for chunks in columns.read(wanted.stretch)]
