"""Vectors coded, and sorted by their partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from pennon.core.fast_dataclass import dataclass
from pennon.core.thread_pools import map_in_order
from pennon.core.units import MIB
from pennon.index.base import Values
from pennon.index.row_set import Numbers
from pennon.index.vector.coders import FlatCoder, ProductCoder, ScalarCoder
from pennon.index.vector.kmeans import BLOCK_ROWS, CREW
from pennon.index.vector.model import Coded, Coder, Model
from pennon.index.vector.rabit import RabitCoder
from pennon.index.vector.rows import Matrix, as_floats, usable

_AHEAD = 64 * MIB
"""Vectors that are under way."""


@dataclass(frozen=True, slots=True, eq=False)
class Sorted:
    """Coded vectors by partition: those of partition p are ``coded`` from ``ends[p]`` to ``ends[p + 1]``."""

    coded: Coded
    ends: npt.NDArray[np.int64]

    def partition(self, number: int) -> Coded:
        """Return what a partition has."""
        return self.coded.at(slice(self.ends[number], self.ends[number + 1]))


def coder_of(model: Model) -> Coder:
    """Return what codes the vectors of an index."""
    if model.settings.quantizer == "PQ":
        return ProductCoder.of(model)
    if model.settings.quantizer == "RQ":
        return RabitCoder.of(model)
    return ScalarCoder(model) if model.settings.quantizer == "SQ" else FlatCoder(model)


def sorted_by_partition(parts: Iterable[Values], model: Model) -> Sorted:
    """Code the vectors of a column, and sort them by partition; rows of a partition stay in order."""
    near, coder = model.assigner(), coder_of(model)
    is_bits = model.centroids.dtype == np.uint8

    def work(block: tuple[Matrix, Numbers]) -> tuple[npt.NDArray[np.int32], Coded]:
        vectors, rows = block
        found = near.nearest(as_floats(vectors) if is_bits else vectors)[0].ravel()
        return found, Coded(rows, coder.encode(vectors, found))

    blocks = _blocks(parts, model)
    done = list(map_in_order(work, blocks, lambda block: int(block[0].nbytes), _AHEAD, CREW))
    if not done:
        none = np.empty((0, model.dim), model.centroids.dtype)
        done = [work((none, np.empty(0, np.uint64)))]
    found = np.concatenate([each for each, _ in done])
    coded = Coded.joined([each for _, each in done])
    del done
    order = np.argsort(found, kind="stable")
    counts = np.bincount(found, minlength=model.partitions)
    return Sorted(coded.at(order), np.concatenate([[0], np.cumsum(counts)]))


def _blocks(parts: Iterable[Values], model: Model) -> Iterator[tuple[Matrix, Numbers]]:
    """Yield the vectors that an index holds, so many at once as a thread works on."""
    for part in parts:
        for start in range(0, len(part.rows), BLOCK_ROWS):
            some = slice(start, start + BLOCK_ROWS)
            vectors, rows = usable(part.values[some], part.rows[some], model.settings.metric)
            if len(rows):
                yield vectors, rows
