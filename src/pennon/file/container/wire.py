"""Column metadata and the file descriptor: protobuf messages to values.

::

    ColumnMetadata   encoding of the column, buffers of the column, pages
    Page             number of rows, encoding, buffers (positions and sizes, side by side)
    Encoding         none, or an ``Any`` message that is direct (in place) or indirect (elsewhere)
    FileDescriptor   (global buffer 0) schema and number of rows

Sizes are checked here once, so that nothing behind this module asks for bytes outside the file.

Source: seed 001 and `protos/pennon/proto/file2.proto`; that the bytes of an encoding are an ``Any``
is the oracle's (and early writers') bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias, overload

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError, Message

from pennon.core.byte_ranges import Extent, Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.encoding.kernels.column_metadata import find_pages
from pennon.errors import FormatError, UnsupportedError
from pennon.proto import file_pb2

if TYPE_CHECKING:
    from pennon.encoding.v2_0.encodings import ArrayEncoding, ColumnEncoding
    from pennon.encoding.v2_1.layouts import Layout

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
    _parse(message, data)
    if message.length > MAX_ROWS:
        text = f"file of {message.length} rows"
        raise FormatError(text)
    return message


@lru_cache(maxsize=1024)
def parse_array_encoding(data: bytes) -> ArrayEncoding:
    """Return the array encoding in an ``Any`` message; pages of a column mostly repeat it."""
    from pennon.encoding.v2_0 import wire  # noqa: PLC0415 - for files of its version only, as below

    return wire.parse_array_encoding(_unwrap(data, "ArrayEncoding"))


@lru_cache(maxsize=1024)
def parse_page_layout(data: bytes) -> Layout:
    """Return the layout of a page of version 2.1 or 2.2 in an ``Any`` message."""
    from pennon.encoding.v2_1 import wire  # noqa: PLC0415

    return wire.parse_page_layout(_unwrap(data, "PageLayout"))


@lru_cache(maxsize=64)
def parse_column_encoding(data: bytes) -> ColumnEncoding:
    """Return the column encoding in an ``Any`` message."""
    from pennon.encoding.v2_0 import wire  # noqa: PLC0415

    return wire.parse_column_encoding(_unwrap(data, "ColumnEncoding"))


def parse_encoding_message(data: bytes) -> Message:
    """Return the message in an ``Any`` message that describes a page, whatever it says.

    Raises UnsupportedError for messages of another kind, FormatError if it is no such message.
    """
    from pennon.proto import encodings_v2_0_pb2, encodings_v2_1_pb2  # noqa: PLC0415

    messages: dict[str, type[Message]] = {
        "/lance.encodings.ArrayEncoding": encodings_v2_0_pb2.ArrayEncoding,
        "/lance.encodings21.PageLayout": encodings_v2_1_pb2.PageLayout,
    }
    wrapped = AnyMessage()
    _parse(wrapped, data)
    kind = messages.get(wrapped.type_url)
    if kind is None:
        text = f"type_url={wrapped.type_url}"
        raise UnsupportedError(text)
    message = kind()
    _parse(message, wrapped.value)
    return message


def column_encoding_or_values(data: bytes | None) -> ColumnEncoding:
    """Return the encoding of a column; one that says nothing holds plain values."""
    from pennon.encoding.v2_0.encodings import Values  # noqa: PLC0415

    return Values() if data is None else parse_column_encoding(data)


def _parse(message: Message, data: bytes) -> None:
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        text = f"not a valid {type(message).__name__} message: {error}"
        raise FormatError(text) from error


def _unwrap(data: bytes, name: str) -> bytes:
    """Return the bytes of the message inside an ``Any``, which must be of the kind ``name``."""
    message = AnyMessage()
    _parse(message, data)
    kind = message.type_url.rpartition("/")[2].rpartition(".")[2]
    if kind != name:
        text = f"expected an encoding of kind {name}, found {message.type_url!r}"
        raise FormatError(text)
    return message.value


def _extents(extents: Int64Array, first: int, count: int) -> tuple[Extent, ...]:
    if not count:
        return ()
    return tuple([Extent(*both) for both in extents[first : first + count].tolist()])


def _encoding(data: bytes, kind: int, start: int, end: int) -> EncodingBytes:
    """Return an encoding by its three numbers; see `find_pages`."""
    if kind == 1:
        return Direct(data[start:end])
    return Indirect(Extent(start, end)) if kind == 2 else None
