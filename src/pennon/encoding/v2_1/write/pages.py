"""Pages on their way to the file: mini-block, full-zip, and those of nothing but NULLs."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.encoding.kernels.chunks import put_together
from pennon.encoding.kernels.interleave import interleave
from pennon.encoding.kernels.shred import index_rows
from pennon.encoding.v2_1.encodings import Encoding, Flat, Variable
from pennon.encoding.v2_1.layouts import (
    ConstantPage,
    FullZip,
    Layer,
    Layout,
    MiniBlock,
    max_repetition,
    max_visible,
)
from pennon.encoding.v2_1.page import Levels
from pennon.encoding.v2_1.values import Bytes, Chunked, FixedValues, Single, StringValues
from pennon.encoding.v2_1.write.level_chunks import chunk_levels, levels_per_chunk
from pennon.encoding.v2_1.write.strings import string_block

_NO_LEVELS: Final = np.empty(0, np.uint16)


@dataclass(frozen=True, slots=True, eq=False)
class EncodedPage:
    """A layout, and the page's buffers in their order."""

    layout: Layout
    buffers: tuple[pa.Buffer, ...] = ()

    @property
    def encoding(self) -> Layout:
        """Return what describes the page, under the name that pages of 2.0 have for it."""
        return self.layout

    @property
    def size_bytes(self) -> int:
        """Return how many bytes the buffers have."""
        return sum(buffer.size for buffer in self.buffers)


def null_page(levels: Levels) -> EncodedPage:
    """Return a page without values: all are NULL, or there are none at all in its lists."""
    if levels.rep is None and len(levels.layers) == 1:
        return EncodedPage(ConstantPage(None, None, None, 0, 0, (Layer.NULLABLE_ITEM,)))
    parts = [_NO_LEVELS if part is None else part for part in (levels.rep, levels.definition)]
    layout = ConstantPage(None, None, None, 0, 0, levels.layers)
    return EncodedPage(layout, tuple(pa.py_buffer(np.ascontiguousarray(part)) for part in parts))


def mini_block_page(
    levels: Levels, chunked: Chunked, items: FixedValues | StringValues | None = None
) -> EncodedPage | None:
    """Return a page of chunks; None if levels make a chunk too large.

    ``items`` are those of the page's dictionary, if the values are indices.
    """
    counts = levels_per_chunk(levels, chunked.counts)
    parts = [
        None if part is None else chunk_levels(part, counts)
        for part in (levels.rep, levels.definition)
    ]
    used = [part for part in parts if part is not None]
    together = put_together(
        counts,
        _log_counts(chunked.counts),
        [*(part.data for part in used), *chunked.buffers],
        np.stack([*(part.sizes for part in used), *chunked.sizes]),
    )
    if together is None:
        return None
    data, words = together
    buffers: list[np.ndarray] = [words, data]
    if items is not None:
        buffers.append(_item_bytes(items))
    if levels.rep is not None:
        buffers.append(index_rows(levels.rep, counts, max_repetition(levels.layers)))
    layout = MiniBlock(
        None if parts[0] is None else parts[0].encoding,
        None if parts[1] is None else parts[1].encoding,
        chunked.encoding,
        None if items is None else _item_encoding(items),
        0 if items is None else items.count,
        levels.layers,
        len(chunked.buffers),
        0 if levels.rep is None else 1,
        int(chunked.counts.sum()),
        is_large=False,
    )
    return EncodedPage(layout, tuple(pa.py_buffer(buffer) for buffer in buffers))


def _log_counts(counts: Int64Array) -> Bytes:
    """Return the binary logarithms of all chunks' numbers of values, and 0 for the last one."""
    logs = np.log2(counts).astype(np.uint8)
    logs[-1] = 0
    return logs


def _item_bytes(items: FixedValues | StringValues) -> Bytes:
    return items.data if isinstance(items, FixedValues) else string_block(items)


def _item_encoding(items: FixedValues | StringValues) -> Encoding:
    return Flat(items.bits) if isinstance(items, FixedValues) else Variable(Flat(8 * items.width))


def full_zip_page(levels: Levels, single: Single) -> EncodedPage:
    """Return a page of values one by one, each behind its levels."""
    rep = _NO_LEVELS if levels.rep is None else levels.rep
    definition = _NO_LEVELS if levels.definition is None else levels.definition
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


def _word_width(bits: int) -> int:
    """Return how many bytes a control word of so many bits takes."""
    return next(width for width in (0, 1, 2, 4) if bits <= 8 * width)


def _row_index(starts: Int64Array) -> np.ndarray:
    """Return where rows begin, in the fewest bytes that hold the last of them."""
    return starts.astype(np.min_scalar_type(int(starts[-1])))
