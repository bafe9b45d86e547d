"""Bringing indices up to date: rows that came since are indexed, segments merged, and those of gone rows dropped."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Collection, Sequence

from pennon.core.units import FragmentId
from pennon.errors import FormatError, NotFoundError, UnsupportedError
from pennon.index.registry import kind_of
from pennon.ops.commit import commit_on
from pennon.ops.index.build import THREADS, Builder, IndexBuild, carried
from pennon.ops.index.create import build_index, fits_column, plan_like
from pennon.ops.index.vectors import has_vectors, optimized_vectors
from pennon.scan.known_indices import known_indices
from pennon.scan.snapshot import Snapshot
from pennon.table.indices import SYSTEM, Index
from pennon.table.manifest import Manifest
from pennon.table.operations import CreateIndex

_UNREADABLE = (FormatError, NotFoundError, UnsupportedError)


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
    rows become one, by default the last; with 0 the new rows are a segment of their own.  ``retrain``: every
    index is made anew, of one segment.  A segment that cannot be read is made anew.  Indices of kinds that Pennon
    does not make are left alone, with a warning.
    """
    merged = 1 if num_indices_to_merge is None else num_indices_to_merge
    named: dict[str, list[Index]] = defaultdict(list)
    for index in known_indices(snapshot):
        if index.name not in SYSTEM and (index_names is None or index.name in index_names):
            named[index.name].append(index)
    new: list[Index] = []
    removed: list[Index] = []
    for segments in named.values():
        made, gone = optimized_segments(snapshot, segments, merged, builder, retrain=retrain)
        if made is not None:
            kept = [each for each in segments if each not in gone]
            new += [*kept, made]  # a commit replaces all segments of a name
            removed += gone
    return commit_on(snapshot, CreateIndex(tuple(new), tuple(removed))) if new else None


def optimized_segments(
    snapshot: Snapshot,
    segments: Sequence[Index],
    merged: int,
    builder: Builder,
    *,
    retrain: bool,
) -> tuple[Index | None, list[Index]]:
    """Return the new segment of an index, if there is one, and the segments that it stands for."""
    covered = {number for each in segments for number in _carried(snapshot, each)}
    fresh = [each for each in snapshot.manifest.fragments if each.id not in covered]
    old = list(segments[len(segments) - merged :]) if merged else []
    if not (retrain or fresh or len(old) > 1):
        return None, []
    if all(each.is_vector for each in segments) and has_vectors(snapshot, segments):
        return optimized_vectors(snapshot, segments, old, fresh, builder, retrain=retrain)
    kinds = {kind_of(each) for each in segments}
    if (
        None in kinds
        or len(kinds) != 1
        or not all(fits_column(snapshot, each) for each in segments)
    ):
        name = segments[0].name
        message = f"the index {name!r} is of a kind, or a column, that Pennon does not make one of; it was left as it is"
        warnings.warn(message, UserWarning, stacklevel=4)
        return None, []
    if retrain:
        return build_index(plan_like(snapshot, segments[-1], None), builder), list(segments)
    try:
        return _merged(plan_like(snapshot, segments[-1], fresh), old, builder), old
    except _UNREADABLE:
        again = {number for each in old for number in _carried(snapshot, each)}
        chosen = [f for f in snapshot.manifest.fragments if f.id in again or f.id not in covered]
        return build_index(
            plan_like(snapshot, segments[-1], chosen, with_parameters=False), builder
        ), old


def _carried(snapshot: Snapshot, segment: Index) -> frozenset[FragmentId]:
    try:
        return carried(snapshot, segment)
    except _UNREADABLE:  # where its rows are now
        return frozenset()


def _merged(build: IndexBuild, old: Sequence[Index], builder: Builder) -> Index:
    """Return the segment of new rows and old segments."""
    if not old:
        return build_index(build, builder)
    fresh = builder.segments(build) if any(build.groups) else ()
    return builder.merge(build, [*old, *fresh])
