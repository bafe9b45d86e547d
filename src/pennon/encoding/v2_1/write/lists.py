"""Encoders of fixed-size lists: their items side by side, and bitmaps where items are NULL."""

from __future__ import annotations

import numpy as np

from pennon.core.byte_ranges import Int64Array
from pennon.encoding.kernels.nulls import copy_bits
from pennon.encoding.v2_1.encodings import Constant, Encoding, FixedSizeList, Flat
from pennon.encoding.v2_1.values import Bytes, Chunked, ListValues, Single
from pennon.encoding.v2_1.write.fixed import even_counts, values_per_chunk
from pennon.errors import UnsupportedError


def chunk_lists(values: ListValues) -> Chunked | None:
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
    return Chunked(_encoding(values), counts, tuple(buffers), tuple(sizes))


def _row_bits(values: ListValues) -> int:
    """Return how many bits a list takes, the validity in whole bytes."""
    bits, items = 0, 1
    for layer in values.layers:
        items *= layer.dimension
        bits += 0 if layer.validity is None else (items + 7) // 8 * 8
    return bits + items * values.items.bits


def _encoding(values: ListValues) -> Encoding:
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


def single_lists(values: ListValues) -> Single:
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
    return Single(_encoding(values), table.reshape(-1), 8 * table.shape[1])
