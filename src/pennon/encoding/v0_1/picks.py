"""The rows of each page that a reader of version 0.1 is asked for.

A file of version 0.1 is cut into row groups ("batches"), and each field has one page in each of
them, so a page number is the number of a row group.  A group often has 1024 rows only: a scan touches
thousands of pages.  So pages are not read one by one; the ranges of all of them go through the
arithmetic as arrays, and their bytes become one buffer.

    row groups of 100, 100, 50 rows                  pages   starts   ends
    rows [90, 230)                           ->      0       90       100
                                                     1       0        100
                                                     2       0        30
"""

from __future__ import annotations

from typing import Self

import numpy as np

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.encoding.rows import Rows
from pennon.errors import FormatError


@dataclass(frozen=True, slots=True, eq=False)
class Picks:
    """Ranges of rows (or list items), in order: ``[starts[i], ends[i])`` of page ``pages[i]``.

    Rows count from the first of their page.  Ranges are not empty.
    """

    pages: Int64Array
    starts: Int64Array
    ends: Int64Array
    count: int

    @classmethod
    def between(cls, pages: Int64Array, starts: Int64Array, ends: Int64Array) -> Self:
        """Return the rows of all given ranges; empty ones fall out, neighbours become one."""
        filled = ends > starts
        if not filled.all():
            pages, starts, ends = pages[filled], starts[filled], ends[filled]
        if len(pages) > 1:
            parted = (starts[1:] != ends[:-1]) | (pages[1:] != pages[:-1])
            if not parted.all():
                first = np.concatenate([np.ones(1, np.bool_), parted])
                last = np.concatenate([parted, np.ones(1, np.bool_)])
                pages, starts, ends = pages[first], starts[first], ends[last]
        return cls(pages, starts, ends, int((ends - starts).sum()))

    @classmethod
    def of(cls, rows: Rows, borders: Int64Array) -> Self:
        """Return the places of ``rows``; page p has the rows ``[borders[p], borders[p + 1])``."""
        filled = rows.ends > rows.starts
        begins, stops = rows.starts[filled], rows.ends[filled]
        low = borders.searchsorted(begins, side="right") - 1
        touched = borders.searchsorted(stops, side="left") - low
        behind = np.cumsum(touched)
        pages = np.arange(touched.sum(), dtype=np.int64) + np.repeat(
            low - behind + touched, touched
        )
        first = borders[pages]
        starts = np.maximum(np.repeat(begins, touched), first) - first
        ends = np.minimum(np.repeat(stops, touched), borders[pages + 1]) - first
        return cls.between(pages, starts, ends)

    @property
    def sizes(self) -> Int64Array:
        """Return the number of rows of each range."""
        return self.ends - self.starts

    def scaled(self, factor: int) -> Picks:
        """Return the items of these rows, where each row has ``factor`` items.

        Raises FormatError if the numbers leave 63 bits (the factor may come from a file).
        """
        if int(self.ends.max(initial=0)) * factor >= 1 << 62 or self.count * factor >= 1 << 62:
            message = f"{self.count} rows of {factor} items are more than any file holds"
            raise FormatError(message)
        return Picks(self.pages, self.starts * factor, self.ends * factor, self.count * factor)

    def halves(self) -> tuple[Picks, Picks] | None:
        """Return two parts of about as many ranges, or rows; None if this is a single row."""
        if self.count < 2:
            return None
        if len(self.pages) == 1:
            middle = self.starts + self.count // 2
            first = Picks(self.pages, self.starts, middle, self.count // 2)
            return first, Picks(self.pages, middle, self.ends, self.count - self.count // 2)
        cut = len(self.pages) // 2
        return self._slice(slice(0, cut)), self._slice(slice(cut, None))

    def _slice(self, part: slice) -> Picks:
        starts, ends = self.starts[part], self.ends[part]
        return Picks(self.pages[part], starts, ends, int((ends - starts).sum()))
