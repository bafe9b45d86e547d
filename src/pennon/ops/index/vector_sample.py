"""Samples of the vectors of a table, which indices are trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pennon.core.numpy_types import numpy_dtype
from pennon.index.row_set import Numbers
from pennon.index.vector.metric import Metric
from pennon.index.vector.rows import Matrix, usable, vector_type
from pennon.index.vector.settings import VectorSettings
from pennon.ops.index.build import IndexBuild
from pennon.scan.plan.take_plan import TakePlan
from pennon.scan.projection import plan_scan_projection
from pennon.scan.read.tasks import live_row_count
from pennon.scan.run.take import take_fragment_offsets
from pennon.table.fragment import Fragment

_FEW_SHARE: Final = 4
"""The column is read whole if the sample has more than one row of so many: that is cheaper."""
_TAKEN_ROWS: Final = 1 << 14
"""Rows that are taken of a fragment at once."""


def sample_vectors(
    build: IndexBuild,
    settings: VectorSettings,
    fragments: Sequence[Fragment],
    rows: int,
    wanted: int,
) -> Matrix:
    """Return vectors of random rows of fragments that have so many; where many of these are NULL, of all rows as far as it takes."""
    rng = np.random.default_rng(settings.seed)
    if wanted * _FEW_SHARE < rows:
        chosen = np.sort(rng.choice(rows, wanted, replace=False))
        found = _usable_at(build, settings.metric, fragments, chosen, rng)
        if 2 * len(found) > wanted:
            return found
    return _reservoir(build, settings.metric, fragments, wanted, rng)


def _usable_at(
    build: IndexBuild, metric: Metric, fragments: Sequence[Fragment], chosen: Any, rng: Any
) -> Matrix:
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
            sample.add(_usable(batch.column(0), metric), rng)
        start += count
    return sample.vectors


def _reservoir(
    build: IndexBuild, metric: Metric, fragments: Sequence[Fragment], wanted: int, rng: Any
) -> Matrix:
    """Return so many vectors of all, each as likely as any other."""
    sample = _Sample(build, wanted)
    for values in build.values(fragments):
        sample.add(usable(values.values, values.rows, metric)[0], rng)
    return sample.vectors


class _Sample:
    """Vectors that are chosen of more, in memory that is taken once."""

    def __init__(self, build: IndexBuild, most: int) -> None:
        kind = vector_type(build.storage)
        self._matrix: Matrix = np.empty((most, kind.list_size), numpy_dtype(kind.value_type))
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


def _usable(values: Any, metric: Metric) -> Matrix:
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    rows: Numbers = np.zeros(len(values), np.uint64)
    return usable(values, rows, metric)[0]
