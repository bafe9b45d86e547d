"""Reading fields of files of version 0.1.

A field is a tree of nodes, made once.  Each node takes the rows that are wanted of it, of all row
groups at once (`pennon.encoding.v0_1.picks`), and makes one array of them:

    values, strings, dictionaries    the rows of the field's own pages
    struct                           no pages; the children have the same rows
    list                             pages of offsets, which say which items of the child to read
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from pennon.core.units import ColumnIndex, FieldId
from pennon.encoding.read_protocol import Steps, together
from pennon.encoding.rows import Rows
from pennon.encoding.v0_1.pages import Pages
from pennon.encoding.v0_1.picks import Picks
from pennon.errors import ArgumentError, Breadcrumb, LanceError, TooLargeError, UnsupportedError
from pennon.file.container.generation import Generation
from pennon.file.v0_1.file import RowGroupFile
from pennon.file.v0_1.nodes import (
    BinaryNode,
    DictionaryNode,
    ListNode,
    Node,
    NullNode,
    PlainNode,
    StructNode,
)
from pennon.schema.arrow import field_to_arrow, storage_field
from pennon.schema.field import Field
from pennon.schema.types import storage_type

_LISTS = frozenset(("list", "list.struct", "large_list", "large_list.struct"))
_BYTES = frozenset(("string", "binary", "large_string", "large_binary", "json"))


class FieldReader:
    """See `pennon.file.container.opened_file.OpenedFile.field_reader`; the tree of nodes is made by the first read."""

    __slots__ = ("_column_of", "_field", "_file", "_node")

    def __init__(self, file: RowGroupFile, field: Field, column_of: Mapping[FieldId, int]) -> None:
        self._file = file
        self._field = field
        self._column_of = column_of
        self._node: Node | None = None

    def __call__(self, rows: Rows) -> Steps[list[pa.Array]]:
        """Return the steps that read rows."""
        file = self._file
        if len(rows.starts) and (rows.ends[-1] > file.num_rows or rows.starts[0] < 0):
            message = f"rows up to {rows.end} of a file that has {file.num_rows} rows"
            raise ArgumentError(message, where=Breadcrumb(file=file.source.path))
        try:
            node = self._node
            if node is None:
                node = self._node = yield from self._make_node()
            return (yield from _read_parts(node, Picks.of(rows, file.metadata.borders)))
        except LanceError as error:
            place = Breadcrumb(file=file.source.path, column=self._field.name)
            raise error.located(place) from error.__cause__

    def _make_node(self) -> Steps[Node]:
        """Return the steps that find the pages of the field and of all below it."""
        fields = [each for each in self._field.walk() if each.logical_type != "struct"]
        places = [self._column_of.get(each.id, -1) for each in fields]
        for each, place in zip(fields, places, strict=True):
            if place < 0:
                message = f"field {each.name!r} (id {each.id}) has no pages in this file"
                raise ArgumentError(message)
        found = yield from self._file.read_pages(places)
        pages = {each.id: its for each, its in zip(fields, found, strict=True)}
        return (yield from node_of(self._file, self._field, pages))


def _read_parts(node: Node, picks: Picks) -> Steps[list[pa.Array]]:
    """Return the steps that read rows as one array, or as several if one cannot count so many bytes."""
    try:
        return [(yield from node.read(picks))]
    except TooLargeError:
        halves = picks.halves()
        if halves is None:
            raise
    first = yield from _read_parts(node, halves[0])
    return first + (yield from _read_parts(node, halves[1]))


def node_of(file: RowGroupFile, field: Field, pages: Mapping[FieldId, Pages]) -> Steps[Node]:
    """Return the steps that make the node of a field; dictionaries are read on the way."""
    kind = field.logical_type
    shown = field_to_arrow(field).type
    stored = storage_field(field).type
    if kind == "struct":
        parts = yield from together([node_of(file, each, pages) for each in field.children])
        return StructNode(storage_type(shown), shown, tuple(parts))
    mine = pages[field.id]
    if kind in _LISTS:
        (child,) = field.children
        item = yield from node_of(file, child, pages)
        return ListNode(mine, storage_type(shown), shown, item)
    if kind.startswith("dict:"):
        return (yield from _dictionary_node(file, field, mine))
    if kind == "null":
        return NullNode(mine)
    if kind in _BYTES:
        return BinaryNode(mine, stored, shown, field.nullable)
    if kind == "map" or kind.startswith("fixed_size_list:struct"):
        message = f"column of type {kind!r}, which file version 0.1 cannot hold (2.2 can)"
        raise UnsupportedError(message)
    return PlainNode.of(mine, stored, shown)


def _dictionary_node(file: RowGroupFile, field: Field, pages: Pages) -> Steps[Node]:
    data_type = field_to_arrow(field).type
    values = yield from file.read_dictionary(field, data_type)
    indices = PlainNode.of(pages, data_type.index_type, data_type.index_type)
    return DictionaryNode(indices, values, data_type)


def columns_of_schema(file: RowGroupFile) -> Mapping[FieldId, ColumnIndex]:
    """Return the row of the page table of each field of the file's own schema."""
    ids = [field.id for field in file.schema.walk()]
    first = min(ids, default=0)
    return {FieldId(each): ColumnIndex(each - first) for each in ids}


COLUMNS: Final[Generation[RowGroupFile]] = Generation(FieldReader, columns_of_schema)
"""How files of version 0.1 are read, but for their statistics."""
