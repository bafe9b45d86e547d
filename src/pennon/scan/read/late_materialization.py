"""Late materialization: how the columns behind a filter are read for the rows that it kept.

To read a row by itself costs as much as to read some hundred bytes in sequence.  So where the rows
that are kept lie closer than that, in bytes of a column, all rows from the first to the last are
read, and those in between dropped afterwards; elsewhere each is read by itself.  To drop rows is to
copy the others once more, so of rows as wide as that none in between are read.  With that one rule a
column of wide values is read row by row, and a narrow one only where few rows of many are kept::

    kept        *    * *  *                                *
    wide        |    | |  |                                |
    narrow      [---------]                                |
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.cached_property import cached_property
from pennon.core.fast_dataclass import dataclass
from pennon.core.memory import allocate
from pennon.encoding.kernels.bits import set_bits
from pennon.encoding.rows import Rows
from pennon.encoding.selection import keep, take, take_few
from pennon.scan.deletion_mask import LiveSlice, moved
from pennon.scan.read.arrays import bool_array, int64_array
from pennon.scan.read.fragment_reader import Chunks, PreparedRead
from pennon.scan.read.fragment_run import PreparedRun

DENSE: Final = 0.7
"""Where so many of the values stay, Arrow filters by a mask faster than it takes by numbers."""
FEW_VALUES: Final = 2048
"""Of so few it takes them faster in any case."""
DENSE_ENOUGH: Final = 0.25
"""Where so many rows are kept, clusters are not looked for."""
FAR: Final = 16
"""A gap between rows is one between clusters if it costs so many times what a row costs."""


class Choice:
    """Some of ``of`` rows, by their numbers, which are sorted and distinct."""

    def __init__(self, numbers: Int64Array, of: int, mask: pa.Array[Any] | None = None) -> None:
        """Choose rows; ``mask`` says the same, where it is known."""
        self.numbers = numbers
        self.of = of
        if mask is not None:
            self.__dict__["_mask"] = mask

    @cached_property
    def _mask(self) -> pa.Array[Any]:
        mask = np.zeros(self.of, np.bool_)
        mask[self.numbers] = True
        return bool_array(mask)

    def pick(self, chunks: Chunks) -> Chunks:
        """Return the values that are chosen; at least one chunk, that may be empty."""
        if len(self.numbers) == self.of:
            return chunks
        if len(self.numbers) > max(DENSE * self.of, FEW_VALUES):
            return keep_chunks(chunks, self._mask)
        if len(chunks) == 1:
            return [_picked(chunks[0], self.numbers)]
        picked: Chunks = []
        first = 0
        ends = np.cumsum([len(chunk) for chunk in chunks])
        for chunk, end in zip(chunks, np.searchsorted(self.numbers, ends), strict=True):
            numbers = self.numbers[first:end] - (ends[len(picked)] - len(chunk))
            picked.append(_picked(chunk, numbers))
            first = end
        return [chunk for chunk in picked if len(chunk)] or picked[:1]


def _picked(chunk: pa.Array[Any], numbers: Int64Array) -> pa.Array[Any]:
    found = take_few(chunk, numbers)
    return take(chunk, int64_array(numbers)) if found is None else found


@dataclass(frozen=True, slots=True, eq=False)
class Cover:
    """Ranges that hold all rows wanted, and which of theirs these are."""

    rows: Rows
    wanted: Choice

    @classmethod
    def of(cls, physical: Int64Array, row_bytes: int, cost_bytes: int) -> Cover:
        """Cover sorted, distinct rows of so many bytes each.

        ``cost_bytes``: to read a row by itself costs as much as to read so many bytes.  With 0 there
        are no other rows in the ranges than those wanted.
        """
        if not len(physical):
            return cls(Rows.between(0, 0), Choice(physical, 0))
        first, end = int(physical[0]), int(physical[-1]) + 1
        if end - first == len(physical):
            return cls(Rows.between(first, end), Choice(physical, len(physical)))
        least = row_bytes / cost_bytes if row_bytes < cost_bytes else 1
        if len(physical) >= max(least, DENSE_ENOUGH) * (end - first):
            return cls(Rows.between(first, end), Choice(moved(physical, -first), end - first))
        far = FAR * cost_bytes // row_bytes + 1 if least < 1 else 1
        firsts = _firsts(physical, far, least)
        if len(firsts) == len(physical):
            return cls(Rows.at(physical), Choice(physical, len(physical)))
        starts = physical[firsts]
        ends = physical[np.append(firsts[1:], len(physical)) - 1] + 1
        rows = Rows.ranges(starts, ends)
        if rows.count == len(physical):
            return cls(rows, Choice(physical, rows.count))
        sizes = ends - starts
        shifts = starts - (np.cumsum(sizes) - sizes)
        counts = np.diff(firsts, append=len(physical))
        return cls(rows, Choice(physical - np.repeat(shifts, counts), rows.count))


def _firsts(physical: Int64Array, far: int, least: float) -> Int64Array:
    """Return the first rows of ranges: every row, except in clusters with ``least`` or more wanted rows."""
    gaps = np.flatnonzero(physical[1:] - physical[:-1] > far)
    firsts = np.concatenate([np.zeros(1, np.int64), gaps + 1])
    if far == 1:  # a cluster of neighbours is wanted whole
        return firsts
    counts = np.diff(firsts, append=len(physical))
    lasts = physical[firsts + counts - 1]
    is_dense = counts >= least * (lasts - physical[firsts] + 1)
    is_first: npt.NDArray[np.bool_] = np.repeat(~is_dense, counts)
    is_first[firsts] = True
    return np.flatnonzero(is_first)


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
    return found or [chunk.slice(0, 0) for chunk in chunks[:1]]


def true_rows(mask: pa.BooleanArray) -> Int64Array:
    """Return the numbers of the rows for which a mask is true (not false, not NULL)."""
    rows = allocate(mask.true_count, np.int64)
    if len(rows):
        if mask.null_count:
            mask = mask.fill_null(False)  # noqa: FBT003 - Arrow's own order
        set_bits(np.frombuffer(mask.buffers()[1], np.uint8), mask.offset, len(mask), rows)
    return rows


def read_live(columns: PreparedRead | PreparedRun, wanted: LiveSlice) -> list[Chunks]:
    """Return the live rows of a stretch, for each field."""
    rows = rows_of(wanted)
    if rows.count == wanted.count:
        return columns.read(rows)
    alive = bool_array(wanted.mask())
    return [keep_chunks(chunks, alive) for chunks in columns.read(rows)]


def rows_of(wanted: LiveSlice) -> Rows:
    """Return the rows that are read for the live ones of a stretch: these, or all of it."""
    return wanted.ranges() if len(wanted.holes) and not wanted.is_sparse else wanted.stretch
