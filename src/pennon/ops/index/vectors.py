"""Indices of vectors: made, and brought up to date."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from pennon.errors import FormatError, NotFoundError, UnsupportedError
from pennon.index.vector.build.opened_index import open_stored
from pennon.index.vector.build.train import Done
from pennon.index.vector.rows import is_vector
from pennon.ops.commit import commit_on
from pennon.ops.index.build import THREADS, Builder, IndexBuild, leaf_of, path_of
from pennon.ops.index.create import build_index, check_name, in_folder, new_name
from pennon.ops.index.progress import Watch, with_progress
from pennon.ops.index.vector_arguments import vector_arguments
from pennon.ops.index.vector_build import (
    MESSAGE,
    VectorBuild,
    plan_vectors,
    plan_vectors_like,
    sample_vectors,
)
from pennon.scan.plan.moved_rows import covered_now
from pennon.scan.read.tasks import live_row_count
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import field_to_arrow
from pennon.schema.types import storage_type
from pennon.table.fragment import Fragment
from pennon.table.indices import Index
from pennon.table.indices_wire import parse_indices
from pennon.table.manifest import Manifest
from pennon.table.operations import CreateIndex

UNREADABLE: Final = (FormatError, NotFoundError, UnsupportedError)


def create_vector_index(
    snapshot: Snapshot,
    column: str,
    kind: str,
    name: str | None = None,
    *,
    replace: bool = False,
    train: bool = True,
    arguments: Mapping[str, Any] | None = None,
    index_uuid: str | None = None,
    builder: Builder = THREADS,
    watch: Watch | None = None,
) -> Manifest:
    """Make an index of a column of vectors, and return the version that has it.

    Without ``train`` it covers no fragment.  ``index_uuid`` names its folder.  ``watch`` is told how training goes on, and of
    the segments made.  Raises IndexExistsError for a name that is in use, and what
    `pennon.ops.index.vector_arguments.vector_arguments` raises.
    """
    fragments = None if train else ()
    if watch is not None:
        builder = Watched(builder, watch)
    build = plan_vector_index(
        snapshot, column, kind, name, arguments or {}, fragments, replace=replace, builder=builder
    )
    removed = check_name(snapshot, build, replace=replace)
    if index_uuid is not None:
        build = in_folder(build, index_uuid)
    return commit_on(snapshot, CreateIndex((build_index(build, builder),), removed))


@dataclass(frozen=True, slots=True)
class Watched:
    """Tells of what another builder does."""

    builder: Builder
    watch: Watch

    @contextmanager
    def stage(self, build: IndexBuild, name: str, total: int, unit: str) -> Iterator[Done]:
        """See `Builder.stage`."""
        with (
            self.builder.stage(build, name, total, unit) as show,
            with_progress(self.watch, name, total, unit) as tell,
        ):

            def done() -> None:
                show()
                tell()

            yield done

    def segments(self, build: IndexBuild) -> Sequence[Index]:
        """See `Builder.segments`."""
        with with_progress(self.watch, "shuffle"):
            return self.builder.segments(build)

    def merge(self, build: IndexBuild, segments: Sequence[Index]) -> Index:
        """See `Builder.merge`."""
        with with_progress(self.watch, "merge_partitions"):
            return self.builder.merge(build, segments)


def plan_vector_index(
    snapshot: Snapshot,
    column: str,
    kind: str,
    name: str | None,
    arguments: Mapping[str, Any],
    fragments: Sequence[Fragment] | None = None,
    *,
    replace: bool = True,
    builder: Builder = THREADS,
) -> VectorBuild:
    """Check arguments and a name, and train; see `pennon.ops.index.vector_build.plan_vectors`."""
    schema = snapshot.manifest.schema
    leaf = leaf_of(schema, column)
    path = path_of(schema, leaf)
    indices = parse_indices(snapshot.manifest.indices)
    chosen = name if name is not None else new_name(schema, leaf, MESSAGE, indices)
    found = vector_arguments(path, storage_type(field_to_arrow(leaf).type), kind, arguments)
    nothing = plan_vectors(snapshot, path, chosen, found.settings, ())
    check_name(snapshot, nothing, replace=replace)
    if fragments is not None and not fragments:
        return nothing
    return plan_vectors(
        snapshot, path, chosen, found.settings, fragments, found.given, builder=builder
    )


def has_vectors(snapshot: Snapshot, segments: Sequence[Index]) -> bool:
    """Return whether the entries of an index all name one column, and that has vectors."""
    if len({each.field_ids for each in segments}) != 1 or len(segments[0].field_ids) != 1:
        return False
    fields = {each.id: each for each in snapshot.manifest.schema.walk()}
    field = fields.get(segments[0].field_ids[0])
    return field is not None and is_vector(storage_type(field_to_arrow(field).type))


def optimized_vectors(
    snapshot: Snapshot,
    segments: Sequence[Index],
    merged: Sequence[Index],
    fresh: Sequence[Fragment],
    builder: Builder,
    *,
    retrain: bool,
) -> tuple[Index, list[Index]]:
    """Return the new segment of an index, and the segments that it stands for.

    It has the model of the last segment.  Segments of other models, or that cannot be read, are made anew from
    the vectors of the table.
    """
    if not retrain:
        try:
            build = plan_vectors_like(snapshot, segments[-1], fresh)
            warn_outside_range(build, fresh)
            return _merged(build, segments[-1], list(merged), list(fresh), builder), list(merged)
        except UNREADABLE:
            pass
    replaced = list(segments) if retrain else list(merged or segments[-1:])
    build = plan_vectors_like(
        snapshot,
        segments[-1],
        _covered(snapshot, replaced, fresh),
        with_model=False,
        builder=builder,
    )
    return build_index(build, builder), replaced


def _merged(
    build: VectorBuild,
    last: Index,
    old: list[Index],
    fresh: list[Fragment],
    builder: Builder,
) -> Index:
    model = open_stored(build.files(last)).model
    alike = [each for each in old if _fits(build, each, model)]
    others = [each for each in old if each not in alike]
    chosen = _covered(build.snapshot, others, fresh)
    more = build.of(chosen)
    if builder is THREADS and chosen and alike and len(more.groups) == 1:
        return more.join(alike)
    made = list(builder.segments(more)) if chosen else []
    if len(made) == 1 and not alike:
        return made[0]
    return builder.merge(build, [*alike, *made])


def _fits(build: VectorBuild, segment: Index, model: Any) -> bool:
    try:
        return bool(model.fits(open_stored(build.files(segment)).model))
    except UNREADABLE:
        return False


def _covered(
    snapshot: Snapshot, segments: Sequence[Index], fresh: Sequence[Fragment]
) -> list[Fragment]:
    """Return the fragments of segments, and new ones."""
    wanted = {number for each in segments for number in covered_now(snapshot, each)}
    wanted |= {each.id for each in fresh}
    return [each for each in snapshot.manifest.fragments if each.id in wanted]


# --- rows outside of the range of IVF_SQ ----------------------------------------------------------

_SAMPLED_ROWS: Final = 1024
_LEAST_SHARE: Final = 0.01


def warn_outside_range(build: VectorBuild, fragments: Sequence[Fragment]) -> None:
    """Warn if more than 1 % of the numbers of rows that are added lie outside of the range of an SQ index.

    All such numbers get the code of an end of the range, and searches cannot tell these rows apart.  A segment with
    a range of its own would be searched well, but pylance merges segments without coding them anew (ledger F-536).
    """
    bounds = None if build.model is None else build.model.bounds
    rows = sum(live_row_count(build.snapshot, each) for each in fragments)
    if bounds is None or not rows:
        return
    vectors = sample_vectors(build, fragments, rows, min(rows, _SAMPLED_ROWS))
    if not len(vectors):
        return
    low, high = bounds
    outside = float(np.mean((vectors < low) | (vectors > high)))
    if outside > _LEAST_SHARE:
        message = (
            f"{outside:.0%} of the numbers in new rows of index {build.name!r} lie outside of {low:.4g} to {high:.4g}, "
            f"the range that {build.settings.kind} was trained on, so that searches may miss these rows: "
            "optimize_indices(retrain=True) trains the index anew"
        )
        warnings.warn(message, UserWarning, stacklevel=6)
