"""A planner of searches in vector indices, as small as one can be: what is searched is the files alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import pennon
from pennon.index.files import IndexFiles
from pennon.index.vector.base import Probes, SearchResult, VectorIndex
from pennon.index.vector.search.open import open_vector_index
from pennon.table.indices import Index
from pennon.table.indices_wire import parse_indices

Array = npt.NDArray[Any]


class Searched:
    """A table and all segments of its vector index."""

    def __init__(self, uri: str | Path) -> None:
        self.table = pennon.dataset(uri)
        snapshot = self.table.snapshot
        entries = parse_indices(snapshot.manifest.indices)
        self.entries: list[Index] = [each for each in entries if not each.name.startswith("__")]
        self.segments: list[VectorIndex] = [
            open_vector_index(
                IndexFiles(
                    entry.folder,
                    snapshot.open_index_file,
                    snapshot.session.index_parts,
                    snapshot.store.open,
                )
            )
            for entry in self.entries
        ]
        rows = self.table.scanner(["id"], with_row_id=True).to_table()
        self.ids = dict(zip(rows["_rowid"].to_pylist(), rows["id"].to_pylist(), strict=True))
        self._alive = np.array(sorted(self.ids), np.uint64)

    def found(self, queries: Array, k: int, probes: Probes) -> list[SearchResult]:
        """Return what each segment finds of the rows that are there."""
        return [
            each.search(queries, k, probes, lambda rows: np.isin(rows, self._alive))
            for each in self.segments
        ]

    def search(
        self, query: Sequence[float] | Array, k: int, nprobes: int, ef: int | None = None
    ) -> tuple[list[int], list[float]]:
        """Return the ids of the rows near a query, and their distances."""
        asked = np.asarray(query)
        found = self.found(asked[None], k, Probes(nprobes, nprobes, ef))
        rows = np.concatenate([each.rows for each in found])
        distances = np.concatenate([each.distances for each in found])
        order = np.lexsort((rows, distances))[:k]
        return [self.ids[int(row)] for row in rows[order]], distances[order].tolist()


def same_answers(
    found: tuple[list[int], list[float]], expected: tuple[list[int], list[float]], rtol: float
) -> bool:
    """Return whether answers are the same but for the order of rows at one distance, of which the last may differ."""
    (ids, near), (known, apart) = found, expected
    if len(ids) != len(known) or not np.allclose(near, apart, rtol, rtol / 10):
        return False
    ties = max(abs(apart[-1]), 0.1) * rtol if apart else 0.0
    inner = [at for at in range(len(apart)) if apart[at] < apart[-1] - ties]
    mine, theirs = {ids[at] for at in inner}, {known[at] for at in inner}
    if mine == theirs:
        return True
    # rows of nearly one distance at the border
    return len(mine ^ theirs) <= 2 and len(set(ids) ^ set(known)) <= 2
