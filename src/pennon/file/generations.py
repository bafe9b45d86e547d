"""Which code reads which file version: a file version is a package, here is the one table of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import pyarrow as pa

from pennon.encoding.rows import Rows
from pennon.encoding.steps import Steps
from pennon.file import columns as v2_0
from pennon.file import layout as v2_0_layout
from pennon.file.v2_1 import columns as v2_1
from pennon.file.v2_1 import tree as v2_1_layout
from pennon.schema.field import Field
from pennon.schema.version import V2_0, V2_1, V2_2, FileVersion
from pennon.units import ColumnIndex, FieldId

if TYPE_CHECKING:
    from pennon.file.reader import DataFile


ReadRows: TypeAlias = Callable[[Rows], Steps[list[pa.Array]]]
"""Returns the steps that read rows of one field: arrays in order."""


class FieldReader(Protocol):
    """See `pennon.file.reader.DataFile.field_reader`."""

    def __call__(
        self, file: DataFile, field: Field, column_of: Mapping[FieldId, int], /
    ) -> ReadRows:
        """Return what reads rows of a field."""
        ...


class ColumnsOfSchema(Protocol):
    """See `pennon.file.reader.DataFile.column_of`."""

    def __call__(self, file: DataFile) -> Mapping[FieldId, ColumnIndex]:
        """Return the columns of the file's own schema."""
        ...


@dataclass(frozen=True, slots=True)
class Generation:
    """How the columns of a file version are read."""

    field_reader: FieldReader
    columns_of_schema: ColumnsOfSchema


def _reader_of_2_0(file: DataFile, field: Field, column_of: Mapping[FieldId, int]) -> ReadRows:
    return partial(v2_0.read_field, file, field, column_of)


_STRUCTURAL: Final = Generation(v2_1.FieldReader, v2_1_layout.columns_of_schema)

GENERATIONS: Final[Mapping[FileVersion, Generation]] = {
    V2_0: Generation(_reader_of_2_0, v2_0_layout.columns_of_schema),
    V2_1: _STRUCTURAL,
    V2_2: _STRUCTURAL,
}
