"""The pages of one field, and their bytes.

The page table says of each page where it lies and how long it is.  The length counts values, not
bytes: rows of a plain, binary or dictionary page, offsets (one more than rows) of a list page.  What
a page of binary values calls its position is that of its offsets; its bytes lie in front of them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import ByteRange, ByteRequest, Gather, Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.encoding.read_protocol import Steps
from pennon.encoding.v0_1.picks import Picks
from pennon.errors import FormatError

EMPTY = pa.py_buffer(b"")


@dataclass(frozen=True, slots=True, eq=False)
class Pages:
    """The positions and row counts of a field's pages in a file of ``file_bytes`` bytes.

    All positions were checked to lie within the file, all lengths not to be negative.
    """

    positions: Int64Array
    lengths: Int64Array
    file_bytes: int

    def check_values(self, picks: Picks, bits: int, behind: int = 0) -> None:
        """Raise FormatError unless all rows picked lie in their pages, and these in the file.

        A row has ``bits`` bits; ``behind`` is how many more such values are read with the last row.
        """
        self.check_rows(picks)
        room = self.file_bytes - self.positions[picks.pages]
        outside = picks.ends + behind > room * 8 // bits if bits else np.zeros(1, np.bool_)
        if outside.any():
            at = int(outside.argmax())
            page = int(picks.pages[at])
            message = (
                f"{picks.ends[at] + behind} values of {bits} bits in page {page} at "
                f"{self.positions[page]} leave the file of {self.file_bytes} bytes"
            )
            raise FormatError(message)

    def check_rows(self, picks: Picks) -> None:
        """Raise FormatError unless the pages have the rows picked."""
        short = picks.ends > self.lengths[picks.pages]
        if short.any():
            at = int(short.argmax())
            page = int(picks.pages[at])
            message = f"page {page} has {self.lengths[page]} rows, {picks.ends[at]} are needed"
            raise FormatError(message)


def read_ranges(starts: Int64Array, ends: Int64Array) -> Steps[pa.Buffer]:
    """Return the steps that read byte ranges of the file, packed; in one request, if they touch."""
    filled = ends > starts
    if not filled.all():
        starts, ends = starts[filled], ends[filled]
    if len(starts) == 0:
        return EMPTY
    request: ByteRequest = Gather(starts, ends)
    if len(starts) == 1 or bool((starts[1:] == ends[:-1]).all()):
        request = ByteRange(int(starts[0]), int(ends[-1] - starts[0]))
    (data,) = yield [request]
    return data
