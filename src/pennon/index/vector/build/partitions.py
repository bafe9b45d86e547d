"""Vectors coded, and sorted by their partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pennon.core.fast_dataclass import dataclass
from pennon.core.thread_pools import map_all, map_in_order
from pennon.core.units import MIB
from pennon.index.base import Values
from pennon.index.vector.kmeans import BLOCK_ROWS, POOL, NearestCentroids
from pennon.index.vector.model import Coded, Coder, Model
from pennon.index.vector.quantizers.flat import FlatCoder
from pennon.index.vector.quantizers.pq import ProductCoder
from pennon.index.vector.quantizers.rq import RabitCoder
from pennon.index.vector.quantizers.sq import ScalarCoder
from pennon.index.vector.rows import as_floats, usable

_AHEAD = 64 * MIB
"""Vectors that are under way."""


Block: TypeAlias = tuple[NearestCentroids, Coded]
"""Coded vectors, and the partition of each."""


@dataclass(frozen=True, slots=True, eq=False)
class Sorted:
    """Coded vectors by partition: those of partition p are ``coded`` from ``ends[p]`` to ``ends[p + 1]``."""

    coded: Coded
    ends: npt.NDArray[np.int64]

    @classmethod
    def of(cls, blocks: list[Block], partitions: int) -> Sorted:
        """Sort one or more blocks by partition; rows of a partition stay in order."""
        found = np.concatenate([each for each, _ in blocks])
        order = np.argsort(found, kind="stable")
        places = np.empty(len(order), np.intp)
        places[order] = np.arange(len(order))
        coded = _placed([each for _, each in blocks], places)
        counts = np.bincount(found, minlength=partitions)
        return cls(coded, np.concatenate([[0], np.cumsum(counts)]))

    def partition(self, number: int) -> Coded:
        """Return what a partition has."""
        return self.coded.at(slice(self.ends[number], self.ends[number + 1]))

    def filled(self) -> Iterator[tuple[int, Coded]]:
        """Yield the partitions that have rows, each with its number."""
        for number in np.flatnonzero(np.diff(self.ends)).tolist():
            yield number, self.partition(number)


def _placed(parts: list[Coded], places: npt.NDArray[np.intp]) -> Coded:
    """Return all of several, each row at its place."""
    first = parts[0]
    rows = np.empty(len(places), first.rows.dtype)
    columns = tuple(np.empty((len(places), *each.shape[1:]), each.dtype) for each in first.columns)
    ends = np.cumsum([len(each.rows) for each in parts])

    def put(number: int) -> None:
        part = parts[number]
        there = places[ends[number] - len(part.rows) : ends[number]]
        rows[there] = part.rows
        for column, its in zip(columns, part.columns, strict=True):
            column[there] = its

    map_all(put, range(len(parts)), POOL)
    return Coded(rows, columns)


def coder_of(model: Model) -> Coder:
    """Return what codes the vectors of an index."""
    if model.settings.quantizer == "PQ":
        return ProductCoder.of(model)
    if model.settings.quantizer == "RQ":
        return RabitCoder.of(model)
    return ScalarCoder(model) if model.settings.quantizer == "SQ" else FlatCoder(model)


def coded_blocks(parts: Iterable[Values], model: Model) -> Iterator[Block]:
    """Code the vectors of a column, some at a time, in their order; those that an index does not hold are left out."""
    near, coder = model.assigner(), coder_of(model)
    is_bits = model.centroids.dtype == np.uint8

    def work(part: Values) -> Block:
        vectors, rows = usable(part.values, part.rows, model.settings.metric)
        found = near.nearest(as_floats(vectors) if is_bits else vectors)[0].ravel()
        return found, Coded(rows, coder.encode(vectors, found))

    cut = _cut(parts)
    done = map_in_order(work, cut, lambda part: int(part.values.nbytes), _AHEAD, POOL)
    return (block for block in done if len(block[0]))


def sorted_by_partition(parts: Iterable[Values], model: Model) -> Sorted:
    """Code the vectors of a column, and sort them by partition."""
    done = list(coded_blocks(parts, model))
    if not done:
        none = np.empty((0, model.dim), model.centroids.dtype)
        nowhere = np.empty(0, np.int32)
        done = [(nowhere, Coded(np.empty(0, np.uint64), coder_of(model).encode(none, nowhere)))]
    return Sorted.of(done, model.partitions)


def _cut(parts: Iterable[Values]) -> Iterator[Values]:
    """Yield the same values, so many rows at once as a thread works on."""
    for part in parts:
        for start in range(0, len(part.rows), BLOCK_ROWS):
            some = slice(start, start + BLOCK_ROWS)
            yield Values(part.values[some], part.rows[some])
