"""Fixed-size lists of plain values, with NULL items or without.

A list of lists is a list of more items, and each layer may have the validity of its items.  In a
mini-block chunk these bitmaps are buffers of their own, outermost first, values last.  In a value
that is stored by itself they stand in front of it, each on whole bytes::

    validity of the outer items | validity of the inner items | values

Items that are all NULL have a validity and a constant, which is no bytes at all.

Source: ledger F-71, F-86 (pylance's physical/value.rs).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.units import bytes_for_bits
from pennon.encoding.arrow_buffers import Bytes, as_bytes
from pennon.encoding.block import Block, FixedSizeListBlock, FixedWidthBlock, NullableBlock
from pennon.encoding.kernels.nulls import copy_bits
from pennon.encoding.rows import Rows
from pennon.encoding.v2_1.chunks import Chunks
from pennon.encoding.v2_1.constant import repeat
from pennon.encoding.v2_1.dispatch import Codecs
from pennon.encoding.v2_1.encodings import Constant, Encoding, FixedSizeList, Flat
from pennon.encoding.v2_1.pick import pick_bytes, pick_fixed
from pennon.encoding.v2_1.values import Chunked, ListValues, Single, even_counts, values_per_chunk
from pennon.errors import FormatError, UnsupportedError


def decode_fixed_size_list(
    encoding: FixedSizeList, chunks: Chunks, items: Rows, codecs: Codecs
) -> Block:
    """Return the lists ``items`` of mini-block chunks."""
    dimension = check_dimension(encoding)
    inner, wanted = chunks.scaled(dimension), items.scaled(dimension)
    if not encoding.has_validity:
        values = codecs.decode_chunks(encoding.values, inner, wanted)
        return FixedSizeListBlock(items.count, dimension, values)
    validity = _validity(inner, wanted)
    values = codecs.decode_chunks(encoding.values, inner.without_first(), wanted)
    nullable = NullableBlock(wanted.count, validity, values)
    return FixedSizeListBlock(items.count, dimension, nullable)


def check_dimension(encoding: FixedSizeList) -> int:
    """Return the items of a list.  Raises FormatError if there are none, or far too many."""
    if not 0 < encoding.dimension < 1 << 31:
        message = f"fixed-size lists of {encoding.dimension} items"
        raise FormatError(message)
    return encoding.dimension


def _validity(chunks: Chunks, items: Rows) -> pa.Buffer:
    """Return the bits of the first buffer for ``items``."""
    buffer = chunks.first()
    if (chunks.counts > buffer.sizes * 8).any():
        message = "the validity of the items of lists is too short"
        raise FormatError(message)
    pieces = chunks.cut(items)
    starts = buffer.starts[pieces.chunk] * 8
    return pick_fixed(buffer.data, starts + pieces.first, starts + pieces.last, bits_per_value=1)


# --- single values --------------------------------------------------------------------------------


def decode_fixed_size_list_values(encoding: FixedSizeList, stored: Block, _codecs: Codecs) -> Block:
    """Return lists that are stored one by one."""
    if not isinstance(stored, FixedWidthBlock) or stored.bits_per_value % 8:
        message = f"fixed-size lists stored as {stored}"
        raise FormatError(message)
    width = stored.bits_per_value // 8
    data = as_bytes(stored.data)
    return _lists(encoding, data, stored.rows, width, 0, 1)


def _lists(
    encoding: Encoding, data: Bytes, rows: int, width: int, offset: int, items: int
) -> Block:
    """Return a layer of lists; ``offset`` is where in each row it begins, ``items`` its lists."""
    if isinstance(encoding, Flat):
        return _values(encoding, data, rows, width, offset, items)
    if isinstance(encoding, Constant) and offset == width:
        return repeat(encoding.value, rows * items)
    if not isinstance(encoding, FixedSizeList):
        message = f"items of fixed-size lists encoded as {type(encoding).__name__}"
        raise UnsupportedError(message)
    dimension = check_dimension(encoding)
    below = items * dimension
    if below > width * 8:
        message = f"lists of {below} items in {width} bytes"
        raise FormatError(message)
    validity = None
    if encoding.has_validity:
        validity = _bits(data, rows, width, offset, below)
        offset += bytes_for_bits(below)
    inner = _lists(encoding.values, data, rows, width, offset, below)
    if validity is not None:
        inner = NullableBlock(rows * below, validity, inner)
    return FixedSizeListBlock(rows * items, dimension, inner)


def _bits(data: Bytes, rows: int, width: int, offset: int, count: int) -> pa.Buffer:
    """Return ``count`` bits from byte ``offset`` of each row."""
    starts = (np.arange(rows, dtype=np.int64) * width + offset) * 8
    return pick_fixed(data, starts, starts + count, bits_per_value=1)


def _values(encoding: Flat, data: Bytes, rows: int, width: int, offset: int, items: int) -> Block:
    bits = encoding.bits_per_value * items
    if offset + bytes_for_bits(bits) != width:
        message = f"a row of a fixed-size list has {width} bytes, and its {bits} bits of values from byte {offset} do not fill it"
        raise FormatError(message)
    if encoding.bits_per_value == 1:
        return FixedWidthBlock(rows * items, 1, _bits(data, rows, width, offset, items))
    if encoding.bits_per_value % 8:
        message = f"items of {encoding.bits_per_value} bits"
        raise UnsupportedError(message)
    if offset == 0:
        buffer = pa.py_buffer(data[: rows * width])
    else:
        starts = np.arange(rows, dtype=np.int64) * width
        buffer = pick_bytes(data, starts + offset, starts + width)
    return FixedWidthBlock(rows * items, encoding.bits_per_value, buffer)


def encode_fixed_size_list(values: ListValues) -> Chunked | None:
    """Return chunks of whole lists, with a buffer of validity for each layer that has NULLs.

    Returns None if a list is too wide for chunks, or has items of the type null.
    """
    per_chunk = values_per_chunk(_row_bits(values)) if values.items.bits else 0
    if per_chunk == 0:
        return None
    counts = even_counts(values.count, per_chunk)
    buffers, sizes, items = [], [], 1
    for layer in values.layers:
        items *= layer.dimension
        if layer.validity is not None:
            cut, cut_sizes = _cut_bits(layer.validity, counts * items)
            buffers.append(cut)
            sizes.append(cut_sizes)
    buffers.append(values.items.data)
    sizes.append((counts * items * values.items.bits + 7) // 8)
    return Chunked(_encoding_of(values), counts, tuple(buffers), tuple(sizes))


def _row_bits(values: ListValues) -> int:
    """Return how many bits a list takes, the validity in whole bytes."""
    bits, items = 0, 1
    for layer in values.layers:
        items *= layer.dimension
        bits += 0 if layer.validity is None else (items + 7) // 8 * 8
    return bits + items * values.items.bits


def _encoding_of(values: ListValues) -> Encoding:
    bits = values.items.bits
    encoding: Encoding = Flat(bits) if bits else Constant(None)
    for layer in reversed(values.layers):
        encoding = FixedSizeList(layer.dimension, layer.validity is not None, encoding)
    return encoding


def _cut_bits(validity: Bytes, counts: Int64Array) -> tuple[Bytes, Int64Array]:
    """Return a bitmap with each chunk of ``counts[i]`` bits beginning at a whole byte."""
    sizes = (counts + 7) // 8
    if not (counts[:-1] % 8).any():
        return validity[: int(sizes.sum())], sizes
    starts = np.cumsum(counts) - counts
    parts = [
        copy_bits(validity, int(start), int(count))
        for start, count in zip(starts, counts, strict=True)
    ]
    return np.concatenate(parts), sizes


def encode_fixed_size_list_values(values: ListValues) -> Single:
    """Return lists one by one: the bitmaps of its items, then the items.

    Raises UnsupportedError for items of less than a byte, which readers do not take there.
    """
    items, columns = 1, []
    for layer in values.layers:
        items *= layer.dimension
        if layer.validity is not None:
            bits = np.unpackbits(layer.validity, count=values.count * items, bitorder="little")
            rows = bits.reshape(values.count, items)
            columns.append(np.packbits(rows, axis=1, bitorder="little"))
    if values.items.bits % 8:
        message = f"a fixed-size list of {items} single bits, too many for a chunk"
        raise UnsupportedError(message)
    width = values.items.bits * items // 8
    columns.append(values.items.data.reshape(values.count, width))
    table = columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)
    return Single(_encoding_of(values), table.reshape(-1), 8 * table.shape[1])
