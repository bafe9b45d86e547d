"""The positions of the parts of a 2.1 or 2.2 file, so that damage can be aimed at each of them.

Forty bytes of chunk words decide about a megabyte of values: a flip anywhere in the file nearly always
hits a value.  Here every part has a name, and mutants are spread evenly over the names.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pennon.encoding.kernels.miniblocks import split_chunks
from pennon.encoding.v2_1.chunk_index import parse_chunk_index
from pennon.encoding.v2_1.layouts import BlobPage, ConstantPage, FullZip, Layout, MiniBlock
from pennon.encoding.v2_1.wire import parse_page_layout
from pennon.file.container.footer import FOOTER_BYTES
from pennon.proto import file2_pb2, file_pb2

_HEAD_BYTES = 16
"""What stands in front of values: a bit width, the first offsets, a declared size."""


@dataclass(frozen=True, slots=True)
class Region:
    """The part ``name`` at ``[start, end)``; its numbers are ``width`` bytes wide, where it has any."""

    name: str
    start: int
    end: int
    width: int = 1


@dataclass(frozen=True, slots=True)
class Parts:
    """The messages of a file, and the numbers that the footer has of them."""

    descriptor: file_pb2.FileDescriptor
    columns: tuple[file2_pb2.ColumnMetadata, ...]
    column_extents: tuple[tuple[int, int], ...]
    buffer_extents: tuple[tuple[int, int], ...]
    version: tuple[int, int]


def parts_of(data: bytes) -> Parts:
    """Return the messages of a sound file."""
    _, columns_at, buffers_at, buffers, columns, major, minor, _ = struct.unpack(
        "<QQQIIHH4s", data[-FOOTER_BYTES:]
    )
    column_extents = tuple(_table(data, columns_at, columns))
    buffer_extents = tuple(_table(data, buffers_at, buffers))
    position, size = buffer_extents[0]
    descriptor = file_pb2.FileDescriptor.FromString(data[position : position + size])
    messages = [
        file2_pb2.ColumnMetadata.FromString(data[start : start + length])
        for start, length in column_extents
    ]
    return Parts(descriptor, tuple(messages), column_extents, buffer_extents, (major, minor))


def _table(data: bytes, position: int, entries: int) -> Iterator[tuple[int, int]]:
    for number in range(entries):
        yield struct.unpack_from("<QQ", data, position + 16 * number)


def layout_bytes(page: file2_pb2.ColumnMetadata.Page) -> bytes:
    """Return the ``PageLayout`` message of a page; `Any` has it in field 2."""
    from google.protobuf.any_pb2 import Any as AnyMessage

    return AnyMessage.FromString(page.encoding.direct.encoding).value


def regions_of(data: bytes) -> list[Region]:
    """Return the parts of a sound file; they may overlap, and need not cover it."""
    parts = parts_of(data)
    found = []
    for column in parts.columns:
        for page in column.pages:
            layout = parse_page_layout(layout_bytes(page))
            extents = list(zip(page.buffer_offsets, page.buffer_sizes, strict=True))
            found += list(_page(data, layout, page.length, extents))
    found += [Region("column metadata", at, at + size) for at, size in parts.column_extents]
    found += [Region("global buffer", at, at + size) for at, size in parts.buffer_extents]
    _, columns_at, buffers_at = struct.unpack_from("<QQQ", data, len(data) - FOOTER_BYTES)
    end = len(data) - FOOTER_BYTES
    found += [Region("column table", columns_at, buffers_at, 8)]
    found += [Region("buffer table", buffers_at, end, 8), Region("footer", end, len(data), 4)]
    return [region for region in found if region.end > region.start]


def _page(
    data: bytes, layout: Layout, rows: int, extents: list[tuple[int, int]]
) -> Iterator[Region]:
    if isinstance(layout, BlobPage):
        yield from _page(data, layout.inner, rows, extents)
    elif isinstance(layout, MiniBlock):
        yield from _mini_block(data, layout, rows, extents)
    elif isinstance(layout, FullZip):
        position, size = extents[0]
        yield Region("first entries", position, position + min(size, 64), 4)
        yield Region("entries", position, position + size, 4)
        if len(extents) > 1:
            position, size = extents[1]
            yield Region("row index", position, position + size, size // (rows + 1))
    else:
        yield from _constant(layout, extents)


def _constant(layout: ConstantPage, extents: list[tuple[int, int]]) -> Iterator[Region]:
    names = ["repetition", "definition"]
    if layout.value is None and len(extents) in (1, 3):
        names = ["value", *names]
    for name, (position, size) in zip(names, extents, strict=False):
        yield Region(name, position, position + size, 4 if name == "value" else 2)


def _mini_block(
    data: bytes, layout: MiniBlock, rows: int, extents: list[tuple[int, int]]
) -> Iterator[Region]:
    (words_at, words), (at, size) = extents[:2]
    yield Region("chunk words", words_at, words_at + words, 4 if layout.is_large else 2)
    rest = extents[2:]
    if layout.dictionary is not None:
        position, length = rest.pop(0)
        yield Region("dictionary head", position, position + min(length, _HEAD_BYTES), 4)
        yield Region("dictionary", position, position + length)
    index = None
    if rest:
        position, length = rest[0]
        yield Region("row index", position, position + length, 8)
        index = np.frombuffer(data[position : position + length], np.uint8)
    table = np.frombuffer(data[words_at : words_at + words], np.uint8)
    chunks = parse_chunk_index(layout, rows, table, size, index)
    stored = np.frombuffer(data[at : at + size], np.uint8)
    yield from _chunks(layout, stored, chunks.offsets, at)


def _chunks(
    layout: MiniBlock, stored: np.ndarray, offsets: np.ndarray, position: int
) -> Iterator[Region]:
    """Yield the parts of the first, the second and the last chunk."""
    levels = [
        name
        for name, encoding in (("repetition", layout.rep), ("definition", layout.definition))
        if encoding is not None
    ]
    _, starts, sizes = split_chunks(
        stored,
        offsets[:-1].copy(),
        np.diff(offsets),
        len(levels),
        layout.num_buffers,
        layout.is_large,
    )
    names = levels + [f"values {number}" for number in range(layout.num_buffers)]
    for chunk in sorted({0, min(1, len(offsets) - 2), len(offsets) - 2}):
        begin = int(offsets[chunk])
        first = int(starts[0, chunk]) if len(names) else begin
        yield Region("chunk header", position + begin, position + first, 2)
        for name, start, size in zip(names, starts[:, chunk], sizes[:, chunk], strict=True):
            at, end = position + int(start), position + int(start + size)
            yield Region(f"{name} head", at, min(at + _HEAD_BYTES, end), 4)
            yield Region(f"{name} tail", max(at, end - 8), end)
            yield Region(name, at, end, 4)
