"""Full-zip pages: each value in one piece with its levels and, if sizes differ, its size.

::

    buffer 0    entries      control word (0, 1, 2 or 4 bytes) | size | value
    buffer 1    row index    where each row begins, and the end; rows + 1 numbers of 1, 2, 4 or 8 bytes

A control word is the repetition level above the definition level.  NULLs of fixed width have their
bytes, those of other widths have nothing but the word; NULL and empty lists neither.

Rows of one value of fixed width each need no index: one round.  Others take two, or one for a page.

Source: ledger F-80 to F-83.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import ByteRange, ByteRequest, Gather, Int64Array, SparseRead
from pennon.core.fast_dataclass import dataclass
from pennon.encoding.arrow_buffers import Bytes, as_bytes
from pennon.encoding.block import Block, FixedWidthBlock, VariableBlock
from pennon.encoding.kernels.full_zip import place_sized, unzip
from pennon.encoding.kernels.interleave_bytes import interleave
from pennon.encoding.page import PageBuffers
from pennon.encoding.read_protocol import Steps
from pennon.encoding.rows import Rows
from pennon.encoding.v2_1.dispatch import Codecs
from pennon.encoding.v2_1.encodings import Encoding, Fsst, General
from pennon.encoding.v2_1.fsst import decode_fsst_places
from pennon.encoding.v2_1.general import inflate_values
from pennon.encoding.v2_1.layouts import FullZip, max_repetition, max_visible
from pennon.encoding.v2_1.page import NO_LEVELS, EncodedPage, LevelArray, Levels, PageValues
from pennon.encoding.v2_1.strategy import is_whole, reads_entries_at_once
from pennon.encoding.v2_1.values import Single
from pennon.encoding.v2_1.variable import join_places
from pennon.errors import FormatError


def read_full_zip(
    layout: FullZip, page: PageBuffers, rows: Rows, codecs: Codecs
) -> Steps[PageValues]:
    """Return the steps that read ``rows`` of a page."""
    shape = _shape(layout)
    data = page.find("page", 0)
    if is_whole(rows, page.rows):
        request: ByteRequest = data
    elif shape.row_bytes:
        if page.rows * shape.row_bytes > data.size_bytes:
            message = f"{page.rows} rows of {shape.row_bytes} bytes in {data.size_bytes} bytes"
            raise FormatError(message)
        request = _request(data, rows.starts * shape.row_bytes, rows.ends * shape.row_bytes)
    else:
        starts, ends = yield from _read_row_index(page, rows)
        request = _request(data, starts, ends)
    if shape.size and not shape.word:
        return (yield from _read_in_place(layout, shape, rows, request, codecs))
    (answer,) = yield [request]
    return _decode(layout, shape, rows.count, answer, codecs)


def _read_in_place(
    layout: FullZip, shape: _Shape, rows: Rows, request: ByteRequest, codecs: Codecs
) -> Steps[PageValues]:
    """Return the steps that read byte strings without levels: they are decoded where they lie."""
    if isinstance(request, ByteRange):
        starts, ends = np.zeros(1, np.int64), np.array([request.size_bytes], np.int64)
        (answer,) = yield [request]
    else:
        starts, ends = request.starts, request.ends
        rise = bool((starts[1:] >= ends[:-1]).all())
        (answer,) = yield [SparseRead(starts, ends) if rise else request]
        sizes = ends - starts
        if answer.size == int(sizes.sum()):
            ends = np.cumsum(sizes)
            starts = ends - sizes
        else:
            starts, ends = starts - starts[0], ends - starts[0]
    data = as_bytes(answer)
    places = place_sized(data, starts, ends, shape.size, rows.count)
    values = _decode_places(layout.values, data, *places, codecs)
    return PageValues(values, None, Levels(None, None, layout.layers))


def _decode_places(
    encoding: Encoding, data: Bytes, starts: Int64Array, ends: Int64Array, codecs: Codecs
) -> Block:
    """Return the values of byte strings; string i is ``data[starts[i]:ends[i]]``."""
    if isinstance(encoding, General):
        return inflate_values(encoding, data, starts, ends, codecs)
    if isinstance(encoding, Fsst):
        return decode_fsst_places(encoding, data, starts, ends, codecs)
    return codecs.decode_values(encoding, join_places(data, starts, ends))


@dataclass(frozen=True, slots=True)
class _Shape:
    """The sizes of the parts of an entry, in bytes; ``row_bytes`` is 0 if rows differ in size."""

    word: int
    value: int
    size: int
    visible_to: int
    row_bytes: int


def _shape(layout: FullZip) -> _Shape:
    bits = layout.bits_rep + layout.bits_def
    word = 0 if bits == 0 else 1 if bits <= 8 else 2 if bits <= 16 else 4
    has_lists = max_repetition(layout.layers) > 0
    if has_lists and layout.bits_rep == 0:
        message = "a page of lists without repetition levels"
        raise FormatError(message)
    visible_to = max_visible(layout.layers) if has_lists else (1 << 16) - 1
    if layout.bits_per_offset is not None:
        if layout.bits_per_offset not in (8, 16, 32, 64):
            message = f"sizes of {layout.bits_per_offset} bits"
            raise FormatError(message)
        return _Shape(word, 0, layout.bits_per_offset // 8, visible_to, 0)
    width = layout.bits_per_value or 0
    if width % 8 or word + width == 0:
        message = f"full-zip values of {width} bits"
        raise FormatError(message)
    return _Shape(word, width // 8, 0, visible_to, 0 if has_lists else word + width // 8)


# --- reading --------------------------------------------------------------------------------------


def _request(data: ByteRange, starts: Int64Array, ends: Int64Array) -> ByteRequest:
    """Return the request for ranges of bytes of ``data``.  Raises FormatError if one leaves it."""
    if ((starts > ends) | (starts < 0) | (ends > data.size_bytes)).any():
        message = f"rows outside the {data.size_bytes} bytes of their page"
        raise FormatError(message)
    if len(starts) == 1:
        return ByteRange(data.position + int(starts[0]), int(ends[0] - starts[0]))
    return Gather(starts + data.position, ends + data.position)


def _read_row_index(page: PageBuffers, rows: Rows) -> Steps[tuple[Int64Array, Int64Array]]:
    """Return the steps that find out where each range of rows starts and ends."""
    index = page.find("page", 1)
    width = index.size_bytes // (page.rows + 1)
    if width not in (1, 2, 4, 8) or index.size_bytes % (page.rows + 1):
        message = f"a row index of {index.size_bytes} bytes for {page.rows} rows"
        raise FormatError(message)
    if reads_entries_at_once(rows):
        first, last = rows.starts, rows.ends + 1
    else:
        first = np.stack([rows.starts, rows.ends], axis=1).reshape(-1)
        last = first + 1
    (answer,) = yield [_request(index, first * width, last * width)]
    entries = np.frombuffer(answer, f"<u{width}")
    if entries.max(initial=0) >= 1 << 62:
        message = "a row index that leaves any file"
        raise FormatError(message)
    found = entries.astype(np.int64)
    if rows.is_contiguous:
        return found[:1], found[-1:]
    return found[0::2], found[1::2]


# --- decoding -------------------------------------------------------------------------------------


def _decode(
    layout: FullZip, shape: _Shape, rows: int, answer: pa.Buffer, codecs: Codecs
) -> PageValues:
    if shape.word == 0:
        if answer.size != rows * shape.value:
            message = f"{rows} values of {shape.value} bytes in {answer.size} bytes"
            raise FormatError(message)
        plain = FixedWidthBlock(rows, shape.value * 8, answer)
        return PageValues(
            codecs.decode_values(layout.values, plain), None, Levels(None, None, layout.layers)
        )
    rep, definition, offsets, data = unzip(
        as_bytes(answer), shape.word, layout.bits_def, shape.visible_to, shape.value, shape.size
    )
    _check_rows(layout, rep, rows)
    if shape.size:
        stored: Block = VariableBlock(
            len(offsets) - 1, 64, pa.py_buffer(offsets), pa.py_buffer(data)
        )
    else:
        # Values of no bytes are all NULL: so pylance 1.0.4 writes fixed-size lists that are.
        width = shape.value
        count = len(data) // width if width else np.count_nonzero(definition <= shape.visible_to)
        stored = FixedWidthBlock(int(count), width * 8, pa.py_buffer(data))
    levels = Levels(
        rep if layout.bits_rep else None, definition if layout.bits_def else None, layout.layers
    )
    return PageValues(codecs.decode_values(layout.values, stored), None, levels)


def _check_rows(layout: FullZip, rep: LevelArray, rows: int) -> None:
    """Raise FormatError unless the entries are just so many rows."""
    top = max_repetition(layout.layers)
    found = int(np.count_nonzero(rep == top)) if top else len(rep)
    if found != rows or (top and rows and rep[0] != top):
        message = f"{found} rows where {rows} were expected"
        raise FormatError(message)


def encode_full_zip(levels: Levels, single: Single) -> EncodedPage:
    """Return a page of values one by one, each behind its levels."""
    if levels.rep is None and levels.definition is None and single.bits_per_value:
        return _bare_values(levels, single, single.bits_per_value)
    rep = NO_LEVELS if levels.rep is None else levels.rep
    definition = NO_LEVELS if levels.definition is None else levels.definition
    bits_rep = int(rep.max(initial=0)).bit_length()
    bits_def = int(definition.max(initial=0)).bit_length()
    visible = max_visible(levels.layers)
    data, starts = interleave(
        rep,
        definition,
        bits_def,
        _word_width(bits_rep + bits_def),
        max_repetition(levels.layers),
        visible,
        single.data,
        (single.bits_per_value or 0) // 8,
        single.offsets,
        single.offset_width,
    )
    items = max(len(rep), len(definition)) or len(starts) - 1
    shown = int((definition <= visible).sum()) if len(definition) else items
    layout = FullZip(
        bits_rep,
        bits_def,
        single.bits_per_value,
        8 * single.offset_width if single.offset_width else None,
        items,
        shown,
        single.encoding,
        levels.layers,
    )
    index = () if levels.rep is None and not single.offset_width else (_row_index(starts),)
    return EncodedPage(layout, tuple(pa.py_buffer(buffer) for buffer in (data, *index)))


def _bare_values(levels: Levels, single: Single, bits: int) -> EncodedPage:
    """Return a page of values without levels, as they are."""
    count = len(single.data) // (bits // 8)
    layout = FullZip(0, 0, bits, None, count, count, single.encoding, levels.layers)
    return EncodedPage(layout, (pa.py_buffer(single.data),))


def _word_width(bits: int) -> int:
    """Return how many bytes a control word of so many bits takes."""
    return next(width for width in (0, 1, 2, 4) if bits <= 8 * width)


def _row_index(starts: Int64Array) -> np.ndarray:
    """Return where rows begin, in the fewest bytes that hold the last of them."""
    return starts.astype(np.min_scalar_type(int(starts[-1])))
