"""Which code reads which file version: a file version is a package, here is the one table of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

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


class ReadField(Protocol):
    """See `pennon.file.reader.DataFile.read_field`."""

    def __call__(
        self, file: DataFile, field: Field, column_of: Mapping[FieldId, int], rows: Rows
    ) -> Steps[list[pa.Array]]:
        """Return the steps that read rows of a field."""
        ...


class ColumnsOfSchema(Protocol):
    """See `pennon.file.reader.DataFile.column_of`."""

    def __call__(self, file: DataFile) -> Mapping[FieldId, ColumnIndex]:
        """Return the columns of the file's own schema."""
        ...


@dataclass(frozen=True, slots=True)
class Generation:
    """How the columns of a file version are read."""

    read_field: ReadField
    columns_of_schema: ColumnsOfSchema


_STRUCTURAL: Final = Generation(v2_1.read_field, v2_1_layout.columns_of_schema)

GENERATIONS: Final[Mapping[FileVersion, Generation]] = {
    V2_0: Generation(v2_0.read_field, v2_0_layout.columns_of_schema),
    V2_1: _STRUCTURAL,
    V2_2: _STRUCTURAL,
}
