"""The protocol between column writers of a file version and the file's writer: rows gather until they are a page.

Every field at the top of the schema has a writer, which owns a column or several.  It takes arrays and
gives the *work* of pages: rows that were cut off, still to be encoded, on whatever thread.

A page is cut when more than `PageLimits.cache_bytes` have gathered, and then holds all that has,
unless that is more than ``max_page_bytes``: then it is cut into even parts.

Source: measured (pylance 14.0.2); the two limits are pylance's, which goes by the second at 2.0
only (ledger F-685).
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.encoding.v2_0.dictionary import without_unused_items
from pennon.encoding.v2_0.encodings import ColumnEncoding, Values
from pennon.file.container.write_limits import PageLimits


@dataclass(frozen=True, slots=True)
class EncodedPage:
    """A page on its way to the file; ``column`` is the number of its column.

    ``encoding`` is the message that describes the page (`pennon.file.container.wire.wrap_encoding`).
    """

    column: int
    rows: int
    encoding: bytes
    buffers: Sequence[pa.Buffer] = ()


@dataclass(frozen=True, slots=True)
class PageWork:
    """Rows that were cut off a column, still to be encoded: ``encode`` may run on any thread.

    Its result depends on the rows alone.  ``size_bytes`` is what they hold in memory.
    """

    size_bytes: int
    encode: Callable[[], Sequence[EncodedPage]]


class FieldWriter(ABC):
    """Takes a field's arrays, one batch after the other, and gives pages."""

    __slots__ = ()

    @abstractmethod
    def add(self, array: pa.Array) -> Iterator[PageWork]:
        """Take an array of the field's type; yield the work of the pages that are full."""

    @abstractmethod
    def flush(self) -> Iterator[PageWork]:
        """Yield the work of pages of all that has gathered."""

    @abstractmethod
    def own(self) -> None:
        """Copy what has gathered, so that no buffer of a batch is kept alive."""

    @abstractmethod
    def tree(self) -> Iterator[ColumnWriter]:
        """Yield the writers of the field's columns, in the order of these."""

    def finish(self) -> Iterator[PageWork]:
        """Yield what stands behind all other pages; called once, after the last `flush`."""
        return iter(())


class ColumnWriter(FieldWriter):
    """A writer of a field that has a column of its own, maybe with others below."""

    __slots__ = ()

    column: int
    encoding: ColumnEncoding

    def tree(self) -> Iterator[ColumnWriter]:
        """Yield this writer and those below it."""
        yield self

    def buffers(self) -> Sequence[pa.Buffer]:
        """Return the buffers of the column as a whole; asked when all rows were taken."""
        return ()


@dataclass(slots=True)
class ColumnTree:
    """The writers of a file's top-level fields, and the columns of all fields, depth first.

    The fields of a packed struct have no column and are not listed, as pylance does it.
    """

    writers: Sequence[FieldWriter]
    field_ids: tuple[int, ...]
    column_indices: tuple[int, ...]


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


def _joined(chunks: list[pa.Array]) -> pa.Array:
    """Return arrays as one; dictionaries that were joined may hold more items than rows."""
    array = pa.concat_arrays(chunks)
    if isinstance(array, pa.DictionaryArray) and len(array.dictionary) > len(array):
        return without_unused_items(array)
    return array


@dataclass(slots=True)
class GatheringColumn(ColumnWriter):
    """A column that gathers arrays until they are a page, and becomes pages at once then."""

    column: int
    limits: PageLimits
    encoding: ColumnEncoding = dataclasses.field(default_factory=Values, kw_only=True)
    gathered: Gathered = dataclasses.field(default_factory=Gathered, kw_only=True)

    @abstractmethod
    def encode(self, array: pa.Array) -> list[EncodedPage]:
        """Return the pages of rows that were cut off; any thread may ask."""

    def gather(self, array: pa.Array) -> Iterator[PageWork]:
        """Take an array of the type that is stored; yield the work of the pages that are full."""
        self.gathered.add(array)
        if self.gathered.size_bytes > self.limits.cache_bytes:
            for rows, size_bytes in self.cut():
                yield self.work_of(rows, size_bytes)

    def flush(self) -> Iterator[PageWork]:
        """See `FieldWriter.flush`."""
        for rows, size_bytes in self.cut():
            yield self.work_of(rows, size_bytes)

    def cut(self) -> Iterator[tuple[pa.Array, int]]:
        """Take all rows that have gathered; yield those of a page each, and their bytes."""
        is_one, size_bytes = len(self.gathered.chunks) == 1, self.gathered.size_bytes
        for array in self.gathered.take():  # Arrow lets go of the interpreter's lock to count bytes
            yield from _parts(
                array, size_bytes if is_one else array.nbytes, self.limits.max_page_bytes
            )

    def work_of(self, rows: pa.Array, size_bytes: int) -> PageWork:
        """Return the work of encoding a page of rows, which hold so many bytes."""
        return PageWork(size_bytes, partial(self.encode, rows))

    def own(self) -> None:
        """See `FieldWriter.own`."""
        self.gathered.own()


def _parts(array: pa.Array, size_bytes: int, most_bytes: int) -> Iterator[tuple[pa.Array, int]]:
    """Cut an array of so many bytes into as many parts of even length as it has multiples of ``most_bytes``.

    Yields them and their bytes.
    """
    count = max(min(-(-size_bytes // most_bytes), len(array)), 1)
    if count == 1 and len(array):
        yield array, size_bytes
        return
    rows = -(-len(array) // count)
    for start in range(0, len(array), max(rows, 1)):
        part = array.slice(start, rows)
        yield part, part.nbytes
