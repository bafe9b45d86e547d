"""How a few rows of mini-block pages are picked by one kernel call, without unpacking the rest.

Most pages are made of a few encodings: plain and bit-packed numbers, byte strings, FSST, and plain
fixed-size lists.  For those a page has a recipe; the others are decoded chunk by chunk
(`pennon.encoding.v2_1.codecs`), which is also faster where most of a chunk is wanted.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.encoding.arrow_buffers import Bytes
from pennon.encoding.block import Block, FixedSizeListBlock, FixedWidthBlock, VariableBlock
from pennon.encoding.kernels.point_read import PickCode
from pennon.encoding.symbol_table import parse_symbol_table
from pennon.encoding.v2_1 import encodings as e
from pennon.encoding.v2_1.layouts import Layers, MiniBlock, max_repetition, max_visible

_NOTHING, _BYTES, _BITS, _INLINE, _PACKED, _STRINGS = range(6)
_WORDS: Final = (8, 16, 32, 64)

Code: TypeAlias = tuple[int, int, int]
"""Kind, bits and width of an encoding, as the kernel takes them."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What picked values become; pages of one shape may be picked together."""

    layers: Layers
    has_definition: bool
    is_string: bool
    bits: int
    """Of a value, or of an item of a fixed-size list."""
    dimension: int | None = None

    def block(self, rows: int, values: Bytes, offsets: np.ndarray | None) -> Block:
        """Return a block of ``rows`` values."""
        data = pa.py_buffer(values)
        if offsets is not None:
            return VariableBlock(rows, 8 * offsets.itemsize, pa.py_buffer(offsets), data)
        if self.dimension is None:
            return FixedWidthBlock(rows, self.bits, data)
        items = FixedWidthBlock(rows * self.dimension, self.bits, data)
        return FixedSizeListBlock(rows, self.dimension, items)


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """See the module."""

    code: PickCode
    shape: Shape


def recipe_of(layout: MiniBlock) -> Recipe | None:
    """Return the recipe of a page, None if there is none.

    Raises FormatError if its FSST symbols are broken.
    """
    rep, definition = _levels_code(layout.rep), _levels_code(layout.definition)
    top = max_repetition(layout.layers)
    values = _values_code(layout.values)
    if rep is None or definition is None or values is None or layout.num_buffers != 1:
        return None
    if (top > 0) != (layout.rep is not None):
        return None
    numbers = (*rep, *definition, *values, int(layout.is_large), top, max_visible(layout.layers))
    bits, dimension = values[1], None
    if isinstance(layout.values, e.FixedSizeList):
        dimension = layout.values.dimension
        bits //= dimension
    is_string = values[0] == _STRINGS
    shape = Shape(
        layout.layers, layout.definition is not None, is_string, 0 if is_string else bits, dimension
    )
    return Recipe(_pick_code(numbers, layout.values), shape)


def _pick_code(numbers: tuple[int, ...], values: e.Encoding) -> PickCode:
    table = parse_symbol_table(values.symbol_table) if isinstance(values, e.Fsst) else None
    if table is None:
        return PickCode(numbers)
    return PickCode(numbers, table.symbols, table.lengths)


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


def _values_code(encoding: e.Encoding) -> Code | None:
    """Return the code of values, None if the kernel does not have it."""
    if isinstance(encoding, e.FixedSizeList):
        return _lists_code(encoding)
    if isinstance(encoding, e.Fsst):
        return _strings_code(encoding.values)
    return _strings_code(encoding) or _numbers_code(encoding)


def _lists_code(encoding: e.FixedSizeList) -> Code | None:
    """Lists of whole bytes are as wide as all their items."""
    inner, dimension = encoding.values, encoding.dimension
    code = _numbers_code(inner) if isinstance(inner, e.Flat) else None
    if code is None or code[0] != _BYTES or encoding.has_validity or not 0 < dimension < 1 << 20:
        return None
    return (_BYTES, code[1] * dimension, 0) if code[1] * dimension < 1 << 30 else None


def _strings_code(encoding: e.Encoding) -> Code | None:
    if not isinstance(encoding, e.Variable) or not _is_plain(encoding.compression):
        return None
    offsets = encoding.offsets
    if not isinstance(offsets, e.Flat) or not _is_plain(offsets.compression):
        return None
    bits = offsets.bits_per_value
    return (_STRINGS, bits, 0) if bits in (32, 64) else None
