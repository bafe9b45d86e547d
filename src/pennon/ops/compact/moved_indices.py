"""Indices of rows that a compaction moves: written anew, with the new addresses.

An index that is not written anew covers neither the old fragments nor the new ones afterwards: their rows are scanned
until `optimize_indices`.  That is so where it cannot be read, is of a kind that Pennon does not make, or lost rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from pennon.core.units import FragmentId
from pennon.errors import FormatError, NotFoundError, UnsupportedError
from pennon.index.kinds import kind_of, stores_row_ids
from pennon.index.row_map import RowMap
from pennon.index.row_set import of_fragments
from pennon.ops.index.create import plan_like
from pennon.scan.plan.known_indices import known_indices
from pennon.scan.plan.moved_rows import covered_now, has_all, moved_rows, named_now
from pennon.scan.read.fragment_reader import live_addresses
from pennon.scan.snapshot import Snapshot
from pennon.table.indices import SYSTEM, Index, RewrittenIndex
from pennon.table.operations import RewriteGroup

_UNREADABLE: Final = (FormatError, NotFoundError, UnsupportedError)


def moved_indices(snapshot: Snapshot, groups: Sequence[RewriteGroup]) -> tuple[RewrittenIndex, ...]:
    """Write the indices of old fragments anew, for the new ones; ``snapshot`` is what these were read of.

    The live rows of each group must have kept their order.
    """
    if not snapshot.manifest.indices:
        return ()
    found = []
    for index in known_indices(snapshot):
        if not _has_addresses(snapshot, index):
            continue
        try:
            mine = _groups_of(snapshot, index, groups)
            if mine:
                found.append(_rewritten(snapshot, index, mine))
        except _UNREADABLE:
            continue
    return tuple(found)


def _groups_of(
    snapshot: Snapshot, index: Index, groups: Sequence[RewriteGroup]
) -> list[RewriteGroup]:
    """Return the groups that an index covers; none if it lost rows of one of them, for it would cover what became of all."""
    claimed = index.fragment_ids or frozenset()
    mine = [group for group in groups if claimed.issuperset(each.id for each in group.old)]
    old = [each for group in mine for each in group.old]
    if not covered_now(snapshot, index).issuperset(each.id for each in old):
        return []
    kind = kind_of(index)
    names_all = kind is not None and kind.names_all
    if mine and names_all and not has_all(snapshot, named_now(snapshot, index), old):
        return []
    return mine


def _has_addresses(snapshot: Snapshot, index: Index) -> bool:
    """Return whether an index has the addresses of single rows, and is of a kind that can be made anew."""
    kind = kind_of(index)
    if kind is None or kind.by_zones:
        return False
    if index.name in SYSTEM or len(index.field_ids) != 1:
        return False
    return not (snapshot.manifest.has_stable_row_ids and stores_row_ids(index))


def _rewritten(snapshot: Snapshot, index: Index, groups: Sequence[RewriteGroup]) -> RewrittenIndex:
    moved = {fragment.id for group in groups for fragment in group.old}
    stays = ((index.fragment_ids or frozenset()) | covered_now(snapshot, index)) - moved
    # its files may name rows by where they were before compactions that left the indices as they were
    moves = moved_rows(snapshot).as_one().then(_moves(snapshot, stays, groups))
    made = plan_like(snapshot, index, ()).rewrite(index, moves)
    url, details = made.details or ("", b"")
    return RewrittenIndex(index.uuid, made.uuid, url, details, made.index_version, made.files)


def _moves(
    snapshot: Snapshot, stays: Iterable[FragmentId], groups: Iterable[RewriteGroup]
) -> RowMap:
    """Return where the rows of fragments are after they were rewritten: live rows, one after the other."""
    moved = []
    for group in groups:
        live = [live_addresses(snapshot, [fragment]) for fragment in group.old]
        starts = np.concatenate([np.empty(0, np.uint64), *(each.starts for each in live)])
        lasts = np.concatenate([np.empty(0, np.uint64), *(each.lasts for each in live)])
        ids = [each.id for each in group.new]
        moved.append(
            RowMap.of_order(starts, lasts, ids, [each.physical_rows or 0 for each in group.new])
        )
    return RowMap.joined([*moved, RowMap.keeping(of_fragments(stays))])
