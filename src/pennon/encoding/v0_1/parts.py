"""The pieces that many row groups write at once, and the destination of each.

Row groups follow one another in a file, and in each of them its fields, so the bytes of one column
lie far apart.  Instead of writing a page after the other, all row groups of some megabytes are laid
out with arithmetic over arrays, and then each *part* copies its pieces to their places:

    part       row group 0     row group 1
    a          [0, 400)        [700, 1100)          4 bytes a row
    b, bytes   [400, 500)      [1100, 1130)
    b, places  [500, 700)      [1130, 1330)         absolute: known once the bytes have a place

A part has one piece in each row group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.kernels.gather import gather, scatter
from pennon.core.memory import allocate_buffer
from pennon.encoding.arrow_buffers import Bytes


@dataclass(frozen=True, slots=True, eq=False)
class Slices:
    """Pieces that are at hand: ``source[starts[g] : starts[g] + sizes[g]]`` for row group g."""

    source: Bytes
    starts: Int64Array
    sizes: Int64Array


@dataclass(frozen=True, slots=True, eq=False)
class Positions:
    """Positions of byte strings, of 64 bits; the part in front of this one has their bytes.

    ``offsets`` are those of an Arrow array; row group g has the rows
    ``[borders[g], borders[g + 1])``, and so many positions and one more.
    """

    offsets: Int64Array
    borders: Int64Array

    @property
    def sizes(self) -> Int64Array:
        """Return the bytes of each piece."""
        return (np.diff(self.borders) + 1) * 8

    def slices(self, data_positions: Int64Array) -> Slices:
        """Return the pieces, given where the bytes of each row group lie in the file."""
        shift = data_positions - self.offsets[self.borders[:-1]]
        entries = with_ends(self.offsets, self.borders)
        entries += np.repeat(shift, self.sizes // 8)
        sizes = self.sizes
        return Slices(entries.view(np.uint8), np.cumsum(sizes) - sizes, sizes)


Part: TypeAlias = Slices | Positions


def lay_out(parts: Sequence[Part], begin: int) -> Int64Array:
    """Return where the piece of each part and row group lies in the file: (parts, row groups).

    The first one lies at ``begin``; no piece is aligned.
    """
    sizes = np.stack([part.sizes for part in parts]).astype(np.int64)
    ends = begin + np.cumsum(sizes.T.reshape(-1)).reshape(sizes.T.shape).T
    positions: Int64Array = ends - sizes
    return positions


def write_parts(parts: Sequence[Part], positions: Int64Array) -> pa.Buffer:
    """Return the bytes of all pieces, at the places that `lay_out` gave them.

    Those of one part that follow one another in memory, too, are not copied.
    """
    alone = parts[0]
    if len(parts) == 1 and isinstance(alone, Slices):
        ends = alone.starts + alone.sizes
        if (alone.starts[1:] == ends[:-1]).all():
            return pa.py_buffer(alone.source[alone.starts[0] : ends[-1]])
    begin = int(positions[0, 0])
    total = int(positions[-1, -1] + parts[-1].sizes[-1]) - begin
    target = allocate_buffer(total)
    view = np.frombuffer(target, np.uint8)
    for number, part in enumerate(parts):
        pieces = part if isinstance(part, Slices) else part.slices(positions[number - 1])
        scatter(pieces.source, pieces.starts, positions[number] - begin, pieces.sizes, view)
    return target


def with_ends(offsets: npt.NDArray[Any], borders: Int64Array) -> npt.NDArray[Any]:
    """Return the offsets of each row group, with the end of its last row behind them."""
    width = offsets.itemsize
    starts, ends = borders[:-1] * width, (borders[1:] + 1) * width
    found = np.empty(int(borders[-1] - borders[0]) + len(starts), offsets.dtype)
    gather(offsets.view(np.uint8), starts, ends, found.view(np.uint8))
    return found
