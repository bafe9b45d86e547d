"""Cutting a column into pages: rows gather until there are enough, then become a page.

Each field of the schema has a writer; together they are a tree like the fields, and each owns one
column of the file (the fields of a packed struct have none):

    ====================  ===============================================  =======================
    field                 column                                           children
    ====================  ===============================================  =======================
    struct                one page without buffers, written at the end     one writer each
    list                  pages of offsets                                 a writer of items
    blob                  pages of descriptions, values between the pages
    anything else         pages of values
    ====================  ===============================================  =======================

A page is cut when more than `PageLimits.cache_bytes` have gathered, and then holds all that has,
unless that is more than ``max_page_bytes``: then it is cut into even parts.  A page of offsets that
is cut cuts its items too, for readers want a page of items to belong to one page of offsets.

Source: measured (pylance 14.0.2); the two limits are the oracle's.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, Protocol

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.core.units import MIB
from pennon.encoding.blobs import encode_blobs
from pennon.encoding.v2_0.choose import encode_page
from pennon.encoding.v2_0.dictionary import without_unused_items
from pennon.encoding.v2_0.encodings import Blob, ColumnEncoding, Encoded, SimpleStruct, Values
from pennon.encoding.v2_0.list import encode_list, part_lists
from pennon.encoding.v2_1.page import EncodedPage as EncodedLayout
from pennon.errors import Breadcrumb, LanceError
from pennon.file.container.arrays import check_array, child_array
from pennon.schema.check import null_struct_error
from pennon.schema.field import Field
from pennon.schema.version import V2_0

DEFAULT_CACHE_BYTES: Final = 8 * MIB
DEFAULT_MAX_PAGE_BYTES: Final = 32 * MIB


@dataclass(frozen=True, slots=True)
class PageLimits:
    """How much of a column gathers before a page is cut, and how much a page may hold."""

    cache_bytes: int = DEFAULT_CACHE_BYTES
    max_page_bytes: int = DEFAULT_MAX_PAGE_BYTES
    rows_per_zone: int | None = None
    """Columns of values get a zone map of so many rows a zone (version 2.0)."""


@dataclass(frozen=True, slots=True)
class EncodedPage:
    """A page on its way to the file; ``column`` is the number of its column."""

    column: int
    rows: int
    encoded: Encoded | EncodedLayout


@dataclass(frozen=True, slots=True)
class PageWork:
    """Rows that were cut off a column, still to be encoded: ``encode`` may run on any thread.

    Its result depends on the rows alone.  ``size_bytes`` is what they hold in memory.
    """

    size_bytes: int
    encode: Callable[[], Sequence[EncodedPage]]


class ColumnWriter(Protocol):
    """Takes a field's arrays, one batch after the other, and gives pages."""

    column: int
    encoding: ColumnEncoding

    def add(self, array: pa.Array) -> Iterator[PageWork]:
        """Take an array of the field's type; yield the work of the pages that are full."""
        ...

    def flush(self) -> Iterator[PageWork]:
        """Yield the work of pages of all that has gathered."""
        ...

    def finish(self) -> Iterator[PageWork]:
        """Yield what stands behind all other pages; called once, after the last `flush`."""
        ...

    def own(self) -> None:
        """Copy what has gathered, so that no buffer of a batch is kept alive."""
        ...

    def tree(self) -> Iterator[ColumnWriter]:
        """Yield this writer and those below it, in the order of their columns."""
        ...


@dataclass(slots=True)
class Gathered:
    """Arrays that wait to become a page."""

    chunks: list[pa.Array] = dataclasses.field(default_factory=list)
    size_bytes: int = 0

    def add(self, array: pa.Array) -> None:
        """Put an array behind the others."""
        self.chunks.append(array)
        self.size_bytes += array.nbytes

    def take(self) -> list[pa.Array]:
        """Return all rows and begin anew: one array, unless Arrow cannot join what has gathered."""
        chunks, self.chunks, self.size_bytes = self.chunks, [], 0
        if len(chunks) < 2:
            return chunks
        try:
            return [_joined(chunks)]
        except pa.ArrowInvalid:  # 32-bit offsets or dictionary indices do not reach
            return chunks

    def own(self) -> None:
        """Replace the arrays by copies."""
        size_bytes = self.size_bytes
        whole = self.take()
        self.chunks = [pa.concat_arrays([array]) for array in whole]
        self.size_bytes = size_bytes


@dataclass(slots=True)
class GatheringColumn(ABC):
    """A column that gathers arrays until they are a page, and becomes pages at once then."""

    column: int
    limits: PageLimits
    encoding: ColumnEncoding = dataclasses.field(default_factory=Values, kw_only=True)
    gathered: Gathered = dataclasses.field(default_factory=Gathered, kw_only=True)

    @abstractmethod
    def add(self, array: pa.Array) -> Iterator[PageWork]:
        """See `ColumnWriter.add`."""

    @abstractmethod
    def encode(self, array: pa.Array) -> list[EncodedPage]:
        """Return the pages of rows that were cut off; any thread may ask."""

    def gather(self, array: pa.Array) -> Iterator[PageWork]:
        """Take an array of the type that is stored; yield the work of the pages that are full."""
        self.gathered.add(array)
        if self.gathered.size_bytes > self.limits.cache_bytes:
            yield from self.flush()

    def flush(self) -> Iterator[PageWork]:
        """See `ColumnWriter.flush`."""
        for array in self.gathered.take():
            for part in parts(array, self.limits.max_page_bytes):
                yield PageWork(part.nbytes, partial(self.encode, part))

    def finish(self) -> Iterator[PageWork]:
        """See `ColumnWriter.finish`."""
        return iter(())

    def own(self) -> None:
        """See `ColumnWriter.own`."""
        self.gathered.own()

    def tree(self) -> Iterator[ColumnWriter]:
        """See `ColumnWriter.tree`."""
        yield self


@dataclass(slots=True)
class ValueColumn(GatheringColumn):
    """A column whose pages hold the values themselves."""

    field: Field
    path: str

    def add(self, array: pa.Array) -> Iterator[PageWork]:
        """See `ColumnWriter.add`."""
        return self.gather(check_array(array, self.field, self.path))

    def encode(self, array: pa.Array) -> list[EncodedPage]:
        """See `GatheringColumn.encode`."""
        try:
            encoded = encode_page(array, self.field.metadata)
        except LanceError as error:
            raise error.located(Breadcrumb(column=self.path)) from error
        return [EncodedPage(self.column, len(array), encoded)]


@dataclass(slots=True)
class BlobColumn:
    """A column of large values: ``write`` puts them into the file, pages say where they are."""

    column: int
    field: Field
    path: str
    descriptions: ValueColumn
    write: Callable[[pa.Buffer], int]
    encoding: ColumnEncoding = dataclasses.field(default_factory=lambda: Blob(Values()))

    def add(self, array: pa.Array) -> Iterator[PageWork]:
        """See `ColumnWriter.add`."""
        array = check_array(array, self.field, self.path)
        return self.descriptions.gather(encode_blobs(array, self.write))

    def flush(self) -> Iterator[PageWork]:
        """See `ColumnWriter.flush`."""
        return self.descriptions.flush()

    def finish(self) -> Iterator[PageWork]:
        """See `ColumnWriter.finish`."""
        return iter(())

    def own(self) -> None:
        """See `ColumnWriter.own`; descriptions are our own already."""

    def tree(self) -> Iterator[ColumnWriter]:
        """See `ColumnWriter.tree`."""
        yield self


@dataclass(slots=True)
class StructColumn:
    """A struct's header column, which holds no data, and the columns of its fields."""

    column: int
    field: Field
    path: str
    children: list[ColumnWriter]
    encoding: ColumnEncoding = dataclasses.field(default_factory=Values)
    rows: int = 0

    def add(self, array: pa.Array) -> Iterator[PageWork]:
        """See `ColumnWriter.add`.  Raises UnsupportedError if a struct is NULL."""
        array = check_array(array, self.field, self.path)
        if array.null_count:
            raise null_struct_error(self.path, array.null_count, V2_0)
        self.rows += len(array)
        for child, below in zip(self.children, self.field.children, strict=True):
            yield from child.add(child_array(array, below.name, self.path))

    def flush(self) -> Iterator[PageWork]:
        """See `ColumnWriter.flush`."""
        for child in self.children:
            yield from child.flush()

    def finish(self) -> Iterator[PageWork]:
        """See `ColumnWriter.finish`.  The page is written for no rows, too: the oracle needs it."""
        page = EncodedPage(self.column, self.rows, Encoded(SimpleStruct()))
        yield PageWork(0, lambda: [page])
        for child in self.children:
            yield from child.finish()

    def own(self) -> None:
        """See `ColumnWriter.own`."""
        for child in self.children:
            child.own()

    def tree(self) -> Iterator[ColumnWriter]:
        """See `ColumnWriter.tree`."""
        yield self
        for child in self.children:
            yield from child.tree()


@dataclass(slots=True)
class ListColumn:
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
        """See `ColumnWriter.add`."""
        lengths, items = part_lists(check_array(array, self.field, self.path))
        self.gathered.add(lengths)
        yield from self.items.add(items)
        if self.gathered.size_bytes > self.limits.cache_bytes:
            yield from self.flush()

    def flush(self) -> Iterator[PageWork]:
        """See `ColumnWriter.flush`."""
        for lengths in self.gathered.take():
            yield PageWork(lengths.nbytes, partial(self._encode, lengths))
        yield from self.items.flush()

    def finish(self) -> Iterator[PageWork]:
        """See `ColumnWriter.finish`."""
        return self.items.finish()

    def own(self) -> None:
        """See `ColumnWriter.own`; lengths are our own already."""
        self.items.own()

    def tree(self) -> Iterator[ColumnWriter]:
        """See `ColumnWriter.tree`."""
        yield self
        yield from self.items.tree()

    def _encode(self, lengths: pa.Array) -> list[EncodedPage]:
        return [EncodedPage(self.column, len(lengths), encode_list(lengths))]


def _joined(chunks: list[pa.Array]) -> pa.Array:
    """Return arrays as one; dictionaries that were joined may hold more items than rows."""
    array = pa.concat_arrays(chunks)
    if isinstance(array, pa.DictionaryArray) and len(array.dictionary) > len(array):
        return without_unused_items(array)
    return array


def parts(array: pa.Array, most_bytes: int) -> Iterator[pa.Array]:
    """Cut an array into as many parts of even length as it has multiples of ``most_bytes``."""
    count = max(min(-(-array.nbytes // most_bytes), len(array)), 1)
    rows = -(-len(array) // count)
    for start in range(0, len(array), max(rows, 1)):
        yield array.slice(start, rows)
