"""The columns of a fragment's data files, from the manifest, and their readers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, overload

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.core.units import ColumnIndex, FieldId
from pennon.encoding.read_protocol import Steps
from pennon.encoding.rows import Rows
from pennon.errors import Breadcrumb, FormatError, LanceError
from pennon.file.container.opened_file import ReadRows, ReadsAtOnce
from pennon.scan.read.older_blobs import OlderReader, as_described_before
from pennon.scan.snapshot import OpenFile
from pennon.schema.field import Field
from pennon.schema.version import Ability
from pennon.table.fragment import DataFileRef

RECENT_FILES: Final = 32
"""So many files are read side by side, or one after the other column by column, without a second map."""


@dataclass(frozen=True, slots=True)
class FileColumns:
    """The columns that store the fields of a data file, from the manifest."""

    ref: DataFileRef
    column_of: dict[FieldId, ColumnIndex]

    @classmethod
    def of(cls, ref: DataFileRef) -> FileColumns:
        """Build the map; tombstones (-2) fall out.  Raises FormatError if the lists disagree."""
        indices = ref.column_indices or _implied(ref)
        if len(indices) != len(ref.field_ids):
            message = f"{len(ref.field_ids)} field ids but {len(indices)} column indices"
            raise FormatError(message, where=Breadcrumb(ref.store_path))
        pairs = zip(ref.field_ids, indices, strict=True)
        return cls(ref, {FieldId(i): ColumnIndex(c) for i, c in pairs if i >= 0})


@dataclass(frozen=True, slots=True)
class RecentFiles:
    """The columns of the data files that were read last: columns of one file are read in many groups."""

    _known: list[tuple[FileColumns, ...]]

    @classmethod
    def none(cls) -> RecentFiles:
        """Return the files of a version before any was read."""
        return cls([()])

    def of(self, ref: DataFileRef) -> FileColumns:
        """Return the map of a file, made now or lately; threads may ask at once."""
        known = self._known[0]
        found = next((each for each in known if each.ref is ref), None)
        if found is None:
            found = FileColumns.of(ref)
            self._known[0] = (found, *known[: RECENT_FILES - 1])
        return found


def _implied(ref: DataFileRef) -> tuple[int, ...]:
    """Return the columns of a file when the manifest names none.

    In files of version 0.1 they follow from the ids: the page table begins with that of the first
    field, and leaves room for ids that the file does not have.
    """
    ids = ref.field_ids
    if not ref.has_page_table:
        return tuple(range(len(ids)))
    first = ref.first_field_id
    return tuple(max(field_id - first, -1) for field_id in ids)


@dataclass(frozen=True, slots=True)
class PartReader:
    """Reads one field of one file; errors on the way learn the file and the column."""

    read: ReadRows
    path: str
    column: str
    quick: ReadsAtOnce | None

    @classmethod
    def of(cls, read: ReadRows, path: str, column: str) -> PartReader:
        """Find out whether it reads some rows without steps."""
        return cls(read, path, column, read if isinstance(read, ReadsAtOnce) else None)

    def __call__(self, rows: Rows) -> Steps[list[pa.Array[Any]]]:
        """Return the steps that read rows."""
        try:
            return (yield from self.read(rows))
        except LanceError as error:
            raise error.located(Breadcrumb(self.path, self.column)) from None


class PartReaders(Sequence[PartReader]):
    """The readers of fields of a file, each made when it is first asked for."""

    __slots__ = ("_columns", "_fields", "_made", "_opened")

    def __init__(self, opened: OpenFile, columns: FileColumns, fields: Sequence[Field]) -> None:
        self._opened = opened
        self._columns = columns
        self._fields = fields
        self._made: list[PartReader | None] = [None] * len(fields)

    def __len__(self) -> int:
        return len(self._fields)

    @overload
    def __getitem__(self, index: int) -> PartReader: ...
    @overload
    def __getitem__(self, index: slice) -> list[PartReader]: ...
    def __getitem__(self, index: int | slice) -> PartReader | list[PartReader]:
        """Return a reader, or some."""
        if isinstance(index, slice):
            return [self[at] for at in range(len(self))[index]]
        found = self._made[index]
        if found is None:
            field = self._fields[index]
            read = _reader_of(self._opened, field, self._columns)
            found = PartReader.of(read, self._columns.ref.store_path, field.name)
            self._made[index] = found
        return found


def _reader_of(opened: OpenFile, field: Field, columns: FileColumns) -> ReadRows:
    """Return what reads a field of a file; of one before 2.2, blobs are of version 1."""
    if field.children and not opened.data.version.holds(Ability.BLOBS_V2):
        before = as_described_before(field)
        if before is not field:
            read = opened.data.field_reader(before, columns.column_of)
            return OlderReader(read, field)
    return opened.data.field_reader(field, columns.column_of)
