"""Fragments: some rows of a table each, and the files that hold them.

A manifest names its fragments in scan order, each with its data files, its deletion file and, in
tables with stable row ids, the ids of its rows.  Transactions name them the same way.

Protobuf fields that Pennon does not know are carried along as bytes (``unknown``), so that a table
goes through Pennon without losing what a newer writer put into it.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import field, replace
from enum import IntEnum
from itertools import pairwise
from typing import TypeAlias

from pennon.core.fast_dataclass import dataclass
from pennon.core.units import FieldId, FragmentId
from pennon.schema.field import Schema
from pennon.schema.version import V0_1, FileVersion

TOMBSTONE = FieldId(-2)
"""Stands in ``DataFileRef.field_ids`` for a field whose column in this file is dead."""

NO_COLUMN = -1
"""Stands in ``DataFileRef.column_indices`` for a field without a column of its own."""

MAX_ROWS = 1 << 32
"""A fragment has no more rows than a row address can tell apart."""

MAX_FRAGMENT_ID = (1 << 32) - 1


def _in_base(base_id: int | None, path: str) -> str:
    return path if base_id is None else f"@{base_id}/{path}"


@dataclass(frozen=True, slots=True)
class WrittenColumns:
    """The schema that a data file was written with, and the columns of its fields.

    It spares a commit to read the file's own schema, which is the same.
    """

    schema: Schema
    field_ids: tuple[FieldId, ...]
    column_indices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DataFileRef:
    """A data file of a fragment; ``path`` is relative to the folder ``data/``.

    ``field_ids[i]`` lies in the file's column ``column_indices[i]``; version 0.1 files have no
    column indices.  ``major`` and ``minor`` are the numbers as written: (0, 3) is version 2.0.
    ``size_bytes`` is None where the writer did not say.
    """

    path: str
    field_ids: tuple[FieldId, ...]
    column_indices: tuple[int, ...]
    major: int
    minor: int
    size_bytes: int | None = None
    base_id: int | None = None
    unknown: bytes = field(default=b"", repr=False)
    written: WrittenColumns | None = field(default=None, repr=False, compare=False)
    """The columns that this process, or the task that sent it the fragment, wrote; no manifest holds it."""

    @property
    def store_path(self) -> str:
        """Return the path relative to the table's root, or to a base's (`pennon.table.base_paths`)."""
        return _in_base(self.base_id, f"data/{self.path}")

    @property
    def has_page_table(self) -> bool:
        """Return whether the file is of version 0.1, whose page table is in the order of field ids."""
        return FileVersion.from_numbers(self.major, self.minor) == V0_1

    @property
    def first_field_id(self) -> int:
        """Return the id of the field whose pages are the first of the page table (version 0.1).

        The first id that lives tells it by its place: the ids ascend, and a tombstone stands for each
        that is dead.  Where they do not ascend (Pennon wrote such for a while) it is the smallest.
        """
        ids = self.field_ids
        first = next((each - place for place, each in enumerate(ids) if each >= 0), 0)
        return min(first, min((each for each in ids if each >= 0), default=0))

    @property
    def has_ascending_ids(self) -> bool:
        """Return whether the ids of fields that live ascend, as they must at version 0.1."""
        ids = [each for each in self.field_ids if each >= 0]
        return all(one < next_one for one, next_one in pairwise(ids))

    def without(self, gone: Container[FieldId]) -> DataFileRef:
        """Return the file with fields dead that a newer one holds."""
        ids = tuple(TOMBSTONE if each in gone else each for each in self.field_ids)
        if ids != self.field_ids and self.has_page_table:
            first = self.first_field_id
            missing = next((i - first - n for n, i in enumerate(ids) if i >= 0), 0)
            ids = (TOMBSTONE,) * missing + ids
        return replace(self, field_ids=ids)


class DeletionKind(IntEnum):
    """The storage form of a deletion file's row offsets; the numbers are those of table.proto."""

    ARROW = 0
    BITMAP = 1


@dataclass(frozen=True, slots=True)
class DeletionFileRef:
    """A deletion file: which rows of its fragment are dead.

    ``num_deleted_rows`` is None where the writer did not say, or is known to say wrong.
    """

    kind: DeletionKind
    read_version: int
    id: int
    num_deleted_rows: int | None = None
    base_id: int | None = None
    unknown: bytes = field(default=b"", repr=False)

    def store_path(self, fragment: FragmentId) -> str:
        """Return the path relative to the root, or to a base's; it is made of numbers only."""
        suffix = "arrow" if self.kind is DeletionKind.ARROW else "bin"
        name = f"_deletions/{fragment}-{self.read_version}-{self.id}.{suffix}"
        return _in_base(self.base_id, name)


@dataclass(frozen=True, slots=True)
class ExternalFile:
    """Bytes kept in a file of their own, at ``offset``; ``path`` is relative to the root."""

    path: str
    offset: int
    size_bytes: int


Sequence: TypeAlias = bytes | ExternalFile
"""A serialized sequence (row ids, row versions): inline, or in a file."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """Some rows of the table, in one or more data files of equal length.

    ``physical_rows`` counts deleted rows too.  It is None where the writer did not say, or is
    known to say wrong: the reader then asks the data file.
    """

    id: FragmentId
    files: tuple[DataFileRef, ...]
    physical_rows: int | None
    deletion_file: DeletionFileRef | None = None
    row_ids: Sequence | None = None
    last_updated_at_versions: Sequence | None = None
    created_at_versions: Sequence | None = None
    unknown: bytes = field(default=b"", repr=False)

    @property
    def num_deleted_rows(self) -> int | None:
        """Return how many rows are deleted, or None if only the deletion file knows."""
        return 0 if self.deletion_file is None else self.deletion_file.num_deleted_rows

    @property
    def num_rows(self) -> int | None:
        """Return how many rows live, or None if the manifest does not say."""
        deleted = self.num_deleted_rows
        if self.physical_rows is None or deleted is None:
            return None
        return self.physical_rows - deleted


@dataclass(frozen=True, slots=True)
class BasePath:
    """Another place where files of this table may lie."""

    id: int
    path: str
    name: str | None = None
    is_dataset_root: bool = False
