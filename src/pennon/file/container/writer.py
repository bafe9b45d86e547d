r"""Writing a data file of version 2.0, 2.1 or 2.2, front to back, in memory bounded by its pages.

    page buffers, each at a multiple of 64 bytes      while batches come in
    schema and row count (global buffer 0)            \
    column metadata, one after the other               | at the end
    column table, global buffer table, footer         /

Batches go to the column writers (`pennon.file.container.column_writer`), which hold back what is not yet
a page.  Pages are encoded on threads and written in the order in which they were cut, so the same batches make the
same bytes.

Source: seed 001, "File Structure"; the order of the parts at the end is pylance's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final, TypeAlias

import pyarrow as pa

from pennon.core.byte_ranges import ByteRange
from pennon.core.units import KIB, MIB
from pennon.encoding.v2_0.choose import BUFFER_ALIGNMENT
from pennon.errors import ArgumentError
from pennon.file.container.arrays import batch_columns
from pennon.file.container.column_encoding import wrap_column_encoding
from pennon.file.container.column_wire import PageMessage, page_message, serialize_column
from pennon.file.container.column_writer import ColumnTree, EncodedPage, PageWork
from pennon.file.container.footer import serialize_footer, serialize_table
from pennon.file.container.wire import serialize_file_descriptor
from pennon.file.container.write_limits import PageLimits
from pennon.file.container.writer_base import FileWriter, WrittenFile
from pennon.io.store import ObjectWriter
from pennon.schema.blob import described_v2
from pennon.schema.check import check_writable
from pennon.schema.field import Schema
from pennon.schema.version import FileVersion

OWN_AFTER_BYTES: Final = 64 * MIB
"""After so many bytes of batches, pages under way are awaited and what is held back is copied, to let
go of the batches."""

_SMALL_BYTES: Final = 4 * KIB
"""To copy so few bytes costs less than to write twice."""

_PADDING: Final = bytes(BUFFER_ALIGNMENT)

PlanColumns: TypeAlias = Callable[
    [Schema, PageLimits, Callable[[pa.Buffer], int], FileVersion], ColumnTree
]
"""Gives the fields of a schema their columns; the third argument puts a blob into the file."""


class DataFileWriter(FileWriter[Sequence[EncodedPage]]):
    """Writes record batches to one data file of version 2.0, 2.1 or 2.2.

    ``plan_columns`` is that of the file version; ``may_be_reserved`` see `check_writable`.

    Raises ArgumentError for limits that make no pages, UnsupportedError for types that the version
    cannot hold.
    """

    def __init__(
        self,
        sink: ObjectWriter,
        schema: Schema,
        version: FileVersion,
        plan_columns: PlanColumns,
        limits: PageLimits | None = None,
        *,
        may_be_reserved: bool = False,
    ) -> None:
        super().__init__(sink, schema)
        limits = limits or PageLimits()
        self._version = version
        with self._whole_or_nothing():
            _check_limits(limits)
            check_writable(schema, version, may_be_reserved=may_be_reserved)
            self._tree = plan_columns(schema, limits, self._write_value, version)
        self._columns = [column for top in self._tree.writers for column in top.tree()]
        self._pages: list[list[PageMessage]] = [[] for _ in self._columns]
        self._global_buffers: list[ByteRange] = []
        self._metadata: dict[str, bytes] = dict(schema.metadata)
        self._held_bytes = 0

    def _take(self, batch: pa.RecordBatch) -> None:
        columns = batch_columns(batch, self._schema.fields)
        if batch.num_rows == 0:
            return
        for writer, array in zip(self._tree.writers, columns, strict=True):
            self._encode(writer.add(array))
        self._num_rows += batch.num_rows
        self._held_bytes += batch.nbytes
        if self._held_bytes > OWN_AFTER_BYTES:
            self._held_bytes = 0
            self._write_pages(self._ahead.rest())
            for writer in self._tree.writers:
                writer.own()

    def add_global_buffer(self, data: bytes | pa.Buffer) -> int:
        """Write a buffer that belongs to the file as a whole; return its number (1, 2, ...)."""
        self._check_open()
        data = data if isinstance(data, pa.Buffer) else pa.py_buffer(data)
        self._global_buffers.append(self._write_buffer(data))
        return len(self._global_buffers)

    def add_schema_metadata(self, metadata: Mapping[str, str | bytes]) -> None:
        """Add entries to the schema's metadata, which is written at the end."""
        self._check_open()
        for key, value in metadata.items():
            self._metadata[key] = value.encode() if isinstance(value, str) else value

    def _write_rest(self) -> None:
        for writer in self._tree.writers:
            self._encode(writer.flush())
        for writer in self._tree.writers:
            self._encode(writer.finish())
        self._write_pages(self._ahead.rest())
        self._write_end()

    def _described(self, size_bytes: int) -> WrittenFile:
        ids, columns = self._tree.field_ids, self._tree.column_indices
        return WrittenFile(self._num_rows, size_bytes, ids, columns, self._version)

    def _encode(self, work: Iterable[PageWork]) -> None:
        """Start to encode pages; write older ones if too many are under way."""
        for each in work:
            self._ahead.start(each.encode, each.size_bytes)
            self._write_pages(self._ahead.surplus())

    def _write_pages(self, found: Iterable[Sequence[EncodedPage]]) -> None:
        """Write pages as they come, and keep their messages for the end."""
        for page in chain.from_iterable(found):
            extents = [self._write_buffer(buffer) for buffer in page.buffers]
            message = page_message(page.rows, page.encoding, extents)
            self._pages[page.column].append(message)

    def _write_value(self, data: pa.Buffer) -> int:
        return self._write_buffer(data).position

    def _write_buffer(self, data: pa.Buffer) -> ByteRange:
        """Write a buffer and the padding behind it; return where it lies."""
        position, size = self._sink.tell(), data.size
        padding = _PADDING[size % BUFFER_ALIGNMENT :] if size % BUFFER_ALIGNMENT else b""
        if size < _SMALL_BYTES:
            self._sink.write(data.to_pybytes() + padding)
        else:
            self._sink.write(data)
            self._sink.write(padding)
        return ByteRange(position, size)

    def _write_part(self, data: bytes) -> ByteRange:
        """Write bytes without padding; return where they lie."""
        position = self._sink.tell()
        self._sink.write(data)
        return ByteRange(position, len(data))

    def _write_end(self) -> None:
        schema = described_v2(replace(self._schema, metadata=self._metadata))
        descriptor = self._write_part(serialize_file_descriptor(schema, self._num_rows))
        buffers = [
            [self._write_buffer(buffer) for buffer in column.buffers()] for column in self._columns
        ]
        first_column = self._sink.tell()
        columns = [
            self._write_part(serialize_column(wrap_column_encoding(column.encoding), pages, own))
            for column, pages, own in zip(self._columns, self._pages, buffers, strict=True)
        ]
        column_table = self._write_part(serialize_table(columns))
        buffer_table = self._write_part(serialize_table([descriptor, *self._global_buffers]))
        self._write_part(serialize_footer(first_column, column_table, buffer_table, self._version))


def _check_limits(limits: PageLimits) -> None:
    cache_bytes, page_bytes = limits.cache_bytes, limits.max_page_bytes
    if cache_bytes < 0 or page_bytes <= 0:
        message = f"page limits of {cache_bytes} and {page_bytes} bytes make no pages"
        raise ArgumentError(message)
