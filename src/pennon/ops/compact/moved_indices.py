"""Indices of rows that a compaction moves: written anew, with the new addresses.

An index that is not, because it cannot be read or is of a kind that Pennon does not make, covers neither the old
fragments nor the new ones afterwards: their rows are scanned until `optimize_indices`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from pennon.core.byte_ranges import Int64Array
from pennon.errors import FormatError, NotFoundError, UnsupportedError
from pennon.index.registry import kind_of, stores_row_ids
from pennon.index.row_map import RowMap
from pennon.index.row_set import Numbers
from pennon.ops.index.create import plan_like
from pennon.scan.fragment_reader import FragmentReader
from pennon.scan.snapshot import Snapshot
from pennon.table.fragment import Fragment
from pennon.table.indices import SYSTEM, Index, RewrittenIndex
from pennon.table.indices_wire import parse_indices
from pennon.table.operations import RewriteGroup

_UNREADABLE: Final = (FormatError, NotFoundError, UnsupportedError)
_LAST: Final = np.uint64(0xFFFFFFFF)


def moved_indices(snapshot: Snapshot, groups: Sequence[RewriteGroup]) -> tuple[RewrittenIndex, ...]:
    """Write the indices of old fragments anew, for the new ones; ``snapshot`` is what these were read of."""
    if not snapshot.manifest.indices:
        return ()
    found = []
    for index in parse_indices(snapshot.manifest.indices):
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
    if kind is None or kind.making.by_zones or index.name in SYSTEM or len(index.field_ids) != 1:
        return False
    return not (snapshot.manifest.has_stable_row_ids and stores_row_ids(index))


def _rewritten(snapshot: Snapshot, index: Index, groups: Sequence[RewriteGroup]) -> RewrittenIndex:
    moved = {fragment.id for group in groups for fragment in group.old}
    covered = (index.fragment_ids or frozenset()) - moved
    stays = [each for each in snapshot.manifest.fragments if each.id in covered]
    made = plan_like(snapshot, index, ()).rewrite(index, _moves(snapshot, stays, groups))
    url, details = made.details or ("", b"")
    return RewrittenIndex(index.uuid, made.uuid, url, details, made.index_version, made.files)


def _moves(snapshot: Snapshot, stays: Iterable[Fragment], groups: Iterable[RewriteGroup]) -> RowMap:
    """Return where the rows of fragments are after they were rewritten: live rows, one after the other."""
    starts, lasts, targets = [], [], []
    for fragment in stays:
        first = np.array([fragment.id << 32], np.uint64)
        starts.append(first)
        lasts.append(first | _LAST)
        targets.append(first)
    for group in groups:
        old, ends = _live_ranges(snapshot, group.old)
        new = np.array([each.id << 32 for each in group.new], np.uint64)
        # pieces of rows that follow one another before and after
        old_from = _positions((ends - old).astype(np.int64))
        new_from = _positions(np.array([each.physical_rows or 0 for each in group.new], np.int64))
        if old_from[-1] != new_from[-1]:
            message = f"{old_from[-1]} rows of fragments were rewritten as {new_from[-1]}"
            raise FormatError(message)
        pieces = np.union1d(old_from, new_from)
        begin, rows = pieces[:-1], np.diff(pieces).astype(np.uint64)
        at_old = np.searchsorted(old_from, begin, side="right") - 1
        at_new = np.searchsorted(new_from, begin, side="right") - 1
        first = old[at_old] + (begin - old_from[at_old]).astype(np.uint64)
        starts.append(first)
        lasts.append(first + rows - np.uint64(1))
        targets.append(new[at_new] + (begin - new_from[at_new]).astype(np.uint64))
    first, last, target = (
        np.concatenate([np.empty(0, np.uint64), *each]) for each in (starts, lasts, targets)
    )
    order = np.argsort(first)
    return RowMap(first[order], last[order], target[order])


def _live_ranges(snapshot: Snapshot, fragments: Iterable[Fragment]) -> tuple[Numbers, Numbers]:
    """Return the addresses of the live rows of fragments, as half-open ranges."""
    starts, ends = [], []
    for fragment in fragments:
        live = FragmentReader(snapshot, fragment).live_rows()
        first = np.concatenate([[0], live.deleted + 1])
        end = np.append(live.deleted, live.physical_rows)
        filled = end > first
        base = np.uint64(fragment.id << 32)
        starts.append(first[filled].astype(np.uint64) + base)
        ends.append(end[filled].astype(np.uint64) + base)
    return np.concatenate(starts), np.concatenate(ends)


def _positions(lengths: Int64Array) -> Int64Array:
    """Return where pieces begin that lie one after the other, and where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
