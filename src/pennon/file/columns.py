"""From the rows of a field to the pages of its columns, and back to arrays.

A field is a small tree, and so are its columns.  Each node turns the rows it is asked for into rows
of its pages and of the nodes below:

::

    primitive, string, packed struct, fixed-size list    one column; page p holds rows
                                                         [first_rows[p], first_rows[p + 1])
    struct        no data of its own; the children have the same rows
    list          one column of offsets; they say which rows (items) of the child to read.
                  Item 0 of list page p is row sum(num_items of the pages before p) of the child.

All pages of all nodes of one level are read in the same round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from pennon.encoding.assemble import assemble_as, lists_of, retype
from pennon.encoding.block import NullableBlock, VariableBlock
from pennon.encoding.frugal import frugal
from pennon.encoding.page import PageBuffers
from pennon.encoding.prefetch import hull, prefetched
from pennon.encoding.rows import Rows
from pennon.encoding.steps import Steps, together
from pennon.encoding.v2_0.blob import DESCRIPTION_TYPE, NULL_POSITION, is_blob
from pennon.encoding.v2_0.codecs import CODECS
from pennon.encoding.v2_0.encodings import ArrayEncoding, Dictionary, List, PackedStruct
from pennon.encoding.v2_0.list import decode_list
from pennon.encoding.v2_0.offsets import Spans
from pennon.errors import ArgumentError, Breadcrumb, FormatError, LanceError, UnsupportedError
from pennon.file.layout import VARIABLE_WIDTH
from pennon.file.wire import (
    Column,
    Direct,
    EncodingBytes,
    Page,
    column_encoding_or_values,
    parse_array_encoding,
)
from pennon.ranges import Extent, Gather
from pennon.schema.arrow import field_to_arrow, storage_field
from pennon.schema.field import Field
from pennon.schema.types import storage_type
from pennon.units import FieldId

if TYPE_CHECKING:
    from pennon.file.reader import DataFile

_LISTS = frozenset(("list", "list.struct", "large_list", "large_list.struct"))
_EMPTY = pa.py_buffer(b"")
_FEW_ROWS: Final = 1024
"""Reads of no more rows than this count as point reads (`pennon.encoding.prefetch`)."""

T = TypeVar("T")
_ReadItems: TypeAlias = Callable[[Spans, Rows], Steps[pa.Array]]


def read_fields(
    file: DataFile, fields: Sequence[Field], column_of: Mapping[FieldId, int], rows: Rows
) -> Steps[list[list[pa.Array]]]:
    """Return the steps that read several fields side by side."""
    return together([read_field(file, field, column_of, rows) for field in fields])


def read_field(
    file: DataFile, field: Field, column_of: Mapping[FieldId, int], rows: Rows
) -> Steps[list[pa.Array]]:
    """Return the steps of `pennon.file.reader.DataFile.read_field`."""
    if rows.end > file.num_rows or (len(rows.starts) and rows.starts[0] < 0):
        message = f"rows up to {rows.end} of a file that has {file.num_rows} rows"
        raise ArgumentError(message, where=Breadcrumb(file=file.source.path))
    known = [column_of[each.id] for each in field.walk() if column_of.get(each.id, -1) >= 0]
    yield from file.read_columns(known)
    return (yield from _read_node(_Node(file, column_of, field.name, file.num_rows), field, rows))


@dataclass(frozen=True, slots=True)
class _Node:
    """Where in the tree of a field a reader stands."""

    file: DataFile
    column_of: Mapping[FieldId, int]
    path: str
    """The dotted name, for messages."""
    total: int | None
    """How many rows the columns must have; None among the items of a list."""

    def below(self, child: Field, *, items: bool = False) -> _Node:
        """Return the place of a child; ``items``: the child is a list's item."""
        path = f"{self.path}.{child.name}"
        return replace(self, path=path, total=None if items else self.total)

    def column(self, field: Field) -> Steps[Column]:
        """Return the steps that get the column of a field."""
        index = self.column_of.get(field.id, -1)
        if index < 0:
            message = f"field {self.path!r} (id {field.id}) has no column in this file"
            raise ArgumentError(message, where=Breadcrumb(file=self.file.source.path))
        return self.column_at(index)

    def column_at(self, index: int) -> Steps[Column]:
        """Return the steps that get a column by its number."""
        (column,) = yield from self.file.read_columns([index])
        return column

    def place(self, page: Page | None = None, number: int | None = None) -> Breadcrumb:
        """Return where to say that something is wrong."""
        extent = page.extent if page else None
        return Breadcrumb(self.file.source.path, self.path, number, extent)

    def check_total(self, column: Column) -> None:
        """Raise FormatError unless the column has the rows that it should have."""
        if self.total is not None and column.rows != self.total:
            message = f"column {column.index} has {column.rows} rows, the file {self.total}"
            raise FormatError(message, where=self.place())


def _read_node(node: _Node, field: Field, rows: Rows) -> Steps[list[pa.Array]]:
    """Return the steps that read a field with all below it."""
    column = yield from node.column(field)
    kind = field.logical_type
    first = yield from _first_encoding(node, column)
    column_encoding = column_encoding_or_values((yield from _encoding_bytes(node, column.encoding)))
    if is_blob(column_encoding):
        return (yield from _read_blobs(node, field, column, rows))
    if kind == "struct" and not isinstance(first, PackedStruct):
        return (yield from _read_struct(node, field, rows))
    if kind in _LISTS:
        return (yield from _read_lists(node, field, column, rows))
    if kind == "map" or kind.startswith("fixed_size_list:struct"):
        message = f"column of type {kind!r}, which file version 2.0 cannot hold (2.2 can)"
        raise UnsupportedError(message, where=node.place())
    if kind in VARIABLE_WIDTH and isinstance(first, List):
        return (yield from _read_early_strings(node, field, column, rows))
    stored = storage_field(field).type
    arrays = yield from _read_values(node, column, stored, rows)
    shown = field_to_arrow(field).type
    return arrays if shown is stored else [retype(array, shown) for array in arrays]


# --- values: one column -----------------------------------------------------------------------------


def _read_values(
    node: _Node, column: Column, stored: pa.DataType, rows: Rows
) -> Steps[list[pa.Array]]:
    """Return the steps that read a column of values as arrays of the type ``stored``."""
    node.check_total(column)
    pages = _pages_of(node, column, rows)
    return together([_read_page(node, column, number, stored, part) for number, part in pages])


def _read_page(
    node: _Node, column: Column, number: int, stored: pa.DataType, rows: Rows
) -> Steps[pa.Array]:
    """Return the steps that read rows of one page."""
    page = column.pages[number]
    try:
        encoding = yield from _page_encoding(node, page)
        buffers = _page_buffers(node, column, page)
        reader = CODECS.decode(encoding, buffers, rows)
        block = yield from frugal(reader, _budget(node, encoding))
        return assemble_as(block, stored)
    except LanceError as error:
        raise error.located(node.place(page, number)) from error.__cause__


def _budget(node: _Node, encoding: ArrayEncoding) -> int:
    """Return how many requests a round may make, so that two rounds make two, and one makes two."""
    return 1 if node.total is None or isinstance(encoding, Dictionary) else 2


def _pages_of(node: _Node, column: Column, rows: Rows) -> Iterator[tuple[int, Rows]]:
    """Yield the pages that hold rows, each with its own part of them, counted from its first."""
    if rows.count == 0:
        return
    if rows.end > column.rows:
        message = f"rows up to {rows.end} are asked of column {column.index}, of {column.rows} rows"
        raise FormatError(message, where=node.place())
    borders = column.first_rows
    low = int(np.searchsorted(borders, rows.starts[0], side="right")) - 1
    high = int(np.searchsorted(borders, rows.end, side="left"))
    for number in range(low, high):
        part = rows.clip(int(borders[number]), int(borders[number + 1]))
        if part.count:
            yield number, part


def _page_buffers(node: _Node, column: Column, page: Page) -> PageBuffers:
    return PageBuffers(page.rows, page.buffers, column.buffers, node.file.global_buffers)


def _encoding_bytes(node: _Node, encoding: EncodingBytes) -> Steps[bytes | None]:
    """Return the steps that get the bytes of an encoding; a round only if they lie elsewhere."""
    if encoding is None or isinstance(encoding, Direct):
        return None if encoding is None else encoding.data
    (buffer,) = yield [encoding.extent]
    data: bytes = buffer.to_pybytes()
    return data


def _page_encoding(node: _Node, page: Page) -> Steps[ArrayEncoding]:
    data = yield from _encoding_bytes(node, page.encoding)
    if data is None:
        message = "page without an encoding"
        raise FormatError(message)
    return parse_array_encoding(data)


def _first_encoding(node: _Node, column: Column) -> Steps[ArrayEncoding | None]:
    """Return the steps that get the encoding of a column's first page, which tells its kind."""
    if not column.pages:
        return None
    try:
        return (yield from _page_encoding(node, column.pages[0]))
    except LanceError as error:
        raise error.located(node.place(column.pages[0], 0)) from error.__cause__


# --- structs ----------------------------------------------------------------------------------------


def _read_struct(node: _Node, field: Field, rows: Rows) -> Steps[list[pa.Array]]:
    """Return the steps that read the children of a struct side by side."""
    shown = field_to_arrow(field).type
    struct_type = storage_type(shown)
    if not field.children:
        arrays = [pa.Array.from_buffers(struct_type, rows.count, [None])]
    else:
        readers = [_read_node(node.below(child), child, rows) for child in field.children]
        children = yield from _at_once(node, field.children, rows, together(readers))
        arrays = [
            pa.StructArray.from_arrays(list(parts), fields=list(struct_type.fields))
            for parts in align(children)
        ]
    return [array if shown is struct_type else pa.ExtensionArray.from_storage(shown, array)
            for array in arrays]


def align(columns: Sequence[Sequence[pa.Array]]) -> Iterator[tuple[pa.Array, ...]]:
    """Yield the chunks of several columns cut to equal lengths; nothing is copied."""
    if all(len(chunks) == 1 for chunks in columns):
        yield tuple(chunks[0] for chunks in columns)
        return
    borders = sorted({end for chunks in columns for end in accumulate(map(len, chunks))})
    cursors = [_Cursor(chunks) for chunks in columns]
    done = 0
    for border in borders:
        yield tuple(cursor.take(border - done) for cursor in cursors)
        done = border


class _Cursor:
    """Walks along the chunks of one column."""

    __slots__ = ("_chunks", "_number", "_used")

    def __init__(self, chunks: Sequence[pa.Array]) -> None:
        self._chunks = [chunk for chunk in chunks if len(chunk)]
        self._number = 0
        self._used = 0

    def take(self, count: int) -> pa.Array:
        """Return the next ``count`` rows, which never cross the end of a chunk."""
        chunk = self._chunks[self._number]
        part = chunk.slice(self._used, count)
        self._used += count
        if self._used == len(chunk):
            self._number, self._used = self._number + 1, 0
        return part


# --- few rows ---------------------------------------------------------------------------------------


def _at_once(node: _Node, fields: Sequence[Field], rows: Rows, reader: Steps[T]) -> Steps[T]:
    """Return ``reader``, which reads these fields; if they lie close, on bytes read all at once."""
    if not 0 < rows.count <= _FEW_ROWS:
        return reader
    extent = hull(_places(node, fields, rows))
    return reader if extent is None else prefetched(reader, extent)


def _places(node: _Node, fields: Sequence[Field], rows: Rows | None) -> Iterator[tuple[int, int]]:
    """Yield the ranges of all pages that may be read for ``rows``, or for any (None)."""
    for field in fields:
        column = node.file.known_column(node.column_of.get(field.id, -1))
        if column is not None:
            pages = column.pages if rows is None else _touched(node, column, rows)
            yield from (page.extent for page in pages if page.extent)
        yield from _places(node, field.children, None if field.logical_type in _LISTS else rows)


def _touched(node: _Node, column: Column, rows: Rows) -> Iterator[Page]:
    return (column.pages[number] for number, _ in _pages_of(node, column, rows))


# --- lists ------------------------------------------------------------------------------------------


def _read_lists(node: _Node, field: Field, column: Column, rows: Rows) -> Steps[list[pa.Array]]:
    """Return the steps that read lists, one array a page of offsets."""
    (child,) = field.children
    shown = field_to_arrow(field).type
    list_type = storage_type(shown)
    inner = node.below(child, items=True)

    def read_page(spans: Spans, items: Rows) -> Steps[pa.Array]:
        reader = _read_node(inner, child, items)
        one_round = not child.children and child.logical_type not in VARIABLE_WIDTH
        chunks = yield from reader if one_round else _at_once(inner, [child], items, reader)
        values = _join(chunks, list_type.value_type)
        array = lists_of(
            list_type, spans.rows, spans.offset_bits, spans.offsets, spans.validity, values
        )
        return array if shown is list_type else pa.ExtensionArray.from_storage(shown, array)

    return (yield from _read_list_pages(node, column, rows, read_page))


def _read_early_strings(
    node: _Node, field: Field, column: Column, rows: Rows
) -> Steps[list[pa.Array]]:
    """Return the steps that read strings that are stored as lists of bytes, in two columns."""
    stored = storage_field(field).type
    shown = field_to_arrow(field).type
    inner = replace(node, total=None)

    def read_page(spans: Spans, items: Rows) -> Steps[pa.Array]:
        bytes_column = yield from node.column_at(column.index + 1)
        chunks = yield from _read_values(inner, bytes_column, pa.uint8(), items)
        data = _join(chunks, pa.uint8()).buffers()[1] or _EMPTY
        values = VariableBlock(spans.rows, spans.offset_bits, spans.offsets, data)
        if spans.validity is None:
            return retype(assemble_as(values, stored), shown)
        return retype(assemble_as(NullableBlock(spans.rows, spans.validity, values), stored), shown)

    return (yield from _read_list_pages(node, column, rows, read_page))


def _read_list_pages(
    node: _Node, column: Column, rows: Rows, read_page: _ReadItems
) -> Steps[list[pa.Array]]:
    """Return the steps that read pages of offsets and, page by page side by side, their items."""
    node.check_total(column)
    encodings = yield from together([_list_encoding(node, page) for page in column.pages])
    first_items = [0, *accumulate(encoding.num_items for encoding in encodings)]
    readers = [
        _read_list_page(node, column, number, encodings[number], part, first_items[number], read_page)
        for number, part in _pages_of(node, column, rows)
    ]
    return (yield from together(readers))


def _list_encoding(node: _Node, page: Page) -> Steps[List]:
    encoding = yield from _page_encoding(node, page)
    if not isinstance(encoding, List):
        message = f"page of a list column encoded as {type(encoding).__name__}"
        raise FormatError(message, where=node.place(page))
    return encoding


def _read_list_page(  # noqa: PLR0913 - a page, its place in two columns, and what to do with it
    node: _Node,
    column: Column,
    number: int,
    encoding: List,
    rows: Rows,
    first_item: int,
    read_items: _ReadItems,
) -> Steps[pa.Array]:
    page = column.pages[number]
    try:
        reader = decode_list(encoding, _page_buffers(node, column, page), rows, CODECS)
        spans = yield from frugal(reader, 1)
        items = spans.contents
        if first_item + items.end >= 1 << 62:
            message = f"list page whose first item is number {first_item}"
            raise FormatError(message)
        moved = Rows(items.starts + first_item, items.ends + first_item, items.count)
        return (yield from read_items(spans, moved))
    except LanceError as error:
        raise error.located(node.place(page, number)) from error.__cause__


def _join(chunks: Sequence[pa.Array], data_type: pa.DataType) -> pa.Array:
    """Return all chunks as one array; copied only if there are several."""
    if len(chunks) == 1:
        return chunks[0]
    return pa.concat_arrays(chunks) if chunks else pa.nulls(0, data_type)


# --- blobs ------------------------------------------------------------------------------------------


def _read_blobs(node: _Node, field: Field, column: Column, rows: Rows) -> Steps[list[pa.Array]]:
    """Return the steps that read a blob column.

    A struct field gets the descriptions (position, size), a large binary field the bytes.
    """
    descriptions = yield from _read_values(node, column, DESCRIPTION_TYPE, rows)
    if field.logical_type == "struct":
        return descriptions
    stored = storage_field(field).type
    shown = field_to_arrow(field).type
    arrays = yield from together([_read_blob_bytes(node, part, stored) for part in descriptions])
    return [retype(array, shown) for array in arrays]


def _read_blob_bytes(
    node: _Node, descriptions: pa.Array, stored: pa.DataType
) -> Steps[pa.Array]:
    """Return the steps that read the bytes that descriptions point at."""
    positions, sizes = (np.asarray(descriptions.field(i)) for i in (0, 1))
    limit = node.file.source.size_bytes
    if len(sizes) and (sizes.max() > limit or (positions + sizes)[sizes > 0].max(initial=0) > limit):
        message = "blob outside the file"
        raise FormatError(message, where=node.place())
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    data = _EMPTY
    if offsets[-1]:
        filled = sizes > 0
        starts = positions[filled].astype(np.int64)
        (data,) = yield [_ranges(starts, starts + sizes[filled].astype(np.int64))]
    values = VariableBlock(len(sizes), 64, pa.py_buffer(offsets), data)
    valid = ~((sizes == 0) & (positions == NULL_POSITION))
    if valid.all():
        return assemble_as(values, stored)
    bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return assemble_as(NullableBlock(len(sizes), bitmap, values), stored)


def _ranges(starts: np.ndarray, ends: np.ndarray) -> Extent | Gather:
    if len(starts) == 1:
        return Extent(int(starts[0]), int(ends[0] - starts[0]))
    return Gather(starts, ends)
