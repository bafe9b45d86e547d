"""The columns of a fragment's data files, from the manifest."""

from __future__ import annotations

from typing import Final

from pennon.core.fast_dataclass import dataclass
from pennon.core.units import ColumnIndex, FieldId
from pennon.errors import Breadcrumb, FormatError
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
