"""Makers of vector columns: batches of the source column in, vectors and fingerprints out.

::

    source          vector        fingerprint
    'a red fox'     [0.1, ...]    8112...
    NULL            NULL          NULL          the model sees no NULL
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.ops.columns.task import Place
from pennon.ops.embed.fingerprint import differ, fingerprints, plain_values
from pennon.ops.embed.models import EmbeddingModel
from pennon.ops.embed.vectors import Vectors
from pennon.scan.projection import Projection

Progress: TypeAlias = Callable[[int, int], object]
"""Is told how many rows are done, of how many."""


@dataclass(frozen=True, slots=True)
class Embedder:
    """Makes the columns of an embedding: the vectors, and the fingerprints if they are tracked; it pickles if its model does."""

    model: EmbeddingModel
    source: str
    column: str
    fingerprint: str | None
    dimension: int
    is_normalized: bool

    def vectors(self, values: pa.Array[Any]) -> Vectors:
        """Return the vectors of values, NULL for NULL."""
        places = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        if not len(places):
            rows = np.zeros((len(values), self.dimension), np.float32)
            return Vectors(rows, np.zeros(len(values), np.bool_))
        given = values if len(places) == len(values) else values.take(pa.array(places))
        answer = self.model.embed(given)
        found = Vectors.of(answer, len(places), self.dimension, self.model.name)
        found = found.normalized() if self.is_normalized else found
        return found.spread(places, len(values))

    def batch(self, vectors: pa.Array[Any], prints: pa.Array[Any]) -> pa.RecordBatch:
        """Return the columns as the table gets them."""
        if self.fingerprint is None:
            return pa.RecordBatch.from_arrays([vectors], names=[self.column])
        return pa.RecordBatch.from_arrays([vectors, prints], names=[self.column, self.fingerprint])


class RowCounter:
    """Tells a callback how many rows are done; it pickles without the callback."""

    def __init__(self, tell: Progress | None, fragment_rows: Sequence[int]) -> None:
        """Begin with no row done; ``fragment_rows``: those of each fragment."""
        self._tell, self._ends = tell, [0, *accumulate(fragment_rows)]
        self._done = 0

    def add(self, rows: int) -> None:
        """Count rows of a fragment that are done."""
        self._reach(self._done + rows)

    def finish(self, number: int) -> None:
        """Count all rows up to the end of the fragment of that number, embedded or not."""
        self._reach(self._ends[number + 1])

    def _reach(self, rows: int) -> None:
        last = self._ends[-1]
        if self._tell is not None and rows != self._done:
            self._done = min(rows, last)
            self._tell(self._done, last)

    def __reduce__(self) -> tuple[type[RowCounter], tuple[None, list[int]]]:
        """Pickle without the callback, which may hold what does not pickle."""
        return RowCounter, (None, [])


@dataclass(frozen=True, slots=True)
class NewVectors:
    """Embeds all rows: the only column read is the source."""

    embedder: Embedder
    inputs: Projection
    counter: RowCounter
    in_order: bool = field(default=True, init=False)

    def make(self, batch: pa.RecordBatch, _: Place) -> pa.RecordBatch:
        """Return vectors and fingerprints."""
        values = plain_values(batch.column(0), self.embedder.source)
        vectors = self.embedder.vectors(values).array()
        self.counter.add(batch.num_rows)
        return self.embedder.batch(vectors, fingerprints(values))


@dataclass(frozen=True, slots=True)
class RefreshedVectors:
    """Embeds stale rows, and keeps the vectors of all others.

    ``inputs``: the source, the vectors, and the fingerprints if there are any; ``rule`` says which rows are stale.
    """

    embedder: Embedder
    inputs: Projection
    rule: StaleRule
    counter: RowCounter
    in_order: bool = field(default=True, init=False)

    def make(self, batch: pa.RecordBatch, _: Place) -> pa.RecordBatch:
        """Return vectors and fingerprints."""
        values = plain_values(batch.column(0), self.embedder.source)
        vectors = batch.column(1)
        prints = fingerprints(values)
        old = batch.column(2) if self.embedder.fingerprint is not None else None
        stale = self.rule.stale(values, prints, old, vectors)
        places = np.flatnonzero(stale)
        if len(places):
            made = self.embedder.vectors(values.take(pa.array(places))).array()
            vectors = _replaced(vectors, made, places)
        if (
            old is not None
        ):  # other rows keep their fingerprints, which may tell that they are stale by another rule
            prints = _replaced(old, prints.take(pa.array(places)), places)
        self.counter.add(batch.num_rows)
        return self.embedder.batch(vectors, prints)


def _replaced(
    old: pa.Array[Any], new: pa.Array[Any], places: npt.NDArray[np.int64]
) -> pa.Array[Any]:
    """Return an array with other values at some places."""
    if len(places) == len(old):
        return new
    rows = np.arange(len(old))
    rows[places] = len(old) + np.arange(len(places))
    both: pa.Array[Any] = pa.concat_arrays([old.cast(new.type), new])
    return both.take(pa.array(rows))


@dataclass(frozen=True, slots=True)
class StaleRule:
    """The rule for rows that are to be embedded again.

    ``by_source``: those whose fingerprint is not that of their source.  ``by_vector``: those that have a source and no
    vector.  ``every``: all.
    """

    by_source: bool
    by_vector: bool
    every: bool = False

    def stale(
        self,
        values: pa.Array[Any],
        prints: pa.Array[Any],
        old: pa.Array[Any] | None,
        vectors: pa.Array[Any] | None,
    ) -> npt.NDArray[np.bool_]:
        """Return which rows are stale; ``old``: the fingerprints that they have."""
        found = np.full(len(values), self.every, np.bool_)
        if self.by_source and old is not None:
            found |= differ(prints, old)
        if self.by_vector and vectors is not None:
            has_source = values.is_valid().to_numpy(zero_copy_only=False)
            found |= has_source & vectors.is_null().to_numpy(zero_copy_only=False)
        return found
