"""The writers of columns of version 2.0: one a field, in a tree like that of the fields.

Each owns one column of the file (the fields of a packed struct have none):

    ====================  ===============================================  =======================
    field                 column                                           children
    ====================  ===============================================  =======================
    struct                one page without buffers, written at the end     one writer each
    list                  pages of offsets                                 a writer of items
    blob                  pages of descriptions, values between the pages
    anything else         pages of values
    ====================  ===============================================  =======================

A page of offsets that is cut cuts its items too, for readers want a page of items to belong to one
page of offsets.

Source: measured (pylance 14.0.2).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.encoding.blobs import encode_blobs
from pennon.encoding.v2_0.choose import encode_page
from pennon.encoding.v2_0.encodings import Blob, ColumnEncoding, Encoded, SimpleStruct, Values
from pennon.encoding.v2_0.list import encode_list, part_lists
from pennon.errors import Breadcrumb, LanceError
from pennon.file.container.arrays import check_array, child_array
from pennon.file.container.column_writer import (
    ColumnWriter,
    EncodedPage,
    Gathered,
    GatheringColumn,
    PageWork,
)
from pennon.file.container.write_limits import PageLimits
from pennon.file.v2_0.page_encoding import serialize_page_encoding
from pennon.schema.check import null_struct_error
from pennon.schema.field import Field
from pennon.schema.version import V2_0


@dataclass(slots=True)
class ValueColumn(GatheringColumn):
    """A column whose pages hold the values themselves."""

    field: Field
    path: str

    def add(self, array: pa.Array) -> Iterator[PageWork]:
        """See `FieldWriter.add`."""
        return self.gather(check_array(array, self.field, self.path))

    def encode(self, array: pa.Array) -> list[EncodedPage]:
        """See `GatheringColumn.encode`."""
        try:
            encoded = encode_page(array, self.field.metadata)
        except LanceError as error:
            raise error.located(Breadcrumb(column=self.path)) from error
        return [_page(self.column, len(array), encoded)]


@dataclass(slots=True)
class BlobColumn(ColumnWriter):
    """A column of large values: ``write`` puts them into the file, pages say where they are."""

    column: int
    field: Field
    path: str
    descriptions: ValueColumn
    write: Callable[[pa.Buffer], int]
    encoding: ColumnEncoding = dataclasses.field(default_factory=lambda: Blob(Values()))

    def add(self, array: pa.Array) -> Iterator[PageWork]:
        """See `FieldWriter.add`."""
        array = check_array(array, self.field, self.path)
        return self.descriptions.gather(encode_blobs(array, self.write))

    def flush(self) -> Iterator[PageWork]:
        """See `FieldWriter.flush`."""
        return self.descriptions.flush()

    def own(self) -> None:
        """See `FieldWriter.own`; descriptions are our own already."""


@dataclass(slots=True)
class StructColumn(ColumnWriter):
    """A struct's header column, which holds no data, and the columns of its fields."""

    column: int
    field: Field
    path: str
    children: list[ColumnWriter]
    encoding: ColumnEncoding = dataclasses.field(default_factory=Values)
    rows: int = 0

    def add(self, array: pa.Array) -> Iterator[PageWork]:
        """See `FieldWriter.add`.  Raises UnsupportedError if a struct is NULL."""
        array = check_array(array, self.field, self.path)
        if array.null_count:
            raise null_struct_error(self.path, array.null_count, V2_0)
        self.rows += len(array)
        for child, below in zip(self.children, self.field.children, strict=True):
            yield from child.add(child_array(array, below.name, self.path))

    def flush(self) -> Iterator[PageWork]:
        """See `FieldWriter.flush`."""
        for child in self.children:
            yield from child.flush()

    def finish(self) -> Iterator[PageWork]:
        """See `FieldWriter.finish`.  The page is written for no rows, too: pylance needs it."""
        page = _page(self.column, self.rows, Encoded(SimpleStruct()))
        yield PageWork(0, lambda: [page])
        for child in self.children:
            yield from child.finish()

    def own(self) -> None:
        """See `FieldWriter.own`."""
        for child in self.children:
            child.own()

    def tree(self) -> Iterator[ColumnWriter]:
        """See `FieldWriter.tree`."""
        yield self
        for child in self.children:
            yield from child.tree()


@dataclass(slots=True)
class ListColumn(ColumnWriter):
    """A column of list offsets, and the columns of the items.

    The items of a batch go to their own writer at once; what gathers here are the lengths.
    """

    column: int
    field: Field
    path: str
    limits: PageLimits
    items: ColumnWriter
    encoding: ColumnEncoding = dataclasses.field(default_factory=Values)
    gathered: Gathered = dataclasses.field(default_factory=Gathered)

    def add(self, array: pa.Array) -> Iterator[PageWork]:
        """See `FieldWriter.add`."""
        lengths, items = part_lists(check_array(array, self.field, self.path))
        self.gathered.add(lengths)
        yield from self.items.add(items)
        if self.gathered.size_bytes > self.limits.cache_bytes:
            yield from self.flush()

    def flush(self) -> Iterator[PageWork]:
        """See `FieldWriter.flush`."""
        for lengths in self.gathered.take():
            yield PageWork(lengths.nbytes, partial(self._encode, lengths))
        yield from self.items.flush()

    def finish(self) -> Iterator[PageWork]:
        """See `FieldWriter.finish`."""
        return self.items.finish()

    def own(self) -> None:
        """See `FieldWriter.own`; lengths are our own already."""
        self.items.own()

    def tree(self) -> Iterator[ColumnWriter]:
        """See `FieldWriter.tree`."""
        yield self
        yield from self.items.tree()

    def _encode(self, lengths: pa.Array) -> list[EncodedPage]:
        return [_page(self.column, len(lengths), encode_list(lengths))]


def _page(column: int, rows: int, encoded: Encoded) -> EncodedPage:
    return EncodedPage(column, rows, serialize_page_encoding(encoded.encoding), encoded.buffers)
