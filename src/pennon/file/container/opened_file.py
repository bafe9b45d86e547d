"""A data file of any version, opened: what those who read columns ask of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from pennon.core.byte_ranges import ByteRequest, Int64Array
from pennon.core.units import ColumnIndex, FieldId
from pennon.encoding.read_protocol import Steps, run, together
from pennon.encoding.rows import Rows
from pennon.file.container.field_bounds import FieldBounds
from pennon.io.store import ObjectReader
from pennon.schema.field import Field, Schema
from pennon.schema.version import FileVersion

ReadRows: TypeAlias = Callable[[Rows], Steps[list[pa.Array]]]
"""Returns the steps that read rows of one field: arrays in order."""

AtOnce: TypeAlias = tuple[ByteRequest, Callable[[pa.Buffer], pa.Array | None]]
"""A request, and what makes an array of the answer; None if it is damaged: read by steps it says how."""


class ReadsAtOnce(ABC):
    """A reader of rows of one field that serves some rows without steps."""

    __slots__ = ()

    @abstractmethod
    def at_once(self, rows: Rows) -> AtOnce | None:
        """Return how rows are read by one request; None if they are not few rows of a page that is known."""


class JoinableFile(Protocol):
    """A field of a mapped file that can be read together with the same field of others."""

    def is_like(self, other: Any, /) -> bool:
        """Return whether both can be read together."""
        ...

    @property
    def most_rows(self) -> int:
        """Return how many neighbouring rows cost less to read together with those of others than by themselves."""
        ...


class ReadsSideBySide(Protocol):
    """Reads many fields of a mapped file together."""

    def read(self, rows: Rows, /) -> list[list[pa.Array] | None]:
        """Return the values of each field; None for a field that is to be read by itself."""
        ...


BoundsSteps: TypeAlias = Steps[list[FieldBounds | None]]
"""Steps that read the bounds of fields, None for those that have none."""


class OpenedFile(ABC):
    """A data file, opened for reading; threads may share it."""

    source: ObjectReader
    num_rows: int
    row_groups: Int64Array | None = None
    """Row group g has the rows ``[row_groups[g], row_groups[g + 1])``; None: there are none."""
    table_dictionaries: Mapping[FieldId, pa.Array] = {}
    """The dictionaries of the table, for a file of version 0.1 that does not hold their values."""

    @property
    @abstractmethod
    def version(self) -> FileVersion:
        """Return the file version."""

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """Return the schema that the file itself holds; a table's manifest has it, too."""

    @property
    def schema_metadata(self) -> Mapping[str, bytes]:
        """Return the metadata of that schema."""
        return self.schema.metadata

    @property
    @abstractmethod
    def num_columns(self) -> int:
        """Return the number of columns that the fields may lie in."""

    @property
    @abstractmethod
    def memory_bytes(self) -> int:
        """Return about how much memory the file's metadata takes once all of it was read."""

    @property
    @abstractmethod
    def column_of(self) -> Mapping[FieldId, ColumnIndex]:
        """Return the column of each field of the file's own schema.

        Fragments carry this mapping in the manifest; it is for files that stand alone.
        """

    @abstractmethod
    def field_reader(self, field: Field, column_of: Mapping[FieldId, int]) -> ReadRows:
        """Return what reads rows of a field, as often as it is called: arrays in order.

        ``column_of`` says which column a field, or a field below it, is stored in.  The rounds are
        one for most types, two for strings and lists, one more for each list inside a list.
        Raises FormatError, UnsupportedError, ArgumentError if there are no such rows.
        """

    @abstractmethod
    def read_bounds(self, fields: Sequence[Field], column_of: Mapping[FieldId, int]) -> BoundsSteps:
        """Return the steps that read the bounds of fields, None for those that have none.

        Raises FormatError if they are damaged.
        """

    def read_field(
        self, field: Field, column_of: Mapping[FieldId, int], rows: Rows
    ) -> Steps[list[pa.Array]]:
        """Return the steps that read ``rows`` of a field; see `field_reader`."""
        return self.field_reader(field, column_of)(rows)

    def read_rows(
        self, fields: Sequence[Field], column_of: Mapping[FieldId, int], rows: Rows
    ) -> list[list[pa.Array]]:
        """Read several fields side by side, in as few rounds as the slowest of them takes."""
        readers = [self.read_field(field, column_of, rows) for field in fields]
        return run(together(readers), self.source.read)

    def dictionary_values(self, field: Field, value_type: pa.DataType) -> pa.Array | None:  # noqa: ARG002
        """Return the values of a field's dictionary as they are stored; None if there are none.

        Only files of version 0.1 have a dictionary for all rows of a field.  Raises FormatError.
        """
        return None
