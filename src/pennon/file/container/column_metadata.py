"""The metadata of a column: its pages, where their buffers lie, how each is encoded.

::

    ColumnMetadata   encoding of the column, buffers of the column, pages
    Page             number of rows, encoding, buffers (positions and sizes, side by side)
    Encoding         none, or an ``Any`` message that is direct (in place) or indirect (elsewhere)

A kernel takes the message apart; a page is made of its numbers when it is looked at.  Sizes are checked
here once, so that nothing behind this module asks for bytes outside the file.

Source: seed 001 and `protos/pennon/proto/file2.proto`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias, overload

from pennon.core.byte_ranges import ByteRange, Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.errors import FormatError
from pennon.file.container.footer import MAX_ROWS
from pennon.file.kernels.column_metadata import find_pages

_U64: Final = 1 << 64


@dataclass(frozen=True, slots=True)
class Direct:
    """A serialized encoding (an ``Any`` message) that stands in the metadata itself."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Indirect:
    """A serialized encoding that stands elsewhere in the file."""

    extent: ByteRange


EncodingBytes: TypeAlias = Direct | Indirect | None


@dataclass(frozen=True, slots=True)
class Page:
    """One page: some rows of a column."""

    rows: int
    priority: int
    encoding: EncodingBytes
    buffers: tuple[ByteRange, ...]

    @property
    def extent(self) -> tuple[int, int] | None:
        """Return the range of bytes that the page's buffers span."""
        if not self.buffers:
            return None
        return min(b.position for b in self.buffers), max(b.end for b in self.buffers)


class Pages(Sequence[Page]):
    """The pages of a column, each made of its numbers when it is first looked at."""

    __slots__ = ("_data", "_extents", "_made", "_numbers")

    def __init__(self, data: bytes, numbers: Int64Array, extents: Int64Array) -> None:
        """Take what `find_pages` gives for the message ``data``."""
        self._data = data
        self._numbers = numbers
        self._extents = extents
        self._made: dict[int, Page] = {}

    def __len__(self) -> int:
        """Return the number of pages."""
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> Page: ...
    @overload
    def __getitem__(self, index: slice) -> list[Page]: ...
    def __getitem__(self, index: int | slice) -> Page | list[Page]:
        """Return one page, or some."""
        if isinstance(index, slice):
            return [self[number] for number in range(len(self))[index]]
        found = self._made.get(index)
        return found or self._made.setdefault(index, self._make(index))

    def _make(self, index: int) -> Page:
        rows, priority, kind, start, end, first, count = self._numbers[index].tolist()
        encoding = _encoding(self._data, kind, start, end)
        return Page(rows, priority % _U64, encoding, _extents(self._extents, first, count))


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One column: ``first_rows`` has the number of each page's first row, and the total at last.

    ``extents`` are the positions and sizes of all buffers, its own and those of its pages.
    """

    index: int
    encoding: EncodingBytes
    pages: Sequence[Page]
    buffers: tuple[ByteRange, ...]
    first_rows: Int64Array
    extents: Int64Array

    @property
    def rows(self) -> int:
        """Return the number of rows (of items, if it is the column of a list's items)."""
        return int(self.first_rows[-1])

    @property
    def size_bytes(self) -> int:
        """Return how many bytes of the file its buffers take."""
        return int(self.extents[:, 1].sum())


def parse_column(index: int, data: bytes, size_bytes: int) -> Column:
    """Return column ``index`` from its ``ColumnMetadata``; the file has ``size_bytes``.

    Raises FormatError if the bytes are no such message or point outside the file.
    """
    try:
        pages, extents, first_rows, own = find_pages(data, size_bytes, MAX_ROWS)
    except ValueError as error:
        raise FormatError(str(error)) from None
    kind, start, end, first, count = own
    buffers = _extents(extents, first, count)
    encoding = _encoding(data, kind, start, end)
    return Column(index, encoding, Pages(data, pages, extents), buffers, first_rows, extents)


def _extents(extents: Int64Array, first: int, count: int) -> tuple[ByteRange, ...]:
    if not count:
        return ()
    return tuple([ByteRange(*both) for both in extents[first : first + count].tolist()])


def _encoding(data: bytes, kind: int, start: int, end: int) -> EncodingBytes:
    """Return an encoding by its three numbers; see `find_pages`."""
    if kind == 1:
        return Direct(data[start:end])
    return Indirect(ByteRange(start, end)) if kind == 2 else None
