"""Bringing indices up to date: rows that came since are indexed, segments merged, and those of gone rows dropped."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Final

from pennon.core.loggers import MAINTENANCE
from pennon.core.units import FragmentId
from pennon.errors import FormatError, NotFoundError, UnsupportedError
from pennon.index.files import made_now
from pennon.index.kinds import rows_named, stores_row_ids
from pennon.ops.commit import commit_on
from pennon.ops.index.build import Builder, Origin, carried, is_by_zones
from pennon.ops.index.builders import THREADS
from pennon.ops.index.check import is_made_here, wrong_segments
from pennon.ops.index.create import build_index, plan_like
from pennon.ops.row_history import has_moved_rows, live_row_ids
from pennon.scan.plan.known_indices import known_indices
from pennon.scan.plan.moved_rows import moved_rows, named_now
from pennon.scan.read.fragment_reader import live_addresses
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
    are a segment of their own.  Segments that name rows which another one has now, by ids or because a column
    was written anew in its place, are written anew without them.  ``retrain``: every
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
    if not new:
        return None
    manifest = commit_on(snapshot, CreateIndex(tuple(new), tuple(removed)))
    names = ", ".join(sorted({index.name for index in new}))
    uri, version = snapshot.store.uri, manifest.version
    MAINTENANCE.info("%s: version %d has indices brought up to date: %s", uri, version, names)
    return manifest


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
    stale = _stale(snapshot, segments, kept, fresh)
    claiming = [each for each in kept if _claims_more(snapshot, each)]
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


def _stale(
    snapshot: Snapshot, segments: Sequence[Index], kept: Sequence[Index], fresh: Sequence[Fragment]
) -> list[Index]:
    """Return those kept segments that name rows which live in fragments that they do not cover.

    Such a row has another value by now, which another segment has, or will have: pylance 14 would find it by the
    old one, too.  By stable ids it was updated (ledger F-555); by addresses its column was written anew in its place.
    """
    rewritten = _maybe_written_anew(snapshot, segments, fresh)
    return [each for each in kept if _is_stale(snapshot, each, rewritten)]


def _is_stale(snapshot: Snapshot, segment: Index, rewritten: Sequence[Fragment]) -> bool:
    """Return whether a segment names rows that live elsewhere, or whose columns may have been written anew."""
    by_ids = snapshot.manifest.has_stable_row_ids and stores_row_ids(segment)
    others: Sequence[Fragment] = rewritten
    if by_ids:
        covered = _carried(snapshot, segment)
        others = [each for each in snapshot.manifest.fragments if each.id not in covered]
    elif is_by_zones(segment):  # whatever zones a filter chooses, it tests their rows
        return False
    if not others:
        return False
    try:
        if by_ids:
            named = rows_named(segment, snapshot.index_files(segment, made_now))
            return not named.intersection(live_row_ids(snapshot, others)).is_empty
        return (
            not named_now(snapshot, segment).intersection(live_addresses(snapshot, others)).is_empty
        )
    except _UNREADABLE:
        return False


def _maybe_written_anew(
    snapshot: Snapshot, segments: Sequence[Index], fresh: Sequence[Fragment]
) -> Sequence[Fragment]:
    """Return those of new fragments whose rows a segment may name: all but those that were plainly appended.

    To look what a segment names costs as much as to read its row numbers.
    """
    try:
        if moved_rows(snapshot).maps:
            return fresh
    except _UNREADABLE:
        return fresh
    newest = max((max(each.fragment_ids or (-1,)) for each in segments), default=-1)
    return [
        each
        for each in fresh
        if each.id <= newest
        or len(each.files) > 1
        or any(field < 0 for file in each.files for field in file.field_ids)
    ]


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
