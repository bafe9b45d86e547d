"""One node of a field's tree: its place, its column, and the pages of that column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pennon.core.fast_dataclass import dataclass
from pennon.core.units import FieldId
from pennon.encoding.page import PageBuffers
from pennon.encoding.read_protocol import Steps
from pennon.encoding.rows import Rows
from pennon.errors import ArgumentError, Breadcrumb, FormatError
from pennon.file.container.column_metadata import Column, Direct, EncodingBytes, Page
from pennon.file.container.generation import FileSource
from pennon.schema.field import Field


@dataclass(frozen=True, slots=True)
class Node:
    """The position of a reader in the tree of a field."""

    file: FileSource
    column_of: Mapping[FieldId, int]
    path: str
    """The dotted name, for messages."""
    total: int | None
    """How many rows the columns must have; None among the items of a list."""

    def below(self, child: Field, *, items: bool = False) -> Node:
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


def pages_of(node: Node, column: Column, rows: Rows) -> Iterator[tuple[int, Rows]]:
    """Yield the pages that hold rows, each with its own part of them, counted from its first."""
    if rows.count == 0:
        return
    if rows.end > column.rows:
        message = f"rows up to {rows.end} are asked of column {column.index}, of {column.rows} rows"
        raise FormatError(message, where=node.place())
    yield from rows.split(column.first_rows)


def page_buffers(node: Node, column: Column, page: Page) -> PageBuffers:
    """Return the buffers that the encoding of a page may name."""
    return PageBuffers(page.rows, page.buffers, column.buffers, node.file.global_buffers)


def encoding_bytes(encoding: EncodingBytes) -> Steps[bytes | None]:
    """Return the steps that get the bytes of an encoding; a round only if they lie elsewhere."""
    if encoding is None or isinstance(encoding, Direct):
        return None if encoding is None else encoding.data
    (buffer,) = yield [encoding.extent]
    data: bytes = buffer.to_pybytes()
    return data
