"""Which code reads which file version: a file version is a package, here is the one table of them.

A package is imported when the first file of its version is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.core.units import ColumnIndex, FieldId
from pennon.encoding.read_protocol import Steps
from pennon.encoding.rows import FileRows, Rows
from pennon.schema.field import Field
from pennon.schema.version import V2_0, V2_1, V2_2, FileVersion

if TYPE_CHECKING:
    from pennon.file.container.file import DataFile


ReadRows: TypeAlias = Callable[[Rows], Steps[list[pa.Array]]]
"""Returns the steps that read rows of one field: arrays in order."""


def read_across(readers: Sequence[ReadRows], rows: FileRows) -> pa.Array | None:
    """Return rows of one field of several mapped files, those of each file after the other.

    None if they cannot be read together: of other versions than 2.1 and 2.2, encoded in other ways,
    or damaged.
    """
    from pennon.file.v2_1.across import read_across as read  # noqa: PLC0415
    from pennon.file.v2_1.reader import FieldReader  # noqa: PLC0415

    mine = [reader for reader in readers if isinstance(reader, FieldReader)]
    return read(mine, rows) if len(mine) == len(readers) else None


class MakeReader(Protocol):
    """See `pennon.file.container.file.DataFile.field_reader`."""

    def __call__(
        self, file: DataFile, field: Field, column_of: Mapping[FieldId, int], /
    ) -> ReadRows:
        """Return what reads rows of a field."""
        ...


class ColumnsOfSchema(Protocol):
    """See `pennon.file.container.file.DataFile.column_of`."""

    def __call__(self, file: DataFile) -> Mapping[FieldId, ColumnIndex]:
        """Return the columns of the file's own schema."""
        ...


@dataclass(frozen=True, slots=True)
class Generation:
    """How the columns of a file version are read."""

    field_reader: MakeReader
    columns_of_schema: ColumnsOfSchema


def _reader_of_2_0(file: DataFile, field: Field, column_of: Mapping[FieldId, int]) -> ReadRows:
    from pennon.file.v2_0.reader import read_field  # noqa: PLC0415 - when first read, here and below

    return partial(read_field, file, field, column_of)


def _columns_of_2_0(file: DataFile) -> Mapping[FieldId, ColumnIndex]:
    from pennon.file.v2_0.layout import columns_of_schema  # noqa: PLC0415

    return columns_of_schema(file)


def _reader_of_2_1(file: DataFile, field: Field, column_of: Mapping[FieldId, int]) -> ReadRows:
    from pennon.file.v2_1.reader import FieldReader  # noqa: PLC0415

    return FieldReader(file, field, column_of)


def _columns_of_2_1(file: DataFile) -> Mapping[FieldId, ColumnIndex]:
    from pennon.file.v2_1.tree import columns_of_schema  # noqa: PLC0415

    return columns_of_schema(file)


_STRUCTURAL: Final = Generation(_reader_of_2_1, _columns_of_2_1)

GENERATIONS: Final[Mapping[FileVersion, Generation]] = {
    V2_0: Generation(_reader_of_2_0, _columns_of_2_0),
    V2_1: _STRUCTURAL,
    V2_2: _STRUCTURAL,
}
