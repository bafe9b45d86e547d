"""A data file described, with the names of ``lance.file``: metadata and statistics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields

import pyarrow as pa

from pennon.core.byte_ranges import ByteRange
from pennon.core.fast_dataclass import dataclass
from pennon.errors import FormatError, UnsupportedError
from pennon.file.container.column_metadata import Column, EncodingBytes, Indirect
from pennon.file.container.file import DataFile
from pennon.file.encoding_wire import encoding_text
from pennon.schema.arrow import schema_to_arrow


@dataclass(frozen=True, slots=True)
class LanceBufferDescriptor:
    """The position of a buffer.

    >>> from pennon.file import LanceFileReader, LanceFileWriter
    >>> with LanceFileWriter(uri) as writer:
    ...     writer.write_batch(pa.table({"id": [1, 2, 3]}))
    >>> LanceFileReader(uri).metadata().columns[0].pages[0].buffers[0].size
    2
    """

    position: int
    size: int


@dataclass(frozen=True, slots=True)
class LancePageMetadata:
    """A page's buffers, and its encoding as text.

    >>> from pennon.file import LanceFileReader, LanceFileWriter
    >>> with LanceFileWriter(uri) as writer:
    ...     writer.write_batch(pa.table({"id": [1, 2, 3]}))
    >>> len(LanceFileReader(uri).metadata().columns[0].pages[0].buffers)
    2
    """

    buffers: list[LanceBufferDescriptor]
    encoding: str


@dataclass(frozen=True, slots=True)
class LanceColumnMetadata:
    """A column's own buffers and its pages.

    >>> from pennon.file import LanceFileReader, LanceFileWriter
    >>> with LanceFileWriter(uri) as writer:
    ...     writer.write_batch(pa.table({"id": [1, 2, 3]}))
    >>> len(LanceFileReader(uri).metadata().columns[0].pages)
    1
    """

    column_buffers: list[LanceBufferDescriptor]
    pages: list[LancePageMetadata]


@dataclass(frozen=True, slots=True)
class LanceFileMetadata:
    """The metadata of a data file; the versions are the numbers of its footer.

    >>> from pennon.file import LanceFileReader, LanceFileWriter
    >>> with LanceFileWriter(uri) as writer:
    ...     writer.write_batch(pa.table({"id": [1, 2, 3]}))
    >>> found = LanceFileReader(uri).metadata()
    >>> found.num_rows, found.major_version, found.minor_version
    (3, 2, 1)
    """

    schema: pa.Schema
    num_rows: int
    num_data_bytes: int
    num_column_metadata_bytes: int
    num_global_buffer_bytes: int
    global_buffers: list[LanceBufferDescriptor]
    columns: list[LanceColumnMetadata]
    major_version: int
    minor_version: int

    def __repr__(self) -> str:
        """Return all but the schema as YAML, as pylance shows it."""
        names = (
            "major_version",
            "minor_version",
            "num_rows",
            "num_data_bytes",
            "num_column_metadata_bytes",
            "num_global_buffer_bytes",
            "global_buffers",
            "columns",
        )
        return "".join(f"{line}\n" for name in names for line in _yaml(name, getattr(self, name)))


def _yaml(name: str, value: object) -> Iterator[str]:
    """Yield the lines of an entry: a number, a text, or a list of things that have entries."""
    if isinstance(value, list):
        yield f"{name}:" if value else f"{name}: []"
        for item in value:
            entries = [
                line for each in fields(item) for line in _yaml(each.name, getattr(item, each.name))
            ]
            yield from (f"{'  ' if number else '- '}{line}" for number, line in enumerate(entries))
    elif isinstance(value, str) and "\n" in value:
        yield f"{name}: |-"
        yield from (f"  {line}" for line in value.split("\n"))
    else:
        yield f"{name}: {value}"


@dataclass(frozen=True, slots=True)
class LanceColumnStatistics:
    """The bytes of a column in a file; padding and blobs do not count."""

    num_pages: int
    size_bytes: int

    def __repr__(self) -> str:
        """Return the numbers under pylance's name."""
        return f"ColumnStatistics(num_pages={self.num_pages}, size_bytes={self.size_bytes})"


@dataclass(frozen=True, slots=True)
class LanceFileStatistics:
    """Statistics of all columns, in their order.

    >>> from pennon.file import LanceFileReader, LanceFileWriter
    >>> with LanceFileWriter(uri) as writer:
    ...     writer.write_batch(pa.table({"id": [1, 2, 3]}))
    >>> LanceFileReader(uri).file_statistics().columns[0].num_pages
    1
    """

    columns: list[LanceColumnStatistics]

    def __repr__(self) -> str:
        """Return the columns under pylance's name."""
        return f"FileStatistics(columns={self.columns!r})"


def describe(file: DataFile) -> LanceFileMetadata:
    """Return the metadata of a file, reading that of all columns.

    A file has global buffers, column metadata and its table one after the other; as pylance has it,
    all in front of the column metadata but the global buffers is data, padding too.
    """
    footer = file.footer
    global_bytes = sum(extent.size_bytes for extent in file.global_buffers)
    start = footer.column_metadata_position
    return LanceFileMetadata(
        schema=schema_to_arrow(file.schema),
        num_rows=file.num_rows,
        num_data_bytes=max(start - global_bytes, 0),
        num_column_metadata_bytes=max(footer.buffer_table.position - start, 0),
        num_global_buffer_bytes=global_bytes,
        global_buffers=_descriptors(file.global_buffers),
        columns=[_column(column) for column in file.columns()],
        major_version=footer.numbers[0],
        minor_version=footer.numbers[1],
    )


def summarize(file: DataFile) -> LanceFileStatistics:
    """Return the statistics of a file."""
    return LanceFileStatistics(
        [
            LanceColumnStatistics(
                len(column.pages),
                sum(buffer.size_bytes for page in column.pages for buffer in page.buffers),
            )
            for column in file.columns()
        ]
    )


def _column(column: Column) -> LanceColumnMetadata:
    pages = [
        LancePageMetadata(_descriptors(page.buffers), _encoding(page.encoding))
        for page in column.pages
    ]
    return LanceColumnMetadata(_descriptors(column.buffers), pages)


def _encoding(encoding: EncodingBytes) -> str:
    """Return the encoding of a page as pylance shows it; damage is part of the text."""
    if encoding is None:
        return "NoEncodingDescription"
    if isinstance(encoding, Indirect):
        extent = encoding.extent
        return f"IndirectEncoding(pos={extent.position},size={extent.size_bytes})"
    try:
        return encoding_text(encoding.data)
    except UnsupportedError as error:
        return f"Unrecognized({error.message})"
    except FormatError as error:
        return f"Unsupported(decode_err={error.message})"


def _descriptors(extents: Iterable[ByteRange]) -> list[LanceBufferDescriptor]:
    return [LanceBufferDescriptor(extent.position, extent.size_bytes) for extent in extents]
