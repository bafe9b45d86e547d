"""Pages of versions 2.1 and 2.2 in words and numbers, for those who want to know what a file holds.

`sketch_page` needs the layout only.  `measure_page` reads chunks, and tells their bytes apart::

    chunk    u16 levels, sizes | repetition levels | definition levels | values, buffer by buffer
             headers and padding                                         up to 8 bytes each
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import ByteRange, Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.encoding.arrow_buffers import Bytes, as_bytes
from pennon.encoding.kernels.miniblocks import split_chunks
from pennon.encoding.page import PageBuffers
from pennon.encoding.read_protocol import Steps
from pennon.encoding.rows import Rows
from pennon.encoding.search_cache import SearchCache, Slot
from pennon.encoding.v2_1 import encodings as e
from pennon.encoding.v2_1.blob_page import blobs_of
from pennon.encoding.v2_1.chunk_index import ChunkIndex, parse_chunk_index
from pennon.encoding.v2_1.chunks import ChunkBuffers
from pennon.encoding.v2_1.layouts import (
    BlobPage,
    ConstantPage,
    FullZip,
    Layer,
    Layers,
    Layout,
    MiniBlock,
    max_repetition,
)
from pennon.encoding.v2_1.pages import read_page

CLOSE_BYTES: Final = 4096
"""Blobs with no more than this between them are one stretch of the file."""
MOST_BLOBS: Final = 1 << 20
"""Of more in one page nobody looks where they are; writers put 8 MiB of descriptions into one."""

UInt64Array: TypeAlias = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class PageSketch:
    """A description of a page's layout.

    ``encodings`` are (what, how) of its parts; ``buffers`` say what each buffer of the page is.
    """

    layout: str
    encodings: tuple[tuple[str, str], ...]
    facts: tuple[str, ...]
    buffers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PageMeasures:
    """Facts about the chunks of a page: the bytes of their parts, and how the values are packed.

    ``blobs`` are the stretches of the file that the values of a blob page lie in.
    """

    facts: tuple[str, ...] = ()
    parts: tuple[tuple[str, int], ...] = ()
    values: str | None = None
    blobs: tuple[ByteRange, ...] | None = None


def sketch_page(layout: Layout, page: PageBuffers) -> PageSketch:
    """Return what a layout says of a page."""
    count = len(page.page)
    if isinstance(layout, BlobPage):
        inner = sketch_page(layout.inner, page)
        facts = (layers_text(layout.layers), *inner.facts[1:])
        return PageSketch(f"blob ({inner.layout})", inner.encodings, facts, inner.buffers)
    facts = (layers_text(layout.layers), *_facts(layout, count))
    names = [*_buffer_names(layout, count), *["not named by the layout"] * count][:count]
    return PageSketch(_layout_name(layout), tuple(_encodings(layout)), facts, tuple(names))


def _layout_name(layout: MiniBlock | FullZip | ConstantPage) -> str:
    if isinstance(layout, MiniBlock):
        return "mini-block"
    return "full-zip" if isinstance(layout, FullZip) else "constant"


def _buffer_names(layout: MiniBlock | FullZip | ConstantPage, count: int) -> Iterator[str]:
    if isinstance(layout, MiniBlock):
        yield from ("chunk table", "chunks")
        if layout.dictionary is not None:
            yield "dictionary"
        if max_repetition(layout.layers):
            yield "repetition index"
    elif isinstance(layout, FullZip):
        yield from ("values", "repetition index")
    else:
        if layout.value is None and count % 2:
            yield "value"
        yield from ("repetition levels", "definition levels")


def _facts(layout: MiniBlock | FullZip | ConstantPage, count: int) -> Iterator[str]:
    if isinstance(layout, MiniBlock):
        yield f"{layout.num_items:,} items"
        if layout.dictionary is not None:
            yield f"dictionary of {layout.num_dictionary_items:,}"
    elif isinstance(layout, FullZip):
        yield f"{layout.num_items:,} items"
        bits = layout.bits_rep, layout.bits_def
        yield "control words of {} + {} bits".format(*bits) if any(bits) else "no control words"
        fixed = layout.bits_per_value is not None
        yield (
            f"{layout.bits_per_value} bits each"
            if fixed
            else f"sizes of {layout.bits_per_offset} bits"
        )
    elif layout.value is not None:
        yield f"one value, {_hex(layout.value)}"
    else:
        yield "one value" if count % 2 else "all NULL"


def _encodings(layout: MiniBlock | FullZip | ConstantPage) -> Iterator[tuple[str, str]]:
    if not isinstance(layout, ConstantPage):
        yield "values", encoding_text(layout.values)
    if isinstance(layout, MiniBlock) and layout.dictionary is not None:
        yield "dictionary", encoding_text(layout.dictionary)
    if isinstance(layout, FullZip):
        return
    if layout.rep is not None:
        yield "repetition", encoding_text(layout.rep)
    if layout.definition is not None:
        yield "definition", encoding_text(layout.definition)


def layers_text(layers: Layers) -> str:
    """Return layers on one line, the outermost first: ``list (NULL, empty) > item (NULL)``."""
    return " > ".join(_layer(layer) for layer in reversed(layers))


def _layer(layer: Layer) -> str:
    may_be = ["NULL"] * layer.has_nulls + ["empty"] * layer.has_empty
    kind = "list" if layer.is_list else "item"
    return f"{kind} ({', '.join(may_be)})" if may_be else kind


# --- encodings ------------------------------------------------------------------------------------


def encoding_text(encoding: e.Encoding) -> str:
    """Return the tree of an encoding on one line: ``General(zstd) > BitPacked(17 of 32)``."""
    match encoding:
        case e.Flat(bits, compression):
            return f"Flat({bits}{_with(compression)})"
        case e.Variable(offsets, compression):
            return f"Variable(offsets: {encoding_text(offsets)}{_with(compression)})"
        case e.Constant(value):
            return f"Constant({'NULL' if value is None else _hex(value)})"
        case e.OutOfLineBitpacking(bits, e.Flat(width, None)):
            return f"BitPacked({width} of {bits})"
        case e.InlineBitpacking(bits, compression):
            return f"BitPacked(in line, of {bits}{_with(compression)})"
        case e.Rle(values, lengths):
            return f"Rle(values: {encoding_text(values)}, lengths: {encoding_text(lengths)})"
        case e.Dictionary(indices, items, count):
            parts = f"indices: {encoding_text(indices)}, items: {encoding_text(items)}"
            return f"Dictionary({parts}, {count:,})"
        case e.VariablePackedStruct(fields):
            return f"PackedStruct({' + '.join(encoding_text(each.value) for each in fields)})"
        case _:
            return f"{_wrapper(encoding)} > {encoding_text(encoding.values)}"


def _wrapper(encoding: e.Encoding) -> str:
    """Return what stands around the values of an encoding."""
    match encoding:
        case e.Fsst(table):
            return f"Fsst({len(table):,} bytes of symbols)"
        case e.General(compression):
            return f"General({_scheme(compression)})"
        case e.FixedSizeList(dimension, has_validity):
            return f"FixedSizeList({dimension:,}{', NULLs' * has_validity})"
        case e.PackedStruct(widths):
            return f"PackedStruct({' + '.join(map(str, widths))})"
        case e.OutOfLineBitpacking(bits):
            return f"BitPacked({bits})"
        case _:
            return type(encoding).__name__


def _with(compression: e.BufferCompression | None) -> str:
    return "" if compression is None else f", {_scheme(compression)}"


def _scheme(compression: e.BufferCompression) -> str:
    level = "" if compression.level is None else f" {compression.level}"
    return f"{compression.scheme}{level}"


def _hex(value: bytes) -> str:
    return f"0x{value[:8].hex()}{'…' * (len(value) > 8)}"


# --- chunks ---------------------------------------------------------------------------------------


def measure_page(layout: Layout, page: PageBuffers) -> Steps[PageMeasures]:
    """Return the steps that read a page's chunks, if it has any, and tell their bytes apart.

    Raises FormatError if they are damaged.
    """
    if isinstance(layout, BlobPage):
        inner = yield from measure_page(layout.inner, page)
        return (yield from _measure_blobs(layout, page, inner))
    if isinstance(layout, FullZip):
        return _measure_words(layout, page)
    if not isinstance(layout, MiniBlock):
        return PageMeasures()
    requests = [page.find("page", 0), page.find("page", 1)]
    if max_repetition(layout.layers):
        requests.append(page.find("page", 2 + (layout.dictionary is not None)))
    answers = yield [*requests]
    words, data, *rest = map(as_bytes, answers)
    index = parse_chunk_index(layout, page.rows, words, len(data), rest[0] if rest else None)
    return _measure_chunks(layout, index, data)


def _measure_blobs(layout: BlobPage, page: PageBuffers, inner: PageMeasures) -> Steps[PageMeasures]:
    if page.rows > MOST_BLOBS:
        return inner
    whole = Rows.between(0, page.rows)
    described = yield from read_page(layout.inner, page, whole, Slot(SearchCache(), 0))
    blobs = blobs_of(described.values, layout.layers)
    filled = blobs.sizes > 0
    starts, sizes = blobs.positions[filled], blobs.sizes[filled]
    total = sum(sizes.tolist())
    fact = f"{len(sizes):,} values of {total:,} bytes elsewhere in the file"
    return replace(inner, facts=(*inner.facts, fact), blobs=tuple(_stretches(starts, sizes)))


def _stretches(starts: UInt64Array, sizes: UInt64Array) -> Iterator[ByteRange]:
    """Yield what ranges cover, those that lie close as one."""
    order = np.argsort(starts)
    begin = end = -1
    for start, size in zip(starts[order].tolist(), sizes[order].tolist(), strict=True):
        if begin >= 0 and start <= end + CLOSE_BYTES:
            end = max(end, start + size)
            continue
        if begin >= 0:
            yield ByteRange(begin, end - begin)
        begin, end = start, start + size
    if begin >= 0:
        yield ByteRange(begin, end - begin)


def _measure_words(layout: FullZip, page: PageBuffers) -> PageMeasures:
    bits = layout.bits_rep + layout.bits_def
    word = 0 if bits == 0 else 1 if bits <= 8 else 2 if bits <= 16 else 4
    words = word * layout.num_items
    total = page.find("page", 0).size_bytes
    if not 0 < words <= total:
        return PageMeasures()
    rest = "values" if layout.bits_per_value is not None else "sizes and values"
    return PageMeasures(parts=(("control words", words), (rest, total - words)))


def _measure_chunks(layout: MiniBlock, index: ChunkIndex, data: Bytes) -> PageMeasures:
    level_buffers = (layout.rep is not None) + (layout.definition is not None)
    offsets, counts = index.offsets, index.counts
    _, starts, sizes = split_chunks(
        data, offsets[:-1], np.diff(offsets), level_buffers, layout.num_buffers, layout.is_large
    )
    names = ["repetition levels"] * (layout.rep is not None)
    names += ["definition levels"] * (layout.definition is not None)
    totals = sizes.sum(axis=1).tolist()
    parts = [*zip(names, totals, strict=False), ("values", sum(totals[level_buffers:]))]
    parts.append(("headers and padding", len(data) - sum(totals)))
    spread = _spread(counts)
    facts = (f"{len(counts):,} chunk{'' if len(counts) == 1 else 's'} of {spread} values",)
    values = None
    if isinstance(layout.values, e.InlineBitpacking) and len(sizes) == level_buffers + 1:
        packed = ChunkBuffers(data, starts[-1], sizes[-1])
        widths = _widths(packed, counts, layout.values.bits_per_value)
        values = f"BitPacked({_spread(widths)} of {layout.values.bits_per_value}, in line)"
    return PageMeasures(facts, tuple(parts), values)


def _spread(numbers: Int64Array) -> str:
    if not len(numbers):
        return "no"
    low, high = int(numbers.min()), int(numbers.max())
    return f"{low:,}" if low == high else f"{low:,}..{high:,}"


def _widths(packed: ChunkBuffers, counts: Int64Array, bits: int) -> Int64Array:
    """Return the width that each chunk's first block of 1024 values is packed to."""
    filled = (counts > 0) & (packed.sizes >= bits // 8)
    at = packed.starts[filled]
    # a width is at most 64, so its lowest byte is all of it
    return packed.data[at].astype(np.int64) if len(at) else np.zeros(0, np.int64)


def parts_of(extent: ByteRange, parts: tuple[tuple[str, int], ...]) -> str:
    """Return what a buffer is made of: ``levels 12, values 1,200``."""
    inside = [(name, size) for name, size in parts if size]
    if not inside or sum(size for _, size in inside) != extent.size_bytes:
        return ""
    return ", ".join(f"{name} {size:,}" for name, size in inside)
