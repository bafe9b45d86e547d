"""Values of several pages of a column as if they were of one page.

A few rows from many pages are put together while they are bytes: an Arrow array of each page, and
then one of all, would cost more than to read them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pennon.core.memory import joined
from pennon.encoding.block import Block, FixedSizeListBlock, FixedWidthBlock, VariableBlock
from pennon.encoding.v2_1.page import LevelArray, Levels, PageValues
from pennon.encoding.v2_1.variable import string_block


def join_pages(pages: Sequence[PageValues]) -> PageValues | None:
    """Return the values of all pages; None if they have other layers, or cannot be put together."""
    first = pages[0]
    layers = first.levels.layers
    if any(page.levels.layers != layers or page.dictionary is not None for page in pages):
        return None
    values = _join([page.values for page in pages])
    rep = _join_levels([page.levels.rep for page in pages])
    definition = _join_levels([page.levels.definition for page in pages])
    if values is None or rep is _MIXED or definition is _MIXED:
        return None
    return PageValues(values, None, Levels(rep, definition, layers))


def value_bytes(page: PageValues) -> int:
    """Return the bytes of a page of numbers, of fixed-size lists of numbers, or of strings; 0 for other pages."""
    block = page.values
    while isinstance(block, FixedSizeListBlock):
        block = block.items
    return block.data.size if isinstance(block, FixedWidthBlock | VariableBlock) else 0


_MIXED: LevelArray = np.empty(0, np.uint16)


def _join_levels(parts: Sequence[LevelArray | None]) -> LevelArray | None:
    """Return levels one after the other, `_MIXED` if only some pages have them."""
    held = [part for part in parts if part is not None]
    if not held:
        return None
    return np.concatenate(held) if len(held) == len(parts) else _MIXED


def _join(blocks: Sequence[Block]) -> Block | None:
    rows = sum(block.rows for block in blocks)
    first = blocks[0]
    if isinstance(first, FixedWidthBlock):
        return _join_fixed(blocks, first.bits_per_value, rows)
    if isinstance(first, FixedSizeListBlock):
        lists = [block for block in blocks if isinstance(block, FixedSizeListBlock)]
        if len(lists) < len(blocks) or any(each.dimension != first.dimension for each in lists):
            return None
        items = _join([each.items for each in lists])
        return None if items is None else FixedSizeListBlock(rows, first.dimension, items)
    return join_strings(blocks) if isinstance(first, VariableBlock) else None


def _join_fixed(blocks: Sequence[Block], bits: int, rows: int) -> Block | None:
    """Bits of several pages are not joined: they would have to be shifted."""
    parts = []
    for block in blocks:
        if not isinstance(block, FixedWidthBlock) or block.bits_per_value != bits or bits % 8:
            return None
        size = block.rows * (bits // 8)
        if block.data.size < size:
            return None
        parts.append(block.data if block.data.size == size else block.data.slice(0, size))
    return FixedWidthBlock(rows, bits, pa.py_buffer(joined(parts)))


def join_strings(blocks: Sequence[Block]) -> VariableBlock | None:
    """Return the byte strings of all blocks; None if one has other values."""
    ends, parts, total = [np.zeros(1, np.int64)], [], 0
    for block in blocks:
        if not isinstance(block, VariableBlock):
            return None
        offsets = np.frombuffer(block.offsets, f"i{block.offset_bits // 8}", block.rows + 1)
        ends.append(offsets[1:].astype(np.int64) + total)
        size = int(offsets[-1])
        parts.append(block.data if block.data.size == size else block.data.slice(0, size))
        total += size
    return string_block(np.concatenate(ends), joined(parts))
