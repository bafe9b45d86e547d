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
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Final, TypeAlias, TypeVar

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.core.memory import current_pool
from pennon.core.units import FieldId
from pennon.encoding.assemble import assemble_as, lists_of, retype
from pennon.encoding.block import NullableBlock, VariableBlock
from pennon.encoding.coalesce import FEW_ROWS, coalesce_requests, hull, prefetched
from pennon.encoding.read_protocol import Steps, together
from pennon.encoding.rows import Rows
from pennon.encoding.v2_0.codecs import CODECS
from pennon.encoding.v2_0.encodings import List, PackedStruct, is_blob
from pennon.encoding.v2_0.list import decode_list
from pennon.encoding.v2_0.offsets import Spans
from pennon.errors import ArgumentError, Breadcrumb, FormatError, LanceError, UnsupportedError
from pennon.file.container.column_encoding import column_encoding_or_values
from pennon.file.container.column_metadata import Column, Page
from pennon.file.container.generation import FileSource, Generation
from pennon.file.container.node import Node, encoding_bytes, page_buffers, pages_of
from pennon.file.container.opened_file import ReadRows
from pennon.file.v2_0.layout import VARIABLE_WIDTH, columns_of_schema, is_packed
from pennon.file.v2_0.page_encoding import first_encoding, page_encoding
from pennon.file.v2_0.values import read_blobs, read_values
from pennon.schema.arrow import field_to_arrow, storage_field
from pennon.schema.field import Field
from pennon.schema.types import storage_type

_LISTS = frozenset(("list", "list.struct", "large_list", "large_list.struct"))
_EMPTY = pa.py_buffer(b"")
T = TypeVar("T")
_ReadItems: TypeAlias = Callable[[Spans, Rows], Steps[pa.Array]]


def read_field(
    file: FileSource, field: Field, column_of: Mapping[FieldId, int], rows: Rows
) -> Steps[list[pa.Array]]:
    """Return the steps of `pennon.file.container.opened_file.OpenedFile.read_field`."""
    if rows.end > file.num_rows or (len(rows.starts) and rows.starts[0] < 0):
        message = f"rows up to {rows.end} of a file that has {file.num_rows} rows"
        raise ArgumentError(message, where=Breadcrumb(file=file.source.path))
    try:
        return (yield from _read_tree(file, field, column_of, rows))
    except LanceError as error:
        place = Breadcrumb(file=file.source.path, column=field.name)
        raise error.located(place) from error.__cause__


def _read_tree(
    file: FileSource, field: Field, column_of: Mapping[FieldId, int], rows: Rows
) -> Steps[list[pa.Array]]:
    known = [column_of[each.id] for each in field.walk() if column_of.get(each.id, -1) >= 0]
    yield from file.read_columns(known)
    return (yield from _read_node(Node(file, column_of, field.name, file.num_rows), field, rows))


def _read_node(node: Node, field: Field, rows: Rows) -> Steps[list[pa.Array]]:
    """Return the steps that read a field with all below it."""
    column = yield from node.column(field)
    kind = field.logical_type
    first = yield from first_encoding(node, column)
    column_encoding = column_encoding_or_values((yield from encoding_bytes(column.encoding)))
    if is_blob(column_encoding):
        return (yield from read_blobs(node, field, column, rows))
    packed = isinstance(first, PackedStruct) or (first is None and is_packed(field))
    if kind == "struct" and not packed:
        return (yield from _read_struct(node, field, rows))
    if kind in _LISTS:
        return (yield from _read_lists(node, field, column, rows))
    if kind == "map" or kind.startswith("fixed_size_list:struct"):
        message = f"column of type {kind!r}, which file version 2.0 cannot hold (2.2 can)"
        raise UnsupportedError(message, where=node.place())
    if kind in VARIABLE_WIDTH and isinstance(first, List):
        return (yield from _read_early_strings(node, field, column, rows))
    stored = storage_field(field).type
    arrays = yield from read_values(node, column, stored, rows)
    shown = field_to_arrow(field).type
    return arrays if shown is stored else [retype(array, shown) for array in arrays]


def _field_reader(file: FileSource, field: Field, column_of: Mapping[FieldId, int]) -> ReadRows:
    return partial(read_field, file, field, column_of)


COLUMNS: Final[Generation[FileSource]] = Generation(_field_reader, columns_of_schema)
"""How files of version 2.0 are read, but for their zone maps, which are such files themselves."""


# --- structs ----------------------------------------------------------------------------------------


def _read_struct(node: Node, field: Field, rows: Rows) -> Steps[list[pa.Array]]:
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
    if shown is struct_type:
        return arrays
    return [pa.ExtensionArray.from_storage(shown, array) for array in arrays]


# --- few rows ---------------------------------------------------------------------------------------


def _at_once(node: Node, fields: Sequence[Field], rows: Rows, reader: Steps[T]) -> Steps[T]:
    """Return ``reader``, which reads these fields; if they lie close, on bytes read all at once."""
    if not 0 < rows.count <= FEW_ROWS:
        return reader
    extent = hull(_places(node, fields, rows))
    return reader if extent is None else prefetched(reader, extent)


def _places(node: Node, fields: Sequence[Field], rows: Rows | None) -> Iterator[tuple[int, int]]:
    """Yield the ranges of all pages that may be read for ``rows``, or for any (None)."""
    for field in fields:
        column = node.file.known_column(node.column_of.get(field.id, -1))
        if column is not None:
            pages = column.pages if rows is None else _touched(node, column, rows)
            yield from (page.extent for page in pages if page.extent)
        yield from _places(node, field.children, None if field.logical_type in _LISTS else rows)


def _touched(node: Node, column: Column, rows: Rows) -> Iterator[Page]:
    return (column.pages[number] for number, _ in pages_of(node, column, rows))


# --- lists ------------------------------------------------------------------------------------------


def _read_lists(node: Node, field: Field, column: Column, rows: Rows) -> Steps[list[pa.Array]]:
    """Return the steps that read lists, one array a page of offsets."""
    (child,) = field.children
    shown = field_to_arrow(field).type
    list_type = storage_type(shown)
    inner = node.below(child, items=True)

    def read_page(spans: Spans, items: Rows) -> Steps[pa.Array]:
        reader = _read_node(inner, child, items)
        one_round = not child.children and child.logical_type not in VARIABLE_WIDTH
        chunks = yield from reader if one_round else _at_once(inner, [child], items, reader)
        values = join(chunks, list_type.value_type)
        array = lists_of(
            list_type, spans.rows, spans.offset_bits, spans.offsets, spans.validity, values
        )
        return array if shown is list_type else pa.ExtensionArray.from_storage(shown, array)

    return (yield from _read_list_pages(node, column, rows, read_page))


def _read_early_strings(
    node: Node, field: Field, column: Column, rows: Rows
) -> Steps[list[pa.Array]]:
    """Return the steps that read strings that are stored as lists of bytes, in two columns."""
    stored = storage_field(field).type
    shown = field_to_arrow(field).type
    inner = replace(node, total=None)

    def read_page(spans: Spans, items: Rows) -> Steps[pa.Array]:
        bytes_column = yield from node.column_at(column.index + 1)
        chunks = yield from read_values(inner, bytes_column, pa.uint8(), items)
        data = join(chunks, pa.uint8()).buffers()[1] or _EMPTY
        values = VariableBlock(spans.rows, spans.offset_bits, spans.offsets, data)
        if spans.validity is None:
            return retype(assemble_as(values, stored), shown)
        return retype(assemble_as(NullableBlock(spans.rows, spans.validity, values), stored), shown)

    return (yield from _read_list_pages(node, column, rows, read_page))


def _read_list_pages(
    node: Node, column: Column, rows: Rows, read_page: _ReadItems
) -> Steps[list[pa.Array]]:
    """Return the steps that read pages of offsets and, page by page side by side, their items."""
    node.check_total(column)
    encodings = yield from together([_list_encoding(node, page) for page in column.pages])
    first_items = [0, *accumulate(encoding.num_items for encoding in encodings)]
    readers = []
    for number, part in pages_of(node, column, rows):
        page = _ListPage(column, number, encodings[number], first_items[number])
        readers.append(_read_list_page(node, page, part, read_page))
    return (yield from together(readers))


@dataclass(frozen=True, slots=True)
class _ListPage:
    """A page of list offsets; its item 0 is row ``first_item`` of the item column."""

    column: Column
    number: int
    encoding: List
    first_item: int


def _list_encoding(node: Node, page: Page) -> Steps[List]:
    encoding = yield from page_encoding(page)
    if not isinstance(encoding, List):
        message = f"page of a list column encoded as {type(encoding).__name__}"
        raise FormatError(message, where=node.place(page))
    return encoding


def _read_list_page(
    node: Node, lists: _ListPage, rows: Rows, read_items: _ReadItems
) -> Steps[pa.Array]:
    """Return the steps that read rows of one page of offsets, then their items."""
    page, first_item = lists.column.pages[lists.number], lists.first_item
    try:
        buffers = page_buffers(node, lists.column, page)
        spans = yield from coalesce_requests(decode_list(lists.encoding, buffers, rows, CODECS), 1)
        items = spans.contents
        if first_item + items.end >= 1 << 62:
            message = f"list page whose first item is number {first_item}"
            raise FormatError(message)
        moved = Rows(items.starts + first_item, items.ends + first_item, items.count)
        return (yield from read_items(spans, moved))
    except LanceError as error:
        raise error.located(node.place(page, lists.number)) from error.__cause__


# --- chunks: a column read from several pages is several arrays -----------------------------------


def align(columns: Sequence[Sequence[pa.Array]]) -> Iterator[tuple[pa.Array, ...]]:
    """Yield the chunks of several columns cut to equal lengths; nothing is copied."""
    if all(len(chunks) == 1 for chunks in columns):
        yield tuple(chunks[0] for chunks in columns)
        return
    borders = sorted({end for chunks in columns for end in accumulate(map(len, chunks)) if end})
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


def join(chunks: Sequence[pa.Array], data_type: pa.DataType) -> pa.Array:
    """Return all chunks as one array; copied only if there are several."""
    if len(chunks) == 1:
        return chunks[0]
    return pa.concat_arrays(chunks, current_pool()) if chunks else pa.nulls(0, data_type)
