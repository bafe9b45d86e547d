"""Column metadata and the file descriptor: protobuf messages to values, and back.

::

    ColumnMetadata   encoding of the column, buffers of the column, pages
    Page             number of rows, encoding, buffers (positions and sizes, side by side)
    Encoding         none, or an ``Any`` message that is direct (in place) or indirect (elsewhere)
    FileDescriptor   (global buffer 0) schema and number of rows

Sizes are checked here once, so that nothing behind this module asks for bytes outside the file.

Source: seed 001 and `protos/pennon/proto/file2.proto`; that the bytes of an encoding are an ``Any``
is the oracle's (and early writers') bytes, as are the two names inside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias, overload

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError, Message

from pennon.core.byte_ranges import Extent, Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.encoding.kernels.column_metadata import find_pages
from pennon.errors import FormatError
from pennon.proto import file2_pb2, file_pb2
from pennon.schema.field import Schema
from pennon.schema.wire import serialize_schema

MAX_ROWS: Final = 1 << 62
"""Far more than any file has; keeps row arithmetic within 64 bits."""
_U64: Final = 1 << 64


@dataclass(frozen=True, slots=True)
class Direct:
    """A serialized encoding (an ``Any`` message) that stands in the metadata itself."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Indirect:
    """A serialized encoding that stands elsewhere in the file."""

    extent: Extent


EncodingBytes: TypeAlias = Direct | Indirect | None


@dataclass(frozen=True, slots=True)
class Page:
    """One page: some rows of a column."""

    rows: int
    priority: int
    encoding: EncodingBytes
    buffers: tuple[Extent, ...]

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
    buffers: tuple[Extent, ...]
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


def parse_file_descriptor(data: bytes) -> file_pb2.FileDescriptor:
    """Return the ``FileDescriptor``, its number of rows checked; its schema is still a message.

    Raises FormatError if the bytes are no such message.
    """
    message = file_pb2.FileDescriptor()
    parse_message(message, data)
    if message.length > MAX_ROWS:
        text = f"file of {message.length} rows"
        raise FormatError(text)
    return message


def parse_message(message: Message, data: bytes) -> None:
    """Fill a message.  Raises FormatError if the bytes are none of its kind."""
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        text = f"not a valid {type(message).__name__} message: {error}"
        raise FormatError(text) from error


def unwrap_encoding(data: bytes, name: str) -> bytes:
    """Return the message of an encoding inside an ``Any``, which must be of the kind ``name``.

    Raises FormatError if it is not.
    """
    message = AnyMessage()
    parse_message(message, data)
    kind = message.type_url.rpartition("/")[2].rpartition(".")[2]
    if kind != name:
        text = f"expected an encoding of kind {name}, found {message.type_url!r}"
        raise FormatError(text)
    return message.value


def wrap_encoding(name: str, data: bytes) -> bytes:
    """Return an ``Any`` message around that of an encoding; ``name`` is its package and its kind."""
    return _serialize(AnyMessage(type_url=f"/lance.{name}", value=data))


def _extents(extents: Int64Array, first: int, count: int) -> tuple[Extent, ...]:
    if not count:
        return ()
    return tuple([Extent(*both) for both in extents[first : first + count].tolist()])


def _encoding(data: bytes, kind: int, start: int, end: int) -> EncodingBytes:
    """Return an encoding by its three numbers; see `find_pages`."""
    if kind == 1:
        return Direct(data[start:end])
    return Indirect(Extent(start, end)) if kind == 2 else None


# --- values to bytes ------------------------------------------------------------------------------

PageMessage: TypeAlias = file2_pb2.ColumnMetadata.Page


def page_message(rows: int, encoding: bytes, buffers: Sequence[Extent]) -> PageMessage:
    """Return the message of a page; ``buffers`` are where its buffers lie, in their order."""
    page = PageMessage(
        buffer_offsets=[buffer.position for buffer in buffers],
        buffer_sizes=[buffer.size_bytes for buffer in buffers],
        length=rows,
    )
    page.encoding.direct.encoding = encoding
    return page


def serialize_column(
    encoding: bytes, pages: Sequence[PageMessage], buffers: Sequence[Extent] = ()
) -> bytes:
    """Return the metadata of a column; ``buffers`` are where its own buffers lie."""
    message = file2_pb2.ColumnMetadata(
        pages=pages,
        buffer_offsets=[buffer.position for buffer in buffers],
        buffer_sizes=[buffer.size_bytes for buffer in buffers],
    )
    message.encoding.direct.encoding = encoding
    return _serialize(message)


def serialize_file_descriptor(schema: Schema, num_rows: int) -> bytes:
    """Return global buffer 0."""
    return _serialize(file_pb2.FileDescriptor(schema=serialize_schema(schema), length=num_rows))


def _serialize(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)
