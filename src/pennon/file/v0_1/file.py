"""One data file of version 0.1, opened.

Fields are read by number of column, as in newer versions; what is called a column here is a row of
the page table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

import pyarrow as pa

from pennon.core.byte_ranges import ByteRange
from pennon.core.cached_property import cached_property
from pennon.core.units import ColumnIndex, FieldId
from pennon.encoding.coalesce import answered
from pennon.encoding.read_protocol import Steps, run
from pennon.encoding.v0_1.pages import Pages
from pennon.encoding.v0_1.values import DictionaryPlace, read_values
from pennon.errors import Breadcrumb, FormatError, LanceError
from pennon.file.container.footer import parse_version
from pennon.file.container.generation import Generation
from pennon.file.container.opened_file import BoundsSteps, OpenedFile, ReadRows
from pennon.file.container.tail import Tail
from pennon.file.v0_1.dictionary import Values
from pennon.file.v0_1.metadata import (
    FOOTER_BYTES,
    parse_pages,
    plan_pages,
    read_message,
    read_metadata,
)
from pennon.file.v0_1.wire import FileManifest, Metadata, parse_file_manifest
from pennon.io.store import ObjectReader
from pennon.schema.field import Field, Schema
from pennon.schema.version import V0_1, FileVersion

T = TypeVar("T")

GROUP_BYTES: Final = 16
"""What a page takes in memory once its entry of the page table was read."""


class RowGroupFile(OpenedFile):
    """A data file of version 0.1, opened for reading."""

    def __init__(
        self,
        source: ObjectReader,
        tail: Tail,
        metadata: Metadata,
        generation: Generation[RowGroupFile],
    ) -> None:
        self.source = source
        self.metadata = metadata
        self.num_rows = metadata.num_rows
        self.row_groups = metadata.borders
        self.numbers = parse_version(tail.last(FOOTER_BYTES))[1]
        """Major and minor version as they stand in the file."""
        self.tail = tail
        self._generation = generation
        self._pages: dict[int, Pages] = {}
        self._values: dict[tuple[int, pa.DataType], Values] = {}

    @property
    def version(self) -> FileVersion:
        """Return the file version."""
        return V0_1

    @property
    def memory_bytes(self) -> int:
        """Return about how much memory the file's metadata takes once all of it was read."""
        entries = self.metadata.num_groups * max(len(self._pages), 1)
        return int(self.tail.data.size) + entries * GROUP_BYTES

    @cached_property
    def _manifest(self) -> FileManifest:
        """The manifest in the file."""
        if not self.metadata.manifest:
            message = "the file does not hold its own schema; the table's manifest has it"
            raise FormatError(message, where=Breadcrumb(file=self.source.path))
        steps = read_message(self.tail, self.metadata.manifest, "schema")
        return parse_file_manifest(run(steps, self.source.read))

    @cached_property
    def schema(self) -> Schema:
        """See `OpenedFile.schema`."""
        try:
            return self._manifest.schema
        except LanceError as error:
            raise error.located(Breadcrumb(file=self.source.path)) from error.__cause__

    @cached_property
    def column_of(self) -> Mapping[FieldId, ColumnIndex]:
        """Return the row of the page table of each field of the file's own schema."""
        return self._generation.columns_of_schema(self)

    @property
    def num_columns(self) -> int:
        """Return the number of rows of the page table that the file's own schema needs."""
        return max(self.column_of.values(), default=-1) + 1

    @cached_property
    def dictionaries(self) -> Mapping[int, DictionaryPlace]:
        """Return where the values of dictionaries lie, by field id."""
        return self._manifest.dictionaries if self.metadata.manifest else {}

    def read_pages(self, indices: Iterable[int]) -> Steps[list[Pages]]:
        """Return the steps that read rows of the page table; none for those known already."""
        wanted = list(indices)
        missing = [index for index in dict.fromkeys(wanted) if index not in self._pages]
        size = self.source.size_bytes
        table = self.metadata.page_table
        extents = [plan_pages(self.metadata, table, index, size) for index in missing]
        buffers = yield from self.tail.read_extents(extents)
        for index, buffer in zip(missing, buffers, strict=True):
            self._pages[index] = parse_pages(buffer.to_pybytes(), size)
        return [self._pages[index] for index in wanted]

    def read_dictionary(self, field: Field, data_type: pa.DictionaryType) -> Steps[Values]:
        """Return the steps that read the values of a dictionary; none if they are known already.

        Raises FormatError if they are damaged, or neither the file nor the table holds them.
        """
        known = self._values.get((field.id, data_type))
        if known is None:
            stored = yield from self.read_stored_values(field, data_type.value_type)
            known = self._values[field.id, data_type] = Values.of(stored, data_type.index_type)
        return known

    def read_stored_values(self, field: Field, value_type: pa.DataType) -> Steps[pa.Array]:
        """Return the steps that read the values of a dictionary as they are stored."""
        place = self.dictionaries.get(field.id)
        if place is None:
            spare = self.table_dictionaries.get(field.id)
            if spare is not None and spare.type == value_type:
                return spare
            message = (
                "neither the file nor the table's manifest holds the values of this dictionary"
            )
            raise FormatError(message)
        reader = read_values(place, value_type, self.source.size_bytes)
        return (yield from self.answered(reader))

    def answered(self, reader: Steps[T]) -> Steps[T]:
        """Run a reader on the tail of the file as far as that goes."""
        behind = ByteRange(self.tail.first, int(self.tail.data.size))
        return answered(reader, behind, self.tail.data)

    def dictionary_values(self, field: Field, value_type: pa.DataType) -> pa.Array:
        """See `OpenedFile.dictionary_values`."""
        return run(self.read_stored_values(field, value_type), self.source.read)

    def field_reader(self, field: Field, column_of: Mapping[FieldId, int]) -> ReadRows:
        """See `OpenedFile.field_reader`."""
        return self._generation.field_reader(self, field, column_of)

    def read_bounds(self, fields: Sequence[Field], column_of: Mapping[FieldId, int]) -> BoundsSteps:
        """See `OpenedFile.read_bounds`."""
        if self._generation.read_bounds is None:
            return [None] * len(fields)
        return (yield from self._generation.read_bounds(self, fields, column_of))


def open_row_groups(
    source: ObjectReader, tail: Tail, generation: Generation[RowGroupFile]
) -> RowGroupFile:
    """Open a data file whose tail was read.  Raises FormatError if it is damaged."""
    return RowGroupFile(source, tail, run(read_metadata(tail), source.read), generation)
