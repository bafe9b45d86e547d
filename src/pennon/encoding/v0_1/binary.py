"""Variable-length binary: the bytes of all rows, then rows + 1 positions of 64 bits.

    ["ab", NULL, "c"], written at byte 100       a b c | 100 102 102 103
                                                         ^ the position of the page

Positions count from the begin of the file, and a row of no bytes is NULL, unless its field is never
NULL: then it is empty.  So a row costs two rounds: its two positions, then its bytes.

Source: seeds 000 and 002, "Variable-Length Binary Encoding"; the bytes first, measured
(pylance 14.0.2).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.encoding.arrow_buffers import arrow_offsets, as_bytes
from pennon.encoding.block import NullableBlock, VariableBlock
from pennon.encoding.kernels.positions import decode_positions
from pennon.encoding.read_protocol import Steps
from pennon.encoding.v0_1.pages import Pages, read_ranges
from pennon.encoding.v0_1.parts import Positions, Slices
from pennon.encoding.v0_1.picks import Picks
from pennon.errors import TooLargeError


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Rows of variable length without their contents: offsets from 0 on, and what each range covers.

    ``starts`` and ``ends`` are bytes of the file, or items of the page, as the positions have them.
    """

    offset_bits: int
    offsets: pa.Buffer
    validity: pa.Buffer | None
    starts: Int64Array
    ends: Int64Array


def decode_binary(
    pages: Pages, picks: Picks, *, large: bool, nullable: bool
) -> Steps[VariableBlock | NullableBlock]:
    """Return the steps that read byte strings, in two rounds.

    Offsets have 64 bits if ``large``, else 32.  Raises FormatError if positions fall or leave the
    file, TooLargeError if 32 bits do not reach.
    """
    limits = np.full(len(picks.pages), pages.file_bytes, np.int64)
    spans = yield from read_spans(pages, picks, 8, limits, mark_empty=nullable, wide=large)
    data = yield from read_ranges(spans.starts, spans.ends)
    values = VariableBlock(picks.count, spans.offset_bits, spans.offsets, data)
    return values if spans.validity is None else NullableBlock(picks.count, spans.validity, values)


def read_spans(
    pages: Pages, picks: Picks, width: int, limits: Int64Array, *, mark_empty: bool, wide: bool
) -> Steps[Spans]:
    """Return the steps that read positions of ``width`` (4 or 8) bytes, in one round.

    Each range may reach to its entry of ``limits``.
    """
    pages.check_values(picks, width * 8, 1)
    base = pages.positions[picks.pages]
    data = yield from read_ranges(base + picks.starts * width, base + (picks.ends + 1) * width)
    stored = np.frombuffer(data, np.dtype(f"<i{width}"))
    if not stored.flags.aligned:
        stored = stored.copy()
    try:
        offsets, validity, starts, ends = decode_positions(
            stored, picks.sizes, picks.pages, limits, mark_empty, wide
        )
    except OverflowError:
        message = (
            f"{picks.count} rows hold more bytes or items than offsets of 32 bits can count;"
            " read fewer rows at once"
        )
        raise TooLargeError(message) from None
    bitmap = None if validity is None else pa.py_buffer(validity)
    return Spans(64 if wide else 32, pa.py_buffer(offsets), bitmap, starts, ends)


def encode_binary(array: pa.Array, borders: Int64Array) -> tuple[Slices, Positions]:
    """Encode (large) strings or binaries: the bytes of each row group, and their positions.

    Row group g has the rows ``[borders[g], borders[g + 1])``.
    """
    offsets = arrow_offsets(array).astype(np.int64, copy=False)
    at = offsets[borders]
    return Slices(as_bytes(array.buffers()[2]), at[:-1], np.diff(at)), Positions(offsets, borders)
