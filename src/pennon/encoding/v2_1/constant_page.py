"""Pages of one value, or of NULLs: nothing but levels.

::

    value          in the layout (up to 32 bytes of fixed width), or buffer 0, or NULL
    then           repetition levels, definition levels (two buffers, or none at all)

A value in a buffer is the buffers of an Arrow array of one value::

    u32 number of buffers | u32 size of each | the buffers

Levels are 16 bit numbers, plain or encoded.  Without lists a row is a level, so only those of the rows
are read if they are plain; lists are found by looking at all.

Source: ledger F-84, F-85; the all-NULL page of 2.1 is the same without a value.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import ByteRange, ByteRequest
from pennon.core.fast_dataclass import dataclass
from pennon.encoding.arrow_buffers import Bytes, as_bytes
from pennon.encoding.block import AllNullBlock, Block, FixedWidthBlock, VariableBlock
from pennon.encoding.page import PageBuffers
from pennon.encoding.read_protocol import Steps
from pennon.encoding.rows import Rows
from pennon.encoding.search_cache import Slot
from pennon.encoding.v2_1.chunks import Chunks
from pennon.encoding.v2_1.constant import repeat
from pennon.encoding.v2_1.dispatch import Codecs
from pennon.encoding.v2_1.encodings import Encoding, Flat
from pennon.encoding.v2_1.layouts import ConstantPage, Layer, max_repetition, max_visible
from pennon.encoding.v2_1.one_value import OneValue
from pennon.encoding.v2_1.page import (
    NO_LEVELS,
    EncodedPage,
    LevelArray,
    Levels,
    PageValues,
    decode_levels,
    encode_levels,
)
from pennon.encoding.v2_1.page_rules import PageRules
from pennon.encoding.v2_1.pick import pick_levels
from pennon.encoding.v2_1.strategy import keeps_levels
from pennon.errors import FormatError, TooLargeError

_PLAIN = Flat(16)
_MOST_INLINE_BYTES = 32
_MESSAGE_BYTES = 32
"""What it costs about to say how levels are encoded."""
_MOST_ROWS = 1 << 31
"""Rows of nothing cost the file nothing; they cost the reader, who can ask for fewer at once."""


def read_constant_page(
    layout: ConstantPage, page: PageBuffers, rows: Rows, codecs: Codecs, slot: Slot
) -> Steps[PageValues]:
    """Return the steps that read ``rows`` of a page: one round, or none.

    Where only some rows are wanted, the buffers are read whole and remembered, unless they are long.
    """
    if rows.count > _MOST_ROWS:
        message = f"{rows.count} rows of one value at once; read fewer rows"
        raise TooLargeError(message)
    known: KnownPage | None = slot.get()
    if known is None:
        parts = _parts(layout, page)
        size_bytes = sum(part.where.size_bytes for part in parts)
        if keeps_levels(rows, page.rows, size_bytes):
            whole = [replace(part, by_row=False) for part in parts]
            known = yield from _read_parts(whole, rows, codecs)
            slot.put(known)
        else:
            known = yield from _read_parts(parts, rows, codecs)
    picked, items = _pick_rows(layout, page, rows, known)
    return _values(layout, known.value, items, picked)


@dataclass(frozen=True, slots=True, eq=False)
class KnownPage:
    """The parts of a page that were read.  ``by_row``: the levels are those of the wanted rows, not of all."""

    value: Bytes | None
    rep: LevelArray | None
    definition: LevelArray | None
    by_row: bool

    @property
    def size_bytes(self) -> int:
        """Return how much memory it takes."""
        parts = (self.value, self.rep, self.definition)
        return sum(part.nbytes for part in parts if part is not None) + 256


def _read_parts(parts: list[_Part], rows: Rows, codecs: Codecs) -> Steps[KnownPage]:
    """Return the steps that read buffers of a page, in memory of their own."""
    requests: list[ByteRequest] = [part.extent(rows) for part in parts]
    answers = (yield requests) if requests else []
    found = {part.name: as_bytes(each) for part, each in zip(parts, answers, strict=True)}
    levels = {
        part.name: part.decode(found[part.name], rows, codecs).copy()
        for part in parts
        if part.name != "value"
    }
    value = found.get("value")
    kept = None if value is None else value.copy()
    return KnownPage(kept, levels.get("rep"), levels.get("def"), any(p.by_row for p in parts))


@dataclass(frozen=True, slots=True)
class _Part:
    """One buffer of the page; ``entries`` levels of it are the page's."""

    name: str
    where: ByteRange
    encoding: Encoding
    entries: int
    by_row: bool

    def extent(self, rows: Rows) -> ByteRange:
        """Return the bytes to read for ``rows``."""
        if not self.by_row or rows.count == 0:
            return self.where
        start, end = int(rows.starts[0]), rows.end
        return ByteRange(self.where.position + 2 * start, 2 * (end - start))

    def decode(self, data: Bytes, rows: Rows, codecs: Codecs) -> LevelArray:
        """Return the levels; of the rows' hull if a level is a row, else all."""
        count = len(data) // 2 if self.by_row else self.entries
        levels = decode_levels(self.encoding, Chunks.whole(data, count), codecs)
        if not self.by_row or rows.count == 0:
            return levels
        picked = pick_levels(levels, rows.starts - rows.starts[0], rows.ends - rows.starts[0])
        return levels if picked is None else picked


def _parts(layout: ConstantPage, page: PageBuffers) -> list[_Part]:
    """Return the buffers of the page that have bytes."""
    buffers = list(page.page)
    parts = []
    if layout.value is None and len(buffers) in (1, 3):
        parts.append(_Part("value", buffers.pop(0), _PLAIN, 1, by_row=False))
    if len(buffers) not in (0, 2):
        message = f"a page of one value with {len(page.page)} buffers"
        raise FormatError(message)
    has_lists = max_repetition(layout.layers) > 0
    names = (("rep", layout.rep, layout.num_rep), ("def", layout.definition, layout.num_def))
    for (name, encoding, entries), where in zip(names, buffers, strict=False):
        if where.size_bytes == 0:
            continue
        if encoding is not None:
            parts.append(_Part(name, where, encoding, _check_entries(entries), by_row=False))
            continue
        plain = where.size_bytes // 2
        if not has_lists and plain != page.rows:
            message = f"{plain} levels of {page.rows} rows"
            raise FormatError(message)
        parts.append(_Part(name, where, _PLAIN, plain, by_row=not has_lists))
    return parts


def _check_entries(entries: int) -> int:
    if entries >= 1 << 40:
        message = f"{entries} levels in one page"
        raise FormatError(message)
    return entries


def _pick_rows(
    layout: ConstantPage, page: PageBuffers, rows: Rows, known: KnownPage
) -> tuple[Levels, int]:
    """Return the levels of ``rows``, and how many values they stand for."""
    top, rep, definition = max_repetition(layout.layers), known.rep, known.definition
    if top == 0:
        picked = definition if known.by_row else _flat_levels(page, rows, definition)
        return Levels(None, picked, layout.layers), rows.count
    if rep is None or (definition is not None and len(rep) != len(definition)):
        message = "the levels of a page of lists are missing, or differ in number"
        raise FormatError(message)
    begins = np.flatnonzero(rep == top)
    if len(begins) != page.rows or (len(begins) and begins[0] != 0):
        message = f"levels of {len(begins)} rows in a page of {page.rows}"
        raise FormatError(message)
    borders = np.append(begins, len(rep))
    starts, ends = borders[rows.starts], borders[rows.ends]
    reps = pick_levels(rep, starts, ends)
    definitions = pick_levels(definition, starts, ends)
    if definitions is None:
        return Levels(reps, None, layout.layers), int((ends - starts).sum())
    items = int(np.count_nonzero(definitions <= max_visible(layout.layers)))
    return Levels(reps, definitions, layout.layers), items


def _flat_levels(page: PageBuffers, rows: Rows, definition: LevelArray | None) -> LevelArray | None:
    """Return the definition levels of ``rows`` among those of all rows."""
    if definition is None:
        return None
    if len(definition) != page.rows:
        message = f"{len(definition)} levels of {page.rows} rows"
        raise FormatError(message)
    return pick_levels(definition, rows.starts, rows.ends)


# --- the value ------------------------------------------------------------------------------------


def _values(layout: ConstantPage, stored: Bytes | None, items: int, levels: Levels) -> PageValues:
    if layout.value == b"":
        return PageValues(FixedWidthBlock(items, 0, pa.py_buffer(b"")), None, levels)
    if layout.value is not None:
        return PageValues(repeat(layout.value, items), None, levels)
    if stored is None:
        return PageValues(AllNullBlock(items), None, levels)
    indices = FixedWidthBlock(items, 8, pa.py_buffer(bytes(items)))
    return PageValues(indices, parse_value(stored.tobytes()), levels)


def parse_value(data: bytes) -> Block:
    """Return the one value of a value buffer.  Raises FormatError if it is no such thing."""
    buffers = _value_buffers(data)
    if len(buffers) == 1 and buffers[0]:
        return FixedWidthBlock(1, len(buffers[0]) * 8, pa.py_buffer(buffers[0]))
    if len(buffers) == 2 and len(buffers[0]) in (8, 16):
        offsets = np.frombuffer(buffers[0], f"<u{len(buffers[0]) // 2}")
        if offsets[0] == 0 and offsets[1] == len(buffers[1]):
            bits = len(buffers[0]) * 4
            return VariableBlock(1, bits, pa.py_buffer(buffers[0]), pa.py_buffer(buffers[1]))
    message = f"a value of {[len(buffer) for buffer in buffers]} bytes"
    raise FormatError(message)


def _value_buffers(data: bytes) -> list[bytes]:
    count = int.from_bytes(data[:4], "little")
    table = 4 + 4 * count
    if table > len(data):
        message = f"a value of {count} buffers in {len(data)} bytes"
        raise FormatError(message)
    sizes = np.frombuffer(data, "<u4", count, 4).tolist()
    if table + sum(sizes) != len(data):
        message = f"a value of {sizes} bytes in {len(data)} bytes"
        raise FormatError(message)
    ends = np.cumsum([table, *sizes]).tolist()
    return [data[start:end] for start, end in pairwise(ends)]


# --- writing --------------------------------------------------------------------------------------


def encode_null_page(levels: Levels, rules: PageRules) -> EncodedPage:
    """Return a page without values: all are NULL, or there are none at all in its lists."""
    if levels.rep is None and len(levels.layers) == 1:
        return EncodedPage(ConstantPage(None, None, None, 0, 0, (Layer.NULLABLE_ITEM,)))
    parts = [NO_LEVELS if part is None else part for part in (levels.rep, levels.definition)]
    coded = [_encode_levels(part, rules) for part in parts]
    (rep, rep_data), (definition, definition_data) = coded
    num_rep, num_def = (
        0 if each is None else len(p) for each, p in zip((rep, definition), parts, strict=True)
    )
    layout = ConstantPage(None, rep, definition, num_rep, num_def, levels.layers)
    return EncodedPage(layout, (pa.py_buffer(rep_data), pa.py_buffer(definition_data)))


def _encode_levels(levels: LevelArray, rules: PageRules) -> tuple[Encoding | None, Bytes]:
    """Return the levels encoded, if the version allows it and that is smaller."""
    if rules.constant_values and len(levels):
        coded = encode_levels(levels, np.array([len(levels)]), rules)
        if len(coded.data) + _MESSAGE_BYTES < levels.nbytes:
            return coded.encoding, coded.data
    return None, np.ascontiguousarray(levels).view(np.uint8)


def encode_constant_page(levels: Levels, value: OneValue) -> EncodedPage:
    """Return a page of one value, which all have that are not NULL.

    Its levels are plain: with a value, pylance 14.0.2 takes them for that.
    """
    buffers: list[pa.Buffer] = []
    first, *more = value.buffers
    inline = None if more or len(first) > _MOST_INLINE_BYTES else first
    if inline is None:
        sizes = np.array([len(value.buffers), *map(len, value.buffers)], "<u4").tobytes()
        buffers.append(pa.py_buffer(sizes + b"".join(value.buffers)))
    if levels.rep is not None or levels.definition is not None:
        parts = (NO_LEVELS if part is None else part for part in (levels.rep, levels.definition))
        buffers += [pa.py_buffer(np.ascontiguousarray(part)) for part in parts]
    return EncodedPage(ConstantPage(inline, None, None, 0, 0, levels.layers), tuple(buffers))
