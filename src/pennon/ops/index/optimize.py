"""Bringing indices up to date: rows that came since are indexed, segments merged, and those of gone rows dropped."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Final

from pennon.core.units import FragmentId
from pennon.errors import FormatError, NotFoundError, UnsupportedError
from pennon.index.files import made_now
from pennon.index.kinds import rows_named, stores_row_ids
from pennon.ops.commit import commit_on
from pennon.ops.index.build import Builder, Origin, carried
from pennon.ops.index.builders import THREADS
from pennon.ops.index.check import is_made_here, wrong_segments
from pennon.ops.index.create import build_index, plan_like
from pennon.ops.row_history import has_moved_rows, live_row_ids
from pennon.scan.plan.known_indices import known_indices
from pennon.scan.plan.moved_rows import moved_rows
from pennon.scan.snapshot import Snapshot
from pennon.table.fragment import Fragment
from pennon.table.indices import SYSTEM, Index
from pennon.table.manifest import Manifest
from pennon.table.operations import CreateIndex

_UNREADABLE: Final = (FormatError, NotFoundError, UnsupportedError)
_CHECKED_FRAGMENTS: Final = 16
"""The number of fragments whose rows are looked up, to find out whether an index names them."""


def optimize_indices(
    snapshot: Snapshot,
    *,
    num_indices_to_merge: int | None = None,
    index_names: Collection[str] | None = None,
    retrain: bool = False,
    builder: Builder = THREADS,
) -> Manifest | None:
    """Index the fragments that no segment covers, and merge segments; return the version made.

    None where there was nothing to do.  The last ``num_indices_to_merge`` segments of each index and the new
    rows become one, by default the last, and all where rows with stable ids were updated since; with 0 the new rows
    are a segment of their own.  Segments that name rows which another one has now are written anew without them.  ``retrain``: every
    index is made anew, of one segment.  A segment that cannot be read is made anew, and, with a warning, an index that does not name some rows of a
    sample that it should.  Indices of kinds that Pennon
    does not make are left alone, with a warning.
    """
    named: dict[str, list[Index]] = defaultdict(list)
    for index in known_indices(snapshot):
        if index.name not in SYSTEM and (index_names is None or index.name in index_names):
            named[index.name].append(index)
    new: list[Index] = []
    removed: list[Index] = []
    for name, segments in named.items():
        anew = retrain or _is_wrong(snapshot, name, segments)
        made, gone = optimized_segments(
            snapshot, segments, num_indices_to_merge, builder, retrain=anew
        )
        if made:
            kept = [each for each in segments if each not in gone]
            new += [*kept, *made]  # a commit replaces all segments of a name
            removed += gone
    return commit_on(snapshot, CreateIndex(tuple(new), tuple(removed))) if new else None


def _is_wrong(snapshot: Snapshot, name: str, segments: Sequence[Index]) -> bool:
    """Return whether an index does not name rows that it should, with a warning."""
    for wrong in wrong_segments(snapshot, segments, _CHECKED_FRAGMENTS):
        message = f"the index {name!r} is made anew: {wrong.why}"
        warnings.warn(message, UserWarning, stacklevel=4)
        return True
    return False


def optimized_segments(
    snapshot: Snapshot,
    segments: Sequence[Index],
    merged: int | None,
    builder: Builder,
    *,
    retrain: bool,
) -> tuple[list[Index], list[Index]]:
    """Return the new segments of an index, and those that they stand for."""
    covered = {number for each in segments for number in _carried(snapshot, each)}
    alive = {each.id for each in snapshot.manifest.fragments}
    fresh = [each for each in snapshot.manifest.fragments if each.id not in covered]
    count = 1 if merged is None else merged
    old = list(segments[len(segments) - count :]) if count else []
    kept = [] if retrain else [each for each in segments if each not in old]
    stale, claiming = _stale(snapshot, kept), [e for e in kept if _claims_more(snapshot, e)]
    if merged is None and (stale or (len(segments) > 1 and has_moved_rows(snapshot, fresh))):
        old, stale, claiming = list(segments), [], []
    if not (retrain or fresh or stale or len(old) > 1):
        return [], []
    if not is_made_here(snapshot, segments):
        name = segments[0].name
        message = f"the index {name!r} is of a kind, or a column, that Pennon does not make one of; it was left as it is"
        warnings.warn(message, UserWarning, stacklevel=4)
        return [], []
    made: list[Index] = []
    gone: list[Index] = []
    for each in kept:
        if each in stale or each in claiming:
            gone.append(each)
            if each in stale or alive & _carried(snapshot, each):
                made.append(_remade(snapshot, [each], [each], [], builder, retrain=False)[0])
    if retrain or fresh or len(old) > 1:
        one, replaced = _remade(snapshot, segments, old, fresh, builder, retrain=retrain)
        made.append(one)
        gone += replaced
    return made, gone


def _remade(
    snapshot: Snapshot,
    segments: Sequence[Index],
    old: Sequence[Index],
    fresh: Sequence[Fragment],
    builder: Builder,
    *,
    retrain: bool,
) -> tuple[Index, list[Index]]:
    """Return the new segment of old ones and new fragments, and the segments that it stands for."""
    last = segments[-1]
    if retrain:
        build = plan_like(snapshot, last, None, Origin.RETRAINED)
        return build_index(build, builder), list(segments)
    try:
        build = plan_like(snapshot, last, fresh).train(builder)
        return build.extended(last, old, builder), list(old)
    except _UNREADABLE:
        replaced = list(old or [last])
        again = {number for each in replaced for number in _carried(snapshot, each)}
        again.update(each.id for each in fresh)
        chosen = [each for each in snapshot.manifest.fragments if each.id in again]
        anew = plan_like(snapshot, last, chosen, Origin.DETAILS)
        return build_index(anew, builder), replaced


def _stale(snapshot: Snapshot, kept: Sequence[Index]) -> list[Index]:
    """Return those segments that name stable ids of rows which live in fragments that they do not cover.

    Such a row was updated: another segment has its new value.  pylance 14 finds it by the old one, too: ledger F-555.
    """
    if not snapshot.manifest.has_stable_row_ids:
        return []
    found = []
    for each in kept:
        if not stores_row_ids(each):
            continue
        covered = _carried(snapshot, each)
        others = [f for f in snapshot.manifest.fragments if f.id not in covered]
        try:
            named = rows_named(each, snapshot.index_files(each, made_now))
        except _UNREADABLE:
            continue
        if others and not named.intersection(live_row_ids(snapshot, others)).is_empty:
            found.append(each)
    return found


def _claims_more(snapshot: Snapshot, segment: Index) -> bool:
    """Return whether a segment covers fragments, by what its entry says, whose rows are to be taken from the table.

    Two segments must not cover one fragment.
    """
    try:
        claimed = moved_rows(snapshot).covered(segment.fragment_ids or frozenset())
    except _UNREADABLE:
        return False
    alive = {each.id for each in snapshot.manifest.fragments}
    return not _carried(snapshot, segment) >= claimed & alive


def _carried(snapshot: Snapshot, segment: Index) -> frozenset[FragmentId]:
    try:
        return carried(snapshot, segment)
    except _UNREADABLE:  # where its rows are now
        return frozenset()
