"""How a few rows of a mini-block page are picked by one kernel call, without unpacking the rest.

Most pages are made of a few encodings: plain and bit-packed numbers, byte strings, FSST, and plain
fixed-size lists.  For those a page has a recipe; the others are decoded chunk by chunk
(`pennon.encoding.v2_1.codecs`), which is also faster where most of a chunk is wanted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from pennon.encoding.block import Block, FixedSizeListBlock, FixedWidthBlock, VariableBlock
from pennon.encoding.kernels.picks import pick_rows
from pennon.encoding.rows import Rows
from pennon.encoding.v2_1 import encodings as e
from pennon.encoding.v2_1.chunk_index import ChunkIndex
from pennon.encoding.v2_1.chunks import Bytes
from pennon.encoding.v2_1.dispatch import Codecs
from pennon.encoding.v2_1.layouts import MiniBlock, max_repetition, max_visible
from pennon.encoding.v2_1.page import Levels, PageValues
from pennon.errors import FormatError
from pennon.ranges import Int64Array

MOST_ROWS: Final = 1 << 14
"""Of more rows, whole chunks are unpacked."""

_NOTHING, _BYTES, _BITS, _INLINE, _PACKED, _STRINGS = range(6)
_WORDS: Final = (8, 16, 32, 64)

Code: TypeAlias = tuple[int, int, int]
"""Kind, bits and width of an encoding, as the kernel takes them."""

Finish: TypeAlias = Callable[[int, Bytes, "np.ndarray | None"], Block]
"""Makes a block of the number of values, their bytes, and their offsets."""


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """See the module."""

    code: tuple[int, ...]
    layout: MiniBlock
    finish: Finish

    def pick(
        self, index: ChunkIndex, data: Bytes, chunks: Int64Array, places: Int64Array, rows: Rows
    ) -> PageValues:
        """Return rows; ``data[places[i]:]`` is chunk ``chunks[i]``, and all chunks are there."""
        rep, definition, values, offsets, items = pick_rows(
            self.code,
            data,
            chunks,
            places,
            index.offsets,
            index.first_values,
            index.first_rows,
            rows.starts,
            rows.ends,
        )
        layers = self.layout.layers
        if rep is None and items != rows.count:
            message = f"{items} values where {rows.count} were expected"
            raise FormatError(message)
        levels = Levels(rep, definition, layers)
        return PageValues(self.finish(items, values, offsets), index.dictionary, levels)


def recipe_of(layout: MiniBlock, codecs: Codecs) -> Recipe | None:
    """Return the recipe of a page, None if there is none."""
    rep, definition = _levels_code(layout.rep), _levels_code(layout.definition)
    top = max_repetition(layout.layers)
    found = _values(layout.values, codecs)
    if rep is None or definition is None or found is None or layout.num_buffers != 1:
        return None
    if (top > 0) != (layout.rep is not None):
        return None
    values, finish = found
    visible_to = max_visible(layout.layers)
    code = (*rep, *definition, *values, int(layout.is_large), top, visible_to)
    return Recipe(code, layout, finish)


def _levels_code(encoding: e.Encoding | None) -> Code | None:
    if encoding is None:
        return _NOTHING, 0, 0
    code = _numbers_code(encoding)
    return code if code is not None and code[1] == 16 else None


def _numbers_code(encoding: e.Encoding) -> Code | None:
    """Return the code of numbers, None if the kernel does not have it."""
    if isinstance(encoding, e.InlineBitpacking):
        bits = encoding.bits_per_value
        return (_INLINE, bits, 0) if bits in _WORDS and _is_plain(encoding.compression) else None
    if isinstance(encoding, e.OutOfLineBitpacking):
        inner, bits = encoding.values, encoding.bits_per_value
        if not isinstance(inner, e.Flat) or not _is_plain(inner.compression) or bits not in _WORDS:
            return None
        width = inner.bits_per_value
        return (_PACKED, bits, width) if 1 <= width < bits else None
    if not isinstance(encoding, e.Flat) or not _is_plain(encoding.compression):
        return None
    bits = encoding.bits_per_value
    if bits == 1:
        return _BITS, 1, 0
    return (_BYTES, bits, 0) if bits % 8 == 0 and 8 <= bits < 1 << 30 else None


def _is_plain(compression: e.BufferCompression | None) -> bool:
    return compression is None or compression.scheme == "none"


def _values(encoding: e.Encoding, codecs: Codecs) -> tuple[Code, Finish] | None:
    """Return how the kernel picks values, and how they become a block."""
    if isinstance(encoding, e.FixedSizeList):
        return _lists(encoding)
    if isinstance(encoding, e.Fsst):
        inner = _strings_code(encoding.values)
        return None if inner is None else (inner, partial(_expand, encoding, codecs))
    strings = _strings_code(encoding)
    if strings is not None:
        return strings, _byte_strings
    code = _numbers_code(encoding)
    if code is None:
        return None
    bits = code[1]
    return code, lambda rows, values, _: FixedWidthBlock(rows, bits, pa.py_buffer(values))


def _lists(encoding: e.FixedSizeList) -> tuple[Code, Finish] | None:
    """Lists of whole bytes are as wide as all their items."""
    inner, dimension = encoding.values, encoding.dimension
    code = _numbers_code(inner) if isinstance(inner, e.Flat) else None
    if code is None or code[0] != _BYTES or encoding.has_validity or not 0 < dimension < 1 << 20:
        return None
    bits = code[1]
    if bits * dimension >= 1 << 30:
        return None

    def finish(rows: int, values: Bytes, _: np.ndarray | None) -> Block:
        items = FixedWidthBlock(rows * dimension, bits, pa.py_buffer(values))
        return FixedSizeListBlock(rows, dimension, items)

    return (_BYTES, bits * dimension, 0), finish


def _strings_code(encoding: e.Encoding) -> Code | None:
    if not isinstance(encoding, e.Variable) or not _is_plain(encoding.compression):
        return None
    offsets = encoding.offsets
    if not isinstance(offsets, e.Flat) or not _is_plain(offsets.compression):
        return None
    bits = offsets.bits_per_value
    return (_STRINGS, bits, 0) if bits in (32, 64) else None


def _byte_strings(rows: int, values: Bytes, offsets: np.ndarray | None) -> VariableBlock:
    if offsets is None:
        message = "byte strings without offsets"
        raise FormatError(message)
    bits = 8 * offsets.itemsize
    return VariableBlock(rows, bits, pa.py_buffer(offsets), pa.py_buffer(values))


def _expand(
    encoding: e.Fsst, codecs: Codecs, rows: int, values: Bytes, offsets: np.ndarray | None
) -> Block:
    return codecs.values[e.Fsst](encoding, _byte_strings(rows, values, offsets), codecs)
