"""Opening a data file of any version."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from pennon.core.cache import Cache
from pennon.core.units import ColumnIndex, FieldId
from pennon.encoding.read_protocol import Steps
from pennon.encoding.rows import Rows
from pennon.errors import Breadcrumb, LanceError
from pennon.file.container.field_bounds import FieldBounds
from pennon.file.container.footer import parse_version
from pennon.file.container.generation import ReadRows
from pennon.file.container.tail import Tail
from pennon.io.store import ObjectReader
from pennon.schema.field import Field, Schema
from pennon.schema.version import V0_1, FileVersion


class OpenedFile(Protocol):
    """What those who read columns ask of a data file, whatever its version."""

    num_rows: int
    source: ObjectReader

    @property
    def version(self) -> FileVersion:
        """Return the file version."""
        ...

    @property
    def schema(self) -> Schema:
        """Return the schema that the file itself holds."""
        ...

    @property
    def num_columns(self) -> int:
        """Return the number of columns that the fields may lie in."""
        ...

    @property
    def memory_bytes(self) -> int:
        """Return about how much memory the file's metadata takes."""
        ...

    @property
    def column_of(self) -> Mapping[FieldId, ColumnIndex]:
        """Return the column of each field of the file's own schema."""
        ...

    def read_bounds(
        self, fields: Sequence[Field], column_of: Mapping[FieldId, int]
    ) -> Steps[list[FieldBounds | None]]:
        """Return the steps that read the bounds of fields, None for those that have none.

        ``column_of`` says which column a field is stored in.  Raises FormatError.
        """
        ...

    def read_rows(
        self, fields: Sequence[Field], column_of: Mapping[FieldId, int], rows: Rows
    ) -> list[list[pa.Array]]:
        """Read several fields side by side, in as few rounds as the slowest of them takes."""
        ...

    def field_reader(self, field: Field, column_of: Mapping[FieldId, int]) -> ReadRows:
        """Return what reads rows of a field; see `pennon.file.container.file.DataFile.field_reader`."""
        ...


def open_data_file(
    source: ObjectReader, memory: Cache | None = None, identity: Hashable = None
) -> OpenedFile:
    """Open a data file of any version; see `pennon.file.container.file.DataFile.open`."""
    try:
        tail = Tail.read(source)
        source = tail.behind(source)
        version, _ = parse_version(tail.last(8))
        if version == V0_1:
            from pennon.file.v0_1.file import RowGroupFile  # noqa: PLC0415 - when first read

            return RowGroupFile.open_behind(source, tail)
        from pennon.file.container.file import DataFile  # noqa: PLC0415

        return DataFile.open_behind(source, tail, memory, identity)
    except LanceError as error:
        raise error.located(Breadcrumb(file=source.path)) from error.__cause__


def lend_values(file: OpenedFile, values: Mapping[FieldId, pa.Array]) -> None:
    """Let a file of version 0.1 that holds no values of its dictionaries have the table's."""
    if file.version == V0_1:
        from pennon.file.v0_1.file import RowGroupFile  # noqa: PLC0415 - it is read already

        if isinstance(file, RowGroupFile):
            file.spare_values = values
