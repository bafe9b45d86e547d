"""Plain: values of fixed width, one after the other, with nothing between or behind them.

    int32, 3 rows         | v0 v0 v0 v0 | v1 v1 v1 v1 | v2 v2 v2 v2 |
    bool, 10 rows         | 76543210 | ......98 |                        least significant bit first
    fixed-size list       the items of all rows, as a plain page of its own would hold them

A NULL is a zero: the page cannot tell.

Source: seeds 000 and 002, "Plain Encoding"; measured (pylance 14.0.2).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.core.byte_ranges import Int64Array
from pennon.core.memory import allocate_buffer
from pennon.core.units import bytes_for_bits
from pennon.encoding.arrow_buffers import Bytes, as_bytes
from pennon.encoding.block import FixedWidthBlock
from pennon.encoding.kernels.bits import pick_bits
from pennon.encoding.read_protocol import Steps
from pennon.encoding.v0_1.pages import Pages, read_ranges
from pennon.encoding.v0_1.parts import Slices
from pennon.encoding.v0_1.picks import Picks


def decode_plain(pages: Pages, picks: Picks, bits: int, items: int = 1) -> Steps[FixedWidthBlock]:
    """Return the steps that read values of ``bits`` bits, in one round.

    A row has ``items`` values; the block counts these.  Raises FormatError if pages or file end
    before the rows do.
    """
    pages.check_values(picks, bits * items)
    values = picks if items == 1 else picks.scaled(items)
    if bits == 1:
        data = yield from _read_bits(pages, values)
    else:
        base = pages.positions[values.pages]
        width = bits // 8
        data = yield from read_ranges(base + values.starts * width, base + values.ends * width)
    return FixedWidthBlock(values.count, bits, data)


def _read_bits(pages: Pages, picks: Picks) -> Steps[pa.Buffer]:
    """Return the steps that read bits; those of one page from a whole byte on are not copied."""
    base = pages.positions[picks.pages]
    first = picks.starts >> 3
    sizes = ((picks.ends + 7) >> 3) - first
    data = yield from read_ranges(base + first, base + first + sizes)
    if len(sizes) == 1 and not picks.starts[0] & 7:
        return data
    shift = (np.cumsum(sizes) - sizes - first) * 8
    target = allocate_buffer(bytes_for_bits(picks.count))
    source = np.frombuffer(data, np.uint8)
    pick_bits(source, picks.starts + shift, picks.ends + shift, np.frombuffer(target, np.uint8))
    return target


def encode_fixed_width(array: pa.Array, borders: Int64Array) -> Slices:
    """Encode the values of numbers, times, decimals or fixed-size binaries, as they lie in memory.

    Row group g has the rows ``[borders[g], borders[g + 1])``.  What lies under a NULL stays, as in
    pylance's files.
    """
    width = array.type.bit_width // 8
    places = (borders + array.offset) * width
    source = as_bytes(array.buffers()[1])
    return Slices(source, places[:-1] * bool(source.size), np.diff(places))


def _packed(held: pa.Array) -> Bytes:
    """Return booleans without NULLs as bits, the first in bit 0; the bits behind the last are zeros."""
    packed = np.empty(bytes_for_bits(len(held)), np.uint8)
    start, end = np.array([[held.offset], [held.offset + len(held)]], np.int64)
    pick_bits(as_bytes(held.buffers()[1]), start, end, packed)
    return packed


def encode_bits(array: pa.Array, borders: Int64Array) -> Slices:
    """Encode booleans: each row group begins with a whole byte, a NULL is false."""
    rows = np.diff(borders)
    sizes = (rows + 7) >> 3
    ends = np.cumsum(sizes)
    first = int(borders[0])
    held = pc.fill_null(array.slice(first, int(borders[-1]) - first), False)  # noqa: FBT003
    if not (rows[:-1] & 7).any():
        return Slices(_packed(held), ends - sizes, sizes)
    values = np.asarray(held.cast(pa.uint8()))
    apart = np.zeros(int(ends[-1]) * 8 if len(ends) else 0, np.uint8)
    shift = (ends - sizes) * 8 - (borders[:-1] - first)
    apart[np.arange(len(values)) + np.repeat(shift, rows)] = values
    return Slices(np.packbits(apart, bitorder="little"), ends - sizes, sizes)
