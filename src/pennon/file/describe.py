"""A data file described, with the names of ``lance.file``: metadata and statistics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from pennon.encoding.steps import run
from pennon.file.node import encoding_bytes
from pennon.file.reader import DataFile
from pennon.file.wire import Column, Page, parse_array_encoding
from pennon.ranges import Extent
from pennon.schema.arrow import schema_to_arrow


@dataclass(frozen=True, slots=True)
class LanceBufferDescriptor:
    """Where a buffer lies."""

    position: int
    size: int


@dataclass(frozen=True, slots=True)
class LancePageMetadata:
    """A page's buffers, and its encoding as text."""

    buffers: list[LanceBufferDescriptor]
    encoding: str


@dataclass(frozen=True, slots=True)
class LanceColumnMetadata:
    """A column's own buffers and its pages."""

    column_buffers: list[LanceBufferDescriptor]
    pages: list[LancePageMetadata]


@dataclass(frozen=True, slots=True)
class LanceFileMetadata:
    """What a data file says of itself; the versions are the numbers of its footer."""

    schema: pa.Schema
    num_rows: int
    num_data_bytes: int
    num_column_metadata_bytes: int
    num_global_buffer_bytes: int
    global_buffers: list[LanceBufferDescriptor]
    columns: list[LanceColumnMetadata]
    major_version: int
    minor_version: int


@dataclass(frozen=True, slots=True)
class LanceColumnStatistics:
    """How much of a file a column is; padding and blobs do not count."""

    num_pages: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LanceFileStatistics:
    """Statistics of all columns, in their order."""

    columns: list[LanceColumnStatistics]


def describe(file: DataFile) -> LanceFileMetadata:
    """Return the metadata of a file, reading that of all columns."""
    footer = file.footer
    return LanceFileMetadata(
        schema=schema_to_arrow(file.schema),
        num_rows=file.num_rows,
        num_data_bytes=min(buffer.position for buffer in file.global_buffers[:1]),
        num_column_metadata_bytes=sum(extent.size_bytes for extent in file.column_extents),
        num_global_buffer_bytes=sum(extent.size_bytes for extent in file.global_buffers),
        global_buffers=_descriptors(file.global_buffers),
        columns=[_column(file, column) for column in file.columns()],
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


def _column(file: DataFile, column: Column) -> LanceColumnMetadata:
    return LanceColumnMetadata(
        _descriptors(column.buffers), [_page(file, page) for page in column.pages]
    )


def _page(file: DataFile, page: Page) -> LancePageMetadata:
    data = run(encoding_bytes(page.encoding), file.source.read)
    encoding = "none" if data is None else str(parse_array_encoding(data))
    return LancePageMetadata(_descriptors(page.buffers), encoding)


def _descriptors(extents: Iterable[Extent]) -> list[LanceBufferDescriptor]:
    return [LanceBufferDescriptor(extent.position, extent.size_bytes) for extent in extents]
