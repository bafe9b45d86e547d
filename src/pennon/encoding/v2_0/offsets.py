"""Stored end offsets, read: where the bytes or items of some rows lie.

Binary and List pages store one integer a row, the end of its bytes or items; a NULL adds an
adjustment that is greater than every end.  The start of row i is the end of row i - 1, so a range
of rows needs its own entries and the one in front, which is read along with them:

    rows asked      [3, 5)   [5, 6)   [9, 10)
    entries read    [2, 5)   [5, 6)   [8, 10)      (5 starts where the range before it ends)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.encoding.block import Block, FixedWidthBlock
from pennon.encoding.kernels.offsets import decode_end_offsets
from pennon.encoding.page import PageBuffers
from pennon.encoding.read_protocol import Steps
from pennon.encoding.rows import Rows
from pennon.encoding.v2_0.dispatch import Codecs
from pennon.encoding.v2_0.encodings import ArrayEncoding
from pennon.errors import FormatError

NO_LIMIT = 2**63 - 1


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Rows of variable length, without their contents.

    ``offsets`` are rows + 1 Arrow offsets of ``offset_bits`` (32 or 64) bits, from 0 on;
    ``contents`` are the bytes or items of the page that they lay out, packed in this order.
    """

    rows: int
    offset_bits: int
    offsets: pa.Buffer
    validity: pa.Buffer | None
    contents: Rows


def read_spans(
    encoding: ArrayEncoding,
    adjustment: int,
    limit: int,
    page: PageBuffers,
    rows: Rows,
    codecs: Codecs,
) -> Steps[Spans]:
    """Read the offsets of ``rows`` (one round) and decode them.

    ``limit`` is the number of items that the offsets may reach, `NO_LIMIT` if it is not known.
    Raises FormatError if an offset falls, or reaches beyond ``limit``.
    """
    filled = rows.ends > rows.starts
    starts, ends = rows.starts[filled], rows.ends[filled]
    leads = starts > np.concatenate([np.zeros(1, np.int64), ends])[:-1]
    block = yield from codecs.decode(encoding, page, Rows.ranges(starts - leads, ends))
    stored = unsigned(block, rows.count + int(leads.sum()), "offsets")
    return _decode(stored, starts, ends, leads.view(np.uint8), adjustment, limit)


def _decode(
    stored: npt.NDArray[np.uint8 | np.uint16 | np.uint32 | np.uint64],
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    leads: npt.NDArray[np.uint8],
    adjustment: int,
    limit: int,
) -> Spans:
    """Decode into 32-bit offsets if they reach, else into 64-bit ones."""
    asked = (stored, starts, ends, leads, adjustment, limit)
    try:
        offsets, validity, first, last = decode_end_offsets(*asked, False)  # noqa: FBT003
    except OverflowError:
        offsets, validity, first, last = decode_end_offsets(*asked, True)  # noqa: FBT003
    return Spans(
        rows=len(offsets) - 1,
        offset_bits=offsets.itemsize * 8,
        offsets=pa.py_buffer(offsets),
        validity=None if validity is None else pa.py_buffer(validity),
        contents=Rows.ranges(first, last),
    )


def unsigned(
    block: Block, count: int, what: str
) -> npt.NDArray[np.uint8 | np.uint16 | np.uint32 | np.uint64]:
    """Return a block of ``count`` whole integers as an array, aligned for the kernels.

    Raises FormatError if the block holds anything else; ``what`` says what it should hold.
    """
    if not isinstance(block, FixedWidthBlock) or block.bits_per_value not in (8, 16, 32, 64):
        message = f"{what} are not plain integers but {_describe(block)}"
        raise FormatError(message)
    if block.rows != count:
        message = f"{block.rows} {what}, where {count} were asked for"
        raise FormatError(message)
    array = np.frombuffer(block.data, np.dtype(f"u{block.bits_per_value // 8}"), count)
    return array if array.flags.aligned else array.copy()


def _describe(block: Block) -> str:
    bits = f" of {block.bits_per_value} bits" if isinstance(block, FixedWidthBlock) else ""
    return f"{type(block).__name__}{bits}"
