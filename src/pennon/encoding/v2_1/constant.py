"""Constant: one value for all, which stands in the description."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pennon.encoding.block import AllNullBlock, Block, FixedWidthBlock
from pennon.encoding.rows import Rows
from pennon.encoding.v2_1.chunks import Chunks
from pennon.encoding.v2_1.dispatch import Codecs
from pennon.encoding.v2_1.encodings import Constant


def decode_constant(encoding: Constant, _chunks: Chunks, items: Rows, _codecs: Codecs) -> Block:
    """Return the value as often as ``items`` asks for it."""
    return repeat(encoding.value, items.count)


def decode_constant_values(encoding: Constant, stored: Block, _codecs: Codecs) -> Block:
    """Return the value as often as there are stored ones, which have no bytes."""
    return repeat(encoding.value, stored.rows)


def repeat(value: bytes | None, rows: int) -> Block:
    """Return ``rows`` times the same value of fixed width; a value of no bytes is NULL."""
    if not value:
        return AllNullBlock(rows)
    data = np.tile(np.frombuffer(value, np.uint8), rows)
    return FixedWidthBlock(rows, len(value) * 8, pa.py_buffer(data))
