"""One data file, opened: what it holds and how to get at it.

Opening reads the last 64 KiB once.  That nearly always has the footer, both tables, the schema and
the metadata of all columns; what lies further in front is read when it is asked for.  After that an
opened file does not change, but for remembering the column metadata that it parsed, so threads may
share it.

Reading a field is a value, too: `OpenedFile.read_field` returns steps (`pennon.encoding.read_protocol`), and
whoever runs them decides which fields go together into one round.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final

import pyarrow as pa

from pennon.core.byte_ranges import ByteRange
from pennon.core.cache import Cache
from pennon.core.cached_property import cached_property
from pennon.core.units import ColumnIndex, FieldId
from pennon.encoding.read_protocol import Steps, run
from pennon.encoding.search_cache import SearchCache
from pennon.errors import ArgumentError, Breadcrumb, FormatError, LanceError
from pennon.file.container.column_metadata import Column, parse_column
from pennon.file.container.footer import FOOTER_BYTES, Footer, parse_footer, parse_table
from pennon.file.container.generation import FileSource, Generation
from pennon.file.container.opened_file import BoundsSteps, OpenedFile, ReadRows
from pennon.file.container.tail import Tail
from pennon.file.container.wire import parse_file_descriptor
from pennon.io.store import ObjectReader
from pennon.schema.field import Field, Schema
from pennon.schema.version import FileVersion
from pennon.schema.wire import parse_fields

PARSED: Final = 8
"""Column metadata takes about so many times the bytes that it has in the file."""


class DataFile(OpenedFile):
    """A data file of version 2.0, 2.1 or 2.2, opened for reading."""

    def __init__(
        self,
        source: ObjectReader,
        footer: Footer,
        tail: Tail,
        column_extents: Sequence[ByteRange],
        global_buffers: Sequence[ByteRange],
        descriptor: bytes,
        generation: Generation[FileSource],
        search_cache: SearchCache,
    ) -> None:
        self.source = source
        self.footer = footer
        self.column_extents = column_extents
        """Where the metadata of each column lies."""
        self.global_buffers = global_buffers
        """Where the global buffers lie; number 0 is the file descriptor."""
        self.search_cache = search_cache
        """What was learned of pages so far (versions 2.1 and 2.2)."""
        self._generation = generation
        self._tail = tail
        self._columns: dict[int, Column] = {}
        self._descriptor = parse_file_descriptor(descriptor)
        self.num_rows = self._descriptor.length

    @property
    def version(self) -> FileVersion:
        """Return the file version."""
        return self.footer.version

    @property
    def memory_bytes(self) -> int:
        """Return about how much memory the file's metadata takes once all of it was read."""
        footer = self.footer
        serialized = footer.column_table.position - footer.column_metadata_position
        return int(self._tail.data.size) + PARSED * serialized

    @cached_property
    def schema(self) -> Schema:
        """Return the schema that the file itself holds; a table's manifest has it, too."""
        try:
            return parse_fields(self._descriptor.schema.fields, self.schema_metadata)
        except LanceError as error:
            raise error.located(Breadcrumb(file=self.source.path)) from error.__cause__

    @cached_property
    def schema_metadata(self) -> Mapping[str, bytes]:
        """Return the metadata of the file's schema without parsing its fields."""
        found = self._descriptor.schema.metadata
        return {key: found[key] for key in found}

    @property
    def num_columns(self) -> int:
        """Return the number of columns; structs and lists have columns of their own."""
        return len(self.column_extents)

    @cached_property
    def column_of(self) -> Mapping[FieldId, ColumnIndex]:
        """See `OpenedFile.column_of`."""
        return self._generation.columns_of_schema(self)

    def global_buffer(self, index: int) -> pa.Buffer:
        """Read one global buffer.  Raises ArgumentError if there is none of that number."""
        if not 0 <= index < len(self.global_buffers):
            message = f"global buffer {index} of a file that has {len(self.global_buffers)}"
            raise ArgumentError(message, where=Breadcrumb(file=self.source.path))
        (buffer,) = self._tail.read_now([self.global_buffers[index]], self.source.read)
        return buffer

    def columns(self) -> list[Column]:
        """Return the metadata of all columns, reading what was not read yet."""
        return run(self.read_columns(range(self.num_columns)), self.source.read)

    def read_columns(self, indices: Iterable[int]) -> Steps[list[Column]]:
        """Return the steps that read the metadata of columns; no round for those known already."""
        wanted, count = list(indices), self.num_columns
        missing = [index for index in dict.fromkeys(wanted) if index not in self._columns]
        for index in missing:
            if not 0 <= index < count:
                message = f"column {index} of a file that has {count} columns"
                raise FormatError(message, where=Breadcrumb(file=self.source.path))
        extents = [self.column_extents[index] for index in missing]
        buffers = yield from self._tail.read_extents(extents)
        for index, extent, buffer in zip(missing, extents, buffers, strict=True):
            self._columns[index] = self._parse_column(index, extent, buffer)
        return [self._columns[index] for index in wanted]

    def known_column(self, index: int) -> Column | None:
        """Return the metadata of a column if it was read already."""
        return self._columns.get(index)

    def field_reader(self, field: Field, column_of: Mapping[FieldId, int]) -> ReadRows:
        """See `OpenedFile.field_reader`."""
        return self._generation.field_reader(self, field, column_of)

    def read_bounds(self, fields: Sequence[Field], column_of: Mapping[FieldId, int]) -> BoundsSteps:
        """See `OpenedFile.read_bounds`."""
        if self._generation.read_bounds is None:
            return [None] * len(fields)
        return (yield from self._generation.read_bounds(self, fields, column_of))

    def _parse_column(self, index: int, extent: ByteRange, buffer: pa.Buffer) -> Column:
        try:
            return parse_column(index, buffer.to_pybytes(), self.source.size_bytes)
        except LanceError as error:
            place = Breadcrumb(self.source.path, f"#{index}", None, (extent.position, extent.end))
            raise error.located(place) from error.__cause__


def open_container(
    source: ObjectReader,
    tail: Tail,
    generation: Generation[FileSource],
    memory: Cache | None,
    identity: Hashable,
) -> DataFile:
    """Open a data file whose tail was read; see `pennon.file.open.open_data_file`."""
    size = source.size_bytes
    footer = parse_footer(tail.last(FOOTER_BYTES), size)
    tables = tail.read_now([footer.column_table, footer.buffer_table], source.read)
    columns = parse_table("metadata of column", tables[0].to_pybytes(), size)
    buffers = parse_table("global buffer", tables[1].to_pybytes(), size)
    if not buffers:
        message = "data file without global buffers, so without a schema"
        raise FormatError(message)
    (descriptor,) = tail.read_now(buffers[:1], source.read)
    return DataFile(
        source,
        footer,
        tail,
        columns,
        buffers,
        descriptor.to_pybytes(),
        generation,
        SearchCache(memory, identity),
    )
