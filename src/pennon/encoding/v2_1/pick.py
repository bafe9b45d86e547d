"""Pick values out of a block, and levels out of those of a page."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.kernels.gather import gather, total_size
from pennon.core.memory import allocate, allocate_buffer
from pennon.encoding.arrow_buffers import Bytes, as_bytes
from pennon.encoding.block import (
    AllNullBlock,
    Block,
    FixedSizeListBlock,
    FixedWidthBlock,
    NullableBlock,
    StructBlock,
    VariableBlock,
)
from pennon.encoding.kernels.bits import pick_bits
from pennon.encoding.rows import Rows
from pennon.errors import FormatError, UnsupportedError


def pick(block: Block, items: Rows) -> Block:
    """Return the values ``items`` of a block; the block itself if that is all of them."""
    if items.end > block.rows:
        message = f"values up to {items.end} of a block of {block.rows}"
        raise FormatError(message)
    if items.is_contiguous and items.count == block.rows:
        return block
    if isinstance(block, FixedWidthBlock):
        data = pick_fixed(as_bytes(block.data), items.starts, items.ends, block.bits_per_value)
        return FixedWidthBlock(items.count, block.bits_per_value, data)
    if isinstance(block, VariableBlock):
        return _pick_strings(block, items)
    if isinstance(block, FixedSizeListBlock):
        inner = pick(block.items, items.scaled(block.dimension))
        return FixedSizeListBlock(items.count, block.dimension, inner)
    if isinstance(block, NullableBlock):
        validity = pick_fixed(as_bytes(block.validity), items.starts, items.ends, 1)
        return NullableBlock(items.count, validity, pick(block.values, items))
    if isinstance(block, StructBlock):
        return StructBlock(items.count, tuple(pick(child, items) for child in block.children))
    if isinstance(block, AllNullBlock):
        return AllNullBlock(items.count)
    message = f"values cannot be picked out of a {type(block).__name__}"
    raise FormatError(message)


def pick_fixed(data: Bytes, starts: Int64Array, ends: Int64Array, bits_per_value: int) -> pa.Buffer:
    """Return the values ``[starts[i], ends[i])`` of ``data``, one range after the other.

    Raises FormatError if a range leaves the data, UnsupportedError for widths of no whole bytes but 1.
    """
    if bits_per_value == 1:
        bits = allocate((int((ends - starts).sum()) + 7) // 8, np.uint8)
        try:
            pick_bits(data, starts, ends, bits)
        except ValueError as error:
            raise FormatError(str(error)) from error
        return pa.py_buffer(bits)
    if bits_per_value % 8:
        message = f"values of {bits_per_value} bits; Pennon reads single bits and whole bytes"
        raise UnsupportedError(message)
    return pick_bytes(data, starts * (bits_per_value // 8), ends * (bits_per_value // 8))


def pick_levels(
    levels: npt.NDArray[np.uint16] | None, starts: Int64Array, ends: Int64Array
) -> npt.NDArray[np.uint16] | None:
    """Return the levels of some ranges; all of them are not copied."""
    if levels is None or (len(starts) == 1 and starts[0] == 0 and ends[0] == len(levels)):
        return levels
    return np.frombuffer(pick_fixed(levels.view(np.uint8), starts, ends, 16), "<u2")


def pick_bytes(data: Bytes, starts: Int64Array, ends: Int64Array) -> pa.Buffer:
    """Return byte ranges of ``data``, one after the other; one range is not copied."""
    if len(starts) == 1 and 0 <= starts[0] <= ends[0] <= len(data):
        return pa.py_buffer(data[starts[0] : ends[0]])
    try:
        target = allocate_buffer(total_size(starts, ends, len(data)))
        gather(data, starts, ends, as_bytes(target))
    except ValueError as error:
        raise FormatError(str(error)) from error
    return target


def _pick_strings(block: VariableBlock, items: Rows) -> VariableBlock:
    dtype = np.dtype(f"i{block.offset_bits // 8}")
    offsets = np.frombuffer(block.offsets, dtype, block.rows + 1).astype(np.int64)
    sizes = np.diff(offsets)[items.indices()]
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    data = pick_bytes(as_bytes(block.data), offsets[items.starts], offsets[items.ends])
    return VariableBlock(items.count, 64, pa.py_buffer(ends), data)
