"""One index of several, and of rows that were moved: partition by partition, so that little is held."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from pennon.errors import ArgumentError
from pennon.index.new_files import NewFiles, OldIndex
from pennon.index.vector.build.new_index import write_index
from pennon.index.vector.build.opened_index import StoredIndex, open_stored
from pennon.index.vector.build.partitions import Sorted
from pennon.index.vector.model import Coded, Model
from pennon.index.vector.quantizers.sq import ScalarCoder
from pennon.index.vector.settings import VectorSettings

_WINDOW_ROWS: Final = 1 << 17
"""Rows that are held at once, unless a partition has more."""


def merge_indices(
    olds: Sequence[OldIndex],
    settings: VectorSettings,
    new: NewFiles,
    fresh: tuple[Model, Sorted] | None = None,
) -> Model:
    """Write the rows of several indices that are there yet; return the model, which all of them must share.

    ``settings`` are those of the new one as far as they are free: how codes are laid out, and its graph.  ``fresh`` are
    rows that were just coded, and by which model.  Raises ArgumentError for indices of other models.
    """
    opened = [open_stored(each.files) for each in olds]
    model = opened[-1].model
    if fresh is not None and not model.fits(fresh[0]):
        message = "new rows were coded by another model than that of the index that they join"
        raise ArgumentError(message)
    if not all(model.fits(each.model) for each in opened):
        message = (
            "IVF centroids mismatch across shards: segments of other centroids or codebooks cannot be "
            "merged; optimize_indices makes them anew"
        )
        raise ArgumentError(message)
    mine = replace(model.settings, is_plain=False, graph=settings.graph)
    joined = Model(mine, model.centroids, model.codebook, _bounds(opened), model.signs, model.loss)
    write_index(joined, _partitions(opened, olds, joined, fresh), new)
    return joined


def _bounds(opened: Sequence[StoredIndex]) -> tuple[float, float] | None:
    found = [each.model.bounds for each in opened if each.model.bounds is not None]
    return (min(low for low, _ in found), max(high for _, high in found)) if found else None


def _partitions(
    opened: Sequence[StoredIndex],
    olds: Sequence[OldIndex],
    model: Model,
    fresh: tuple[Model, Sorted] | None,
) -> Iterator[Coded]:
    counts = [
        sum(each) for each in zip(*(one.parts.lengths.tolist() for one in opened), strict=True)
    ]
    for first, end in windows(counts):
        read = [each.read(first, end) for each in opened]
        for number in range(end - first):
            parts = [
                _kept(_recoded(mine[number], each.model, model), old)
                for mine, each, old in zip(read, opened, olds, strict=True)
            ]
            if fresh is not None:
                parts.append(_recoded(fresh[1].partition(first + number), fresh[0], model))
            whole = Coded.joined(parts)
            yield whole.at(np.argsort(whole.rows, kind="stable"))


def windows(counts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield ranges of partitions, of so many rows each, that are read at once."""
    first = held = 0
    for number, count in enumerate(counts):
        if number > first and held + count > _WINDOW_ROWS:
            yield first, number
            first, held = number, 0
        held += count
    yield first, len(counts)


def _kept(coded: Coded, old: OldIndex) -> Coded:
    rows, there = old.moves.numbers(coded.rows)
    return Coded(rows, coded.columns if there.all() else tuple(c[there] for c in coded.columns))


def _recoded(coded: Coded, old: Model, new: Model) -> Coded:
    """Return codes of SQ between the bounds of the new index."""
    if old.bounds == new.bounds:
        return coded
    vectors = ScalarCoder(old).decode(coded.columns)
    return Coded(coded.rows, ScalarCoder(new).encode(vectors, np.empty(0, np.int32)))
