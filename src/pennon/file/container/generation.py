"""The boundary between an opened file and the code of a file version: requests and answers.

An opened file is handed its generation by `pennon.file.open`, so it knows none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from pennon.core.byte_ranges import ByteRange
from pennon.core.fast_dataclass import dataclass
from pennon.core.units import ColumnIndex, FieldId
from pennon.encoding.read_protocol import Steps
from pennon.encoding.search_cache import SearchCache
from pennon.file.container.column_metadata import Column
from pennon.file.container.opened_file import BoundsSteps, ReadRows
from pennon.io.store import ObjectReader
from pennon.schema.field import Field, Schema


class FileSource(Protocol):
    """The file as readers of versions 2.0 and newer see it."""

    source: ObjectReader
    num_rows: int
    global_buffers: Sequence[ByteRange]
    search_cache: SearchCache

    @property
    def schema(self) -> Schema:
        """Return the schema that the file itself holds."""

    @property
    def num_columns(self) -> int:
        """Return the number of columns."""

    def columns(self) -> list[Column]:
        """Return the metadata of all columns, reading what was not read yet."""

    def read_columns(self, indices: Iterable[int]) -> Steps[list[Column]]:
        """Return the steps that read the metadata of columns; no round for those known already."""

    def known_column(self, index: int) -> Column | None:
        """Return the metadata of a column if it was read already."""


File = TypeVar("File")


@dataclass(frozen=True, slots=True)
class Generation(Generic[File]):
    """The reader of the columns of a file version."""

    field_reader: Callable[[File, Field, Mapping[FieldId, int]], ReadRows]
    """See `pennon.file.container.opened_file.OpenedFile.field_reader`."""
    columns_of_schema: Callable[[File], Mapping[FieldId, ColumnIndex]]
    """See `pennon.file.container.opened_file.OpenedFile.column_of`."""
    read_bounds: Callable[[File, Sequence[Field], Mapping[FieldId, int]], BoundsSteps] | None = None
    """See `pennon.file.container.opened_file.OpenedFile.read_bounds`; None if no file has any."""
