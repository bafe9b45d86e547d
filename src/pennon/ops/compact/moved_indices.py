"""Indices of rows that a compaction moves: written anew, with the new addresses.

An index that is not, because it cannot be read or is of a kind that Pennon does not make, covers neither the old
fragments nor the new ones afterwards: their rows are scanned until `optimize_indices`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from pennon.core.units import FragmentId
from pennon.errors import FormatError, NotFoundError, UnsupportedError
from pennon.index.registry import kind_of, stores_row_ids
from pennon.index.row_map import RowMap
from pennon.index.row_set import Numbers, of_fragments
from pennon.ops.index.create import plan_like
from pennon.scan.fragment_reader import FragmentReader
from pennon.scan.known_indices import known_indices
from pennon.scan.snapshot import Snapshot
from pennon.table.fragment import Fragment
from pennon.table.indices import SYSTEM, Index, RewrittenIndex
from pennon.table.operations import RewriteGroup

_UNREADABLE: Final = (FormatError, NotFoundError, UnsupportedError)


def moved_indices(snapshot: Snapshot, groups: Sequence[RewriteGroup]) -> tuple[RewrittenIndex, ...]:
    """Write the indices of old fragments anew, for the new ones; ``snapshot`` is what these were read of."""
    if not snapshot.manifest.indices:
        return ()
    found = []
    for index in known_indices(snapshot):
        mine = [each for each in groups if _covers(index, each.old)]
        if mine and _has_addresses(snapshot, index):
            try:
                found.append(_rewritten(snapshot, index, mine))
            except _UNREADABLE:
                continue
    return tuple(found)


def _covers(index: Index, fragments: Iterable[Fragment]) -> bool:
    covered = index.fragment_ids or frozenset()
    return all(each.id in covered for each in fragments)


def _has_addresses(snapshot: Snapshot, index: Index) -> bool:
    """Return whether an index has the addresses of single rows, and is of a kind that can be made anew."""
    kind = kind_of(index)
    if not index.is_vector and (kind is None or kind.making.by_zones):
        return False
    if index.name in SYSTEM or len(index.field_ids) != 1:
        return False
    return not (snapshot.manifest.has_stable_row_ids and stores_row_ids(index))


def _rewritten(snapshot: Snapshot, index: Index, groups: Sequence[RewriteGroup]) -> RewrittenIndex:
    moved = {fragment.id for group in groups for fragment in group.old}
    # what is gone stays, too: a fragment reuse index may say where it is
    stays = (index.fragment_ids or frozenset()) - moved
    made = plan_like(snapshot, index, ()).rewrite(index, _moves(snapshot, stays, groups))
    url, details = made.details or ("", b"")
    return RewrittenIndex(index.uuid, made.uuid, url, details, made.index_version, made.files)


def _moves(
    snapshot: Snapshot, stays: Iterable[FragmentId], groups: Iterable[RewriteGroup]
) -> RowMap:
    """Return where the rows of fragments are after they were rewritten: live rows, one after the other."""
    moved = [
        RowMap.of_order(
            *_live_ranges(snapshot, group.old),
            [each.id for each in group.new],
            [each.physical_rows or 0 for each in group.new],
        )
        for group in groups
    ]
    return RowMap.joined([*moved, RowMap.keeping(of_fragments(stays))])


def _live_ranges(snapshot: Snapshot, fragments: Iterable[Fragment]) -> tuple[Numbers, Numbers]:
    """Return the addresses of the live rows of fragments, as ranges."""
    starts, lasts = [], []
    for fragment in fragments:
        live = FragmentReader(snapshot, fragment).live_rows()
        first = np.concatenate([[0], live.deleted + 1])
        end = np.append(live.deleted, live.physical_rows)
        filled = end > first
        base = np.uint64(fragment.id << 32)
        starts.append(first[filled].astype(np.uint64) + base)
        lasts.append(end[filled].astype(np.uint64) + base - np.uint64(1))
    return np.concatenate(starts), np.concatenate(lasts)
