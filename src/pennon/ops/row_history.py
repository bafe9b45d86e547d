"""Row ids and row versions of tables with stable row ids: carried along when rows move.

A row's version of creation is 1 where its fragment does not say it, and its version of last change
is then that of its creation.

Source: `rechunk_stable_row_ids` and `recalc_versions_for_rewritten_fragments` in
rust/lance/src/dataset/optimize.rs, Lance repository.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pennon.index.row_set import RowSet
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.scan.snapshot import Snapshot
from pennon.table.fragment import Fragment
from pennon.table.fragment import Sequence as Stored
from pennon.table.row_ids import RowIds
from pennon.table.row_ids.decode_wire import decode_row_versions, read_sequence
from pennon.table.row_ids.encode_wire import encode_row_ids, encode_row_versions


@dataclass(frozen=True, slots=True, eq=False)
class RowHistory:
    """The id, the creating version and the last updating version of each of some rows."""

    ids: RowIds
    created: RowIds
    updated: RowIds

    @classmethod
    def joined(cls, each: Sequence[RowHistory]) -> RowHistory:
        """Return that of the rows of all, in order."""
        parts = zip(*((one.ids, one.created, one.updated) for one in each), strict=True)
        return cls(*map(np.concatenate, parts))

    def given_to(self, new: Sequence[Fragment]) -> list[Fragment]:
        """Return the new fragments, whose rows these are, with what their rows take along."""
        done, start = [], 0
        for fragment in new:
            mine = slice(start, start + (fragment.physical_rows or 0))
            start = mine.stop
            moved = replace(
                fragment,
                row_ids=encode_row_ids(self.ids[mine]),
                created_at_versions=encode_row_versions(self.created[mine]),
                last_updated_at_versions=encode_row_versions(self.updated[mine]),
            )
            done.append(moved)
        return done


def with_history(
    snapshot: Snapshot, old: Sequence[Fragment], new: Sequence[Fragment]
) -> list[Fragment]:
    """Return the new fragments with the ids and versions of the live rows of the old ones."""
    if not snapshot.manifest.has_stable_row_ids or not new:
        return list(new)
    return RowHistory.joined([_history(snapshot, fragment) for fragment in old]).given_to(new)


def has_moved_rows(snapshot: Snapshot, fragments: Iterable[Fragment]) -> bool:
    """Return whether a row with a stable id was changed since it was created, and so came from another fragment."""
    if not snapshot.manifest.has_stable_row_ids:
        return False
    histories = (_history(snapshot, fragment) for fragment in fragments)
    return any(bool((each.created != each.updated).any()) for each in histories)


def live_row_ids(snapshot: Snapshot, fragments: Iterable[Fragment]) -> RowSet:
    """Return the stable ids of the live rows of fragments."""
    ids = [_history(snapshot, fragment).ids for fragment in fragments]
    return RowSet.of(np.concatenate([np.empty(0, np.uint64), *ids]))


def _history(snapshot: Snapshot, fragment: Fragment) -> RowHistory:
    """Return id, version of creation and version of last change of each live row."""
    reader = FragmentReader(snapshot, fragment)
    rows = reader.physical_rows()
    live = reader.live_rows()
    kept = live.between(0, live.count).physical()
    ids = snapshot.row_ids(fragment, rows)
    created = _versions(snapshot, fragment.created_at_versions, rows, np.ones(rows, np.uint64))
    updated = _versions(snapshot, fragment.last_updated_at_versions, rows, created)
    return RowHistory(ids[kept], created[kept], updated[kept])


def _versions(snapshot: Snapshot, stored: Stored | None, rows: int, missing: RowIds) -> RowIds:
    if stored is None:
        return missing
    return decode_row_versions(read_sequence(snapshot.store, stored), rows)
