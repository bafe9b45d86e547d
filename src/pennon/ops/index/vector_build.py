"""Building a vector index: trained here on a sample, then built as any other index is.

The model is in the plan, so each task codes the vectors of its fragments by the same one, and segments are merged
as they are, partition by partition.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pennon.core.units import MIB
from pennon.errors import FormatError, NotFoundError, UnsupportedError
from pennon.index.files import made_now
from pennon.index.new_files import OldIndex
from pennon.index.vector.build.merge import merge_indices
from pennon.index.vector.build.opened_index import open_stored
from pennon.index.vector.build.partitions import sorted_by_partition
from pennon.index.vector.build.train import can_train, sample_rows, train
from pennon.index.vector.details_wire import settings_of
from pennon.index.vector.kind import KIND
from pennon.index.vector.model import Model
from pennon.index.vector.rows import vector_type
from pennon.index.vector.search.open import open_vector_index
from pennon.index.vector.settings import VectorSettings
from pennon.ops.index.build import Builder, IndexBuild, Origin
from pennon.ops.index.builders import THREADS
from pennon.ops.index.request import IndexRequest, groups_of, leaf_of, leaf_of_index, path_of
from pennon.ops.index.vector_arguments import Given, vector_arguments
from pennon.ops.index.vector_sample import sample_vectors
from pennon.scan.plan.moved_rows import covered_now
from pennon.scan.read.tasks import live_row_count
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import field_to_arrow
from pennon.schema.types import storage_type
from pennon.schema.width import row_bytes
from pennon.table.fragment import Fragment
from pennon.table.indices import Index

_SEGMENT_BYTES: Final = 256 * MIB
"""About so many bytes of vectors are coded for one segment, for FLAT holds them twice."""
_BITS: Final = 8
"""Numbers that a vector of bits has for each of its bytes."""
_SAMPLED_ROWS: Final = 1024
_LEAST_SHARE: Final = 0.01
_UNREADABLE: Final = (FormatError, NotFoundError, UnsupportedError)
_ANY: Final = VectorSettings("IVF_FLAT")
"""The settings of a plan that is told better ones."""
_NONE_GIVEN: Final = Given()


@dataclass(frozen=True, slots=True)
class VectorBuild(IndexBuild):
    """A build of segments of a vector index; without ``model`` it covers no row.

    ``given``: the models that the caller has trained already.
    """

    settings: VectorSettings = _ANY
    model: Model | None = None
    given: Given = _NONE_GIVEN

    @classmethod
    def plan(cls, wanted: IndexRequest) -> VectorBuild:
        """See `IndexBuild.plan`; raises what `vector_arguments` does."""
        leaf, snapshot = wanted.leaf, wanted.snapshot
        path, column = path_of(snapshot.manifest.schema, leaf), field_to_arrow(leaf).type
        found = vector_arguments(path, storage_type(column), wanted.kind, wanted.parameters)
        name = wanted.name_or_new(KIND.details, wanted.indices)
        build = cls._untrained(snapshot, path, name, wanted.fragments)
        return replace(build, settings=found.settings, given=found.given)

    @classmethod
    def plan_like(
        cls,
        snapshot: Snapshot,
        like: Index,
        fragments: Sequence[Fragment] | None,
        origin: Origin = Origin.FILES,
    ) -> VectorBuild:
        """See `IndexBuild.plan_like`: with the model of the other index, or to be trained anew.

        Raises FormatError, NotFoundError or UnsupportedError if the model cannot be read.
        """
        cls.check_entry(snapshot, like)
        schema = snapshot.manifest.schema
        path = path_of(schema, leaf_of_index(schema, like))
        build = cls._untrained(snapshot, path, like.name, fragments)
        settings = settings_of(like.details[1] if like.details else b"")
        if origin is not Origin.FILES:
            return replace(build, settings=settings or _settings_in_files(snapshot, like))
        model = open_stored(build.files(like)).model
        kind = vector_type(build.storage)
        if (
            model.dim != kind.list_size
            or pa.from_numpy_dtype(model.centroids.dtype) != kind.value_type
        ):
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
            graph=settings.graph
            if model.settings.graph and settings.graph
            else model.settings.graph,
        )
        mine = Model(chosen, model.centroids, model.codebook, model.bounds, model.signs, model.loss)
        return replace(build, settings=chosen, model=mine)

    @classmethod
    def _untrained(
        cls, snapshot: Snapshot, path: str, name: str, fragments: Sequence[Fragment] | None
    ) -> VectorBuild:
        leaf = leaf_of(snapshot.manifest.schema, path)
        build = cls(snapshot, name, KIND.details, path, leaf.id)
        return build.of(snapshot.manifest.fragments if fragments is None else fragments)

    @property
    def chosen(self) -> Mapping[str, Any]:
        """See `IndexBuild.chosen`."""
        return {"settings": self.settings, "model": self.model}

    @property
    def trained(self) -> Model:
        """Return the model of an index that covers something."""
        if self.model is None:
            message = f"the index {self.name!r} was not trained"
            raise ValueError(message)
        return self.model

    def of(self, fragments: Sequence[Fragment]) -> VectorBuild:
        """Return the same of other fragments."""
        column = field_to_arrow(leaf_of(self.snapshot.manifest.schema, self.path))
        width = row_bytes(pa.schema([column])) + 8
        groups = groups_of(self.snapshot, fragments, max(_SEGMENT_BYTES // width, 1))
        return replace(self, groups=tuple(groups))

    def train(self, builder: Builder) -> VectorBuild:
        """Train on a sample of the fragments, unless there is a model.

        Where the vectors are too few, the index covers nothing, with a warning.
        """
        if self.model is not None:
            return self
        model = self.trained_model(builder)
        if model is not None:
            return replace(self, model=model, given=_NONE_GIVEN)
        if any(self.groups):
            message = (
                f"index {self.name!r} is not trained: {self.path} has too few vectors for {self.settings.kind}; "
                "optimize_indices trains it when there are more"
            )
            warnings.warn(message, UserWarning, stacklevel=5)
        return replace(self, given=_NONE_GIVEN, groups=((),))

    def trained_model(self, builder: Builder) -> Model | None:
        """Train on a sample of the fragments; return None where the vectors are too few."""
        fragments = self.fragments
        rows = sum(live_row_count(self.snapshot, each) for each in fragments)
        if not rows:
            return None
        settings, kind, given = self.settings, vector_type(self.storage), self.given
        has_codebook = given.codebook is not None
        wanted = sample_rows(
            settings,
            rows,
            kind.list_size * (_BITS if pa.types.is_uint8(kind.value_type) else 1),
            has_centroids=given.centroids is not None,
            has_codebook=has_codebook,
        )
        sample = sample_vectors(self, settings, fragments, rows, wanted)
        if not can_train(settings, len(sample), has_codebook=has_codebook):
            return None
        return train(
            settings,
            sample,
            rows,
            centroids=given.centroids,
            codebook=given.codebook,
            stage=partial(builder.stage, self),
        )

    def merge(self, segments: Sequence[Index]) -> Index:
        """See `IndexBuild.merge`; raises ArgumentError if they were trained apart."""
        return self._merged(segments, ())

    def extended(self, like: Index, old: Sequence[Index], builder: Builder) -> Index:
        """See `IndexBuild.extended`; old segments of other models, or that cannot be read, are made anew."""
        self._warn_outside_range()
        model = open_stored(self.files(like)).model
        alike = [each for each in old if self._fits(each, model)]
        others = [each for each in old if each not in alike]
        wanted = {number for each in others for number in covered_now(self.snapshot, each)}
        wanted |= {each.id for each in self.fragments}
        chosen = [each for each in self.snapshot.manifest.fragments if each.id in wanted]
        more = self.of(chosen)
        if builder is THREADS and chosen and alike and len(more.groups) == 1:
            return more._merged(alike, chosen)  # noqa: SLF001 - its own class; new rows get no files before
        made = list(builder.segments(more)) if chosen else []
        if len(made) == 1 and not alike:
            return made[0]
        return builder.merge(self, [*alike, *made])

    def _fits(self, segment: Index, model: Model) -> bool:
        try:
            return model.fits(open_stored(self.files(segment)).model)
        except _UNREADABLE:
            return False

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

    def _warn_outside_range(self) -> None:
        """Warn if more than 1 % of the numbers of rows that are added lie outside of the range of an SQ index.

        All such numbers get the code of an end of the range, and searches cannot tell these rows apart.  A segment with
        a range of its own would be searched well, but pylance merges segments without coding them anew (ledger F-536).
        """
        bounds = None if self.model is None else self.model.bounds
        rows = sum(live_row_count(self.snapshot, each) for each in self.fragments)
        if bounds is None or not rows:
            return
        vectors = sample_vectors(
            self, self.settings, self.fragments, rows, min(rows, _SAMPLED_ROWS)
        )
        if not len(vectors):
            return
        low, high = bounds
        outside = float(np.mean((vectors < low) | (vectors > high)))
        if outside > _LEAST_SHARE:
            message = (
                f"{outside:.0%} of the numbers in new rows of index {self.name!r} lie outside of {low:.4g} to {high:.4g}, "
                f"the range that {self.settings.kind} was trained on, so that searches may miss these rows: "
                "optimize_indices(retrain=True) trains the index anew"
            )
            warnings.warn(message, UserWarning, stacklevel=6)


def _settings_in_files(snapshot: Snapshot, like: Index) -> VectorSettings:
    """Return how an index of any release was made; its entry does not say it.

    Raises FormatError, NotFoundError or UnsupportedError if nothing tells it.
    """
    return open_vector_index(snapshot.index_files(like, made_now)).settings
