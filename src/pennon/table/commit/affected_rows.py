"""The rows that a delete or an update takes away, as its deletion files tell.

Who plans and commits in one go knows these rows.  A transaction that is committed by hand, maybe on
another machine, does not say them; but they are what the new deletion file of a fragment names and
that of the version it was planned on does not.  They are read if another writer changed the same
fragment, and so such a commit is judged as strictly, and rebased as well, as any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from pennon.core.units import FragmentId
from pennon.errors import RetryableConflict
from pennon.io.store import Opens
from pennon.table.deletion import read_deletions
from pennon.table.fragment import Fragment
from pennon.table.manifest import Manifest
from pennon.table.operations import Delete, Update
from pennon.table.roaring import Offsets


class NewDeletions(Mapping[FragmentId, Offsets]):
    """The rows of each fragment that an operation takes away; a fragment's are read when asked for.

    Fragments of which nothing is left, or no row goes, are not among them.
    """

    def __init__(self, store: Opens, base: Manifest, operation: Delete | Update) -> None:
        """``base`` is the version that the operation was planned on."""
        before = {fragment.id: fragment for fragment in base.fragments}
        self._store = store
        self._changed = {
            after.id: (before[after.id], after)
            for after in operation.updated
            if after.id in before and after.deletion_file != before[after.id].deletion_file
        }

    def __getitem__(self, fragment_id: FragmentId) -> Offsets:
        """Read both deletion files."""
        dead, rows = self._read(fragment_id)
        return np.setdiff1d(rows, dead, assume_unique=True).astype(np.uint32)

    def __iter__(self) -> Iterator[FragmentId]:
        """Iterate over the fragments."""
        return iter(self._changed)

    def __len__(self) -> int:
        """Return the number of fragments."""
        return len(self._changed)

    def check_nothing_returns(self, read_version: int) -> None:
        """Raise RetryableConflict if a row that is dead in the base would live again.

        As where an operation was planned on an older version than it says: its deletion files lack
        what others deleted since.  One that was written for the base has all of it.
        """
        for fragment_id, (before, after) in self._changed.items():
            if before.deletion_file is None or _planned_on(after) == read_version:
                continue
            dead, rows = self._read(fragment_id)
            lost = np.setdiff1d(dead, rows, assume_unique=True)
            if len(lost):
                message = (
                    f"row {lost[0]} of fragment {fragment_id} is deleted in version {read_version}, but "
                    "not here: it was planned on an older one; try again on the newest version"
                )
                raise RetryableConflict(message)

    def _read(self, fragment_id: FragmentId) -> tuple[Offsets, Offsets]:
        before, after = self._changed[fragment_id]
        return read_deletions(self._store, before), read_deletions(self._store, after)


def _planned_on(fragment: Fragment) -> int | None:
    return None if fragment.deletion_file is None else fragment.deletion_file.read_version
