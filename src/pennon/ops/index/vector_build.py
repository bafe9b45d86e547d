"""Making an index of vectors: trained here on a sample, then built as any other index is.

The model is in the plan, so each task codes the vectors of its fragments by the same one, and segments are merged
as they are, partition by partition.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pennon.core.units import MIB
from pennon.errors import FormatError
from pennon.index.base import Values
from pennon.index.files import made_now
from pennon.index.new_files import OldIndex
from pennon.index.row_map import RowMap
from pennon.index.row_set import Numbers
from pennon.index.vector.build.merge import merge_indices
from pennon.index.vector.build.new_index import write_index
from pennon.index.vector.build.opened_index import open_stored
from pennon.index.vector.build.partitions import sorted_by_partition
from pennon.index.vector.build.train import can_train, sample_rows, train
from pennon.index.vector.details_wire import settings_of, vector_details
from pennon.index.vector.kind import KIND
from pennon.index.vector.model import Model
from pennon.index.vector.rows import Matrix, is_vector, usable, vector_type
from pennon.index.vector.search.open import open_vector_index
from pennon.index.vector.settings import VectorSettings
from pennon.ops.index.build import (
    THREADS,
    Builder,
    IndexBuild,
    groups_of,
    leaf_of,
    leaf_of_index,
    path_of,
)
from pennon.scan.plan.moved_rows import covered_now
from pennon.scan.plan.take_plan import TakePlan
from pennon.scan.projection import plan_scan_projection
from pennon.scan.read.tasks import live_row_count
from pennon.scan.run.take import take_fragment_offsets
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import field_to_arrow
from pennon.schema.types import storage_type
from pennon.schema.width import row_bytes
from pennon.table.fragment import Fragment
from pennon.table.indices import Index

MESSAGE: Final = KIND.details
_PACKAGE: Final = "lance.index.pb"
_SEGMENT_BYTES: Final = 256 * MIB
"""About so many bytes of vectors are coded for one segment, for FLAT holds them twice."""
_FEW_SHARE: Final = 4
"""Where more than one row of so many is in the sample, to read the column is cheaper."""
_TAKEN_ROWS: Final = 1 << 14
"""Rows that are taken of a fragment at once."""
_BITS: Final = 8
"""Numbers that a vector of bits has for each of its bytes."""
_RQ_VERSION: Final = 2
_ANY: Final = VectorSettings("IVF_FLAT")
"""The settings of a plan that is told better ones."""


@dataclass(frozen=True, slots=True)
class VectorBuild(IndexBuild):
    """A build of segments of a vector index; without ``model`` it covers no row."""

    settings: VectorSettings = _ANY
    model: Model | None = None

    @property
    def trained(self) -> Model:
        """Return the model of an index that covers something."""
        if self.model is None:
            message = f"the index {self.name!r} was not trained"
            raise ValueError(message)
        return self.model

    def of(self, fragments: Sequence[Fragment]) -> VectorBuild:
        """Return the same of other fragments."""
        return replace(self, groups=_groups(self.snapshot, self.path, fragments))

    def run(self, number: int) -> Index:
        """See `IndexBuild.run`."""
        group = self.groups[number]
        new = self.files_of_group(number)
        if self.model is None:
            return self.entry(new, ())
        coded = sorted_by_partition(self.values(group), self.model)
        parts = (coded.partition(each) for each in range(self.model.partitions))
        write_index(self.model, parts, new, with_graphs=len(self.groups) == 1)
        return self.entry(new, [each.id for each in group])

    def merge(self, segments: Sequence[Index]) -> Index:
        """See `IndexBuild.merge`; raises ArgumentError if they were trained apart."""
        return self._merged(segments, ())

    def join(self, segments: Sequence[Index]) -> Index:
        """Make one segment of others and of the rows of the only group, which get no files of their own before.

        Raises as `merge` does.
        """
        (group,) = self.groups
        return self._merged(segments, group)

    def _merged(self, segments: Sequence[Index], group: Sequence[Fragment]) -> Index:
        new = self.new_files()
        made = [each for each in segments if each.files or each.fragment_ids]
        olds = [OldIndex(self.files(each), self.kept(each)) for each in made]
        if not olds:
            return self.entry(new, ())
        fresh = None
        if group and self.model is not None:
            fresh = self.model, sorted_by_partition(self.values(group), self.model)
        merge_indices(olds, self.settings, new, fresh)
        there = {each.id for each in self.snapshot.manifest.fragments}
        covered = {n for each in made for n in covered_now(self.snapshot, each) if n in there}
        return self.entry(new, covered | {each.id for each in group})

    def rewrite(self, segment: Index, moves: RowMap) -> Index:
        """See `IndexBuild.rewrite`."""
        new = self.new_files()
        merge_indices([OldIndex(self.files(segment), moves)], self.settings, new)
        return self.entry(new, segment.fragment_ids or frozenset())

    @property
    def index_version(self) -> int:
        """See `IndexBuild.index_version`."""
        return _RQ_VERSION if self.settings.quantizer == "RQ" else 1

    @property
    def details(self) -> tuple[str, bytes]:
        """See `IndexBuild.details`."""
        return f"/{_PACKAGE}.{MESSAGE}", vector_details(self.settings)

    @property
    def _by_row_ids(self) -> bool:
        return self.snapshot.manifest.has_stable_row_ids


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """Models that the caller has trained already."""

    centroids: Matrix | None = None
    codebook: Matrix | None = None


def plan_vectors(
    snapshot: Snapshot,
    column: str,
    name: str,
    settings: VectorSettings,
    fragments: Sequence[Fragment] | None = None,
    given: Given | None = None,
    builder: Builder = THREADS,
) -> VectorBuild:
    """Train an index on a sample of the fragments, by default of all, and plan it.

    Where the vectors are too few, it covers nothing, with a warning.
    """
    build = plan_untrained(snapshot, column, name, settings, fragments)
    model = trained_model(build, given or Given(), builder)
    if model is None:
        if any(build.groups):
            message = (
                f"index {name!r} is not trained: {column} has too few vectors for {settings.kind}; "
                "optimize_indices trains it when there are more"
            )
            warnings.warn(message, UserWarning, stacklevel=3)
        return replace(build, groups=((),))
    return replace(build, model=model)


def plan_vectors_like(
    snapshot: Snapshot,
    like: Index,
    fragments: Sequence[Fragment] | None,
    *,
    with_model: bool = True,
    builder: Builder = THREADS,
) -> VectorBuild:
    """Plan an index like another one: with its model, or trained anew.

    Raises FormatError, NotFoundError or UnsupportedError if the model cannot be read.
    """
    schema = snapshot.manifest.schema
    leaf = leaf_of_index(schema, like)
    column = field_to_arrow(leaf).type
    if not is_vector(storage_type(column)):
        message = f"index {like.name!r} is of vectors, and its column of {column}"
        raise FormatError(message)
    settings = settings_of(like.details[1] if like.details else b"")
    if not with_model:
        settings = settings or _settings_in_files(snapshot, like)
        path = path_of(schema, leaf)
        return plan_vectors(snapshot, path, like.name, settings, fragments, builder=builder)
    build = plan_untrained(snapshot, path_of(schema, leaf), like.name, _ANY, fragments)
    model = open_stored(build.files(like)).model
    kind = vector_type(build.storage)
    if model.dim != kind.list_size or pa.from_numpy_dtype(model.centroids.dtype) != kind.value_type:
        message = f"index {like.name!r} is of vectors of {model.dim} {model.centroids.dtype}, and the column of {kind}"
        raise FormatError(message)
    if settings is None:
        settings = model.settings
    chosen = replace(
        settings,
        kind=model.settings.kind,
        metric=model.settings.metric,
        sub_vectors=model.settings.sub_vectors,
        bits=model.settings.bits,
        graph=settings.graph if model.settings.graph and settings.graph else model.settings.graph,
    )
    mine = Model(chosen, model.centroids, model.codebook, model.bounds, model.signs, model.loss)
    return replace(build, settings=chosen, model=mine)


def _settings_in_files(snapshot: Snapshot, like: Index) -> VectorSettings:
    """Return how an index of any release was made; its entry does not say it.

    Raises FormatError, NotFoundError or UnsupportedError if nothing tells it.
    """
    return open_vector_index(snapshot.index_files(like, made_now)).settings


def plan_untrained(
    snapshot: Snapshot,
    column: str,
    name: str,
    settings: VectorSettings,
    fragments: Sequence[Fragment] | None = None,
) -> VectorBuild:
    """Plan an index of some fragments, by default of all; it has no model yet."""
    schema = snapshot.manifest.schema
    leaf = leaf_of(schema, column)
    chosen = snapshot.manifest.fragments if fragments is None else fragments
    path = path_of(schema, leaf)
    groups = _groups(snapshot, path, chosen)
    return VectorBuild(snapshot, name, MESSAGE, path, leaf.id, {}, groups, settings=settings)


def _groups(
    snapshot: Snapshot, path: str, fragments: Sequence[Fragment]
) -> tuple[tuple[Fragment, ...], ...]:
    column = field_to_arrow(leaf_of(snapshot.manifest.schema, path))
    width = row_bytes(pa.schema([column])) + 8
    return tuple(groups_of(snapshot, fragments, max(_SEGMENT_BYTES // width, 1)))


def trained_model(build: VectorBuild, given: Given, builder: Builder = THREADS) -> Model | None:
    """Train on a sample of the fragments of a plan; return None where the vectors are too few.

    The builder shows how it goes on.
    """
    fragments = build.fragments
    rows = sum(live_row_count(build.snapshot, each) for each in fragments)
    if not rows:
        return None
    settings, kind = build.settings, vector_type(build.storage)
    has_codebook = given.codebook is not None
    wanted = sample_rows(
        settings,
        rows,
        kind.list_size * (_BITS if pa.types.is_uint8(kind.value_type) else 1),
        has_centroids=given.centroids is not None,
        has_codebook=has_codebook,
    )
    sample = sample_vectors(build, fragments, rows, wanted)
    if not can_train(settings, len(sample), has_codebook=has_codebook):
        return None
    return train(
        settings,
        sample,
        rows,
        centroids=given.centroids,
        codebook=given.codebook,
        stage=partial(builder.stage, build),
    )


def sample_vectors(
    build: VectorBuild, fragments: Sequence[Fragment], rows: int, wanted: int
) -> Matrix:
    """Return vectors of random rows of fragments that have so many; where many of these are NULL, of all rows as far as it takes."""
    rng = np.random.default_rng(build.settings.seed)
    if wanted * _FEW_SHARE < rows:
        chosen = np.sort(rng.choice(rows, wanted, replace=False))
        found = _usable_at(build, fragments, chosen, rng)
        if 2 * len(found) > wanted:
            return found
    return _reservoir(build, fragments, wanted, rng)


def _usable_at(build: VectorBuild, fragments: Sequence[Fragment], chosen: Any, rng: Any) -> Matrix:
    """Return the vectors of some live rows, by their numbers in order."""
    snapshot = build.snapshot
    plan = TakePlan(plan_scan_projection(snapshot.manifest.schema, [build.path]))
    sample, start = _Sample(build, len(chosen)), 0
    for fragment in fragments:
        count = live_row_count(snapshot, fragment)
        low, high = np.searchsorted(chosen, [start, start + count])
        for first in range(low, high, _TAKEN_ROWS):
            some = chosen[first : min(first + _TAKEN_ROWS, high)] - start
            batch = take_fragment_offsets(snapshot, plan, fragment, some)
            sample.add(_usable(build, batch.column(0)), rng)
        start += count
    return sample.vectors


def _reservoir(build: VectorBuild, fragments: Sequence[Fragment], wanted: int, rng: Any) -> Matrix:
    """Return so many vectors of all, each as likely as any other."""
    sample = _Sample(build, wanted)
    for vectors in _vectors(build, fragments):
        sample.add(vectors, rng)
    return sample.vectors


class _Sample:
    """Vectors that are chosen of more, in memory that is taken once."""

    def __init__(self, build: VectorBuild, most: int) -> None:
        kind = vector_type(build.storage)
        self._matrix: Matrix = np.empty((most, kind.list_size), kind.value_type.to_pandas_dtype())
        self._seen = 0

    @property
    def vectors(self) -> Matrix:
        """Return those that were chosen."""
        return self._matrix[: self._seen]

    def add(self, vectors: Matrix, rng: Any) -> None:
        """Take vectors; of those for which no place is left each takes another's, as often as is just."""
        free = self._matrix[self._seen : self._seen + len(vectors)]
        free[:] = vectors[: len(free)]
        late = vectors[len(free) :]
        numbers = np.arange(self._seen + len(free), self._seen + len(vectors))
        self._seen += len(vectors)
        if len(late):
            places = rng.integers(0, numbers + 1)
            chosen = places < len(self._matrix)
            self._matrix[places[chosen]] = late[chosen]


def _vectors(build: VectorBuild, fragments: Sequence[Fragment]) -> Iterator[Matrix]:
    for values in build.values(fragments):
        yield usable(values.values, values.rows, build.settings.metric)[0]


def _usable(build: VectorBuild, values: Any) -> Matrix:
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    rows: Numbers = np.zeros(len(values), np.uint64)
    return usable(Values(values, rows).values, rows, build.settings.metric)[0]
