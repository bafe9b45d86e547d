"""The rows that two searches find, of vectors and of texts, made one list by their ranks: a source of rows.

::

    vectors       rows by distance        1, 2, 3, ...      `pennon.scan.search.nearest`
    texts         rows by score           1, 2, 3, ...      `pennon.scan.search.full_text`
    fusion        each row: the sum of 1 / (constant + rank) over the lists that it is in
    best          rows by that sum, those of equal sums by address

Distances and scores are not comparable, ranks are: this is reciprocal rank fusion (Cormack, Clarke and Buettcher,
2009), with the constant of the paper, 60, and the first rank 1.  A filter is each search's own, before or behind it.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.errors import ArgumentError
from pennon.index.vector.search.top_k import Neighbours
from pennon.scan.answer import Answer, Found
from pennon.scan.plan.query import ScanOptions
from pennon.scan.plan.row_search import SCORE, AddedColumns, TextSearch
from pennon.scan.plan.vector_query import DISTANCE, VectorSearch
from pennon.scan.read.arrays import float32_array
from pennon.scan.run.plan_steps import Plan
from pennon.scan.search.full_text import TextSource
from pennon.scan.search.nearest import NearestSource
from pennon.scan.snapshot import Snapshot

RELEVANCE: Final = "_relevance_score"
CONSTANT: Final = 60.0
"""The paper's; how much the first ranks count more than those behind them."""
_DEFAULT_K: Final = 10
_NAMES: Final = (DISTANCE, SCORE, RELEVANCE)
_ADDED: Final = AddedColumns({name: pa.field(name, pa.float32()) for name in _NAMES}, last=_NAMES)
"""The first two are NULL where a row was found by the other search alone."""
_NO_TEXTS: Final = Found(np.empty(0, np.uint64), {SCORE: float32_array(np.empty(0, np.float32))})


@dataclass(frozen=True, slots=True)
class Fusion:
    """The fusion of two lists: ``k`` rows come out, ``candidates`` are asked of each search."""

    k: int
    candidates: int
    constant: float

    @classmethod
    def of(
        cls, k: int | None = None, candidates: int | None = None, constant: float = CONSTANT
    ) -> Fusion:
        """Return a fusion; as many candidates as rows by default.  Raises ArgumentError for what makes no sense."""
        wanted = _DEFAULT_K if k is None else operator.index(k)
        asked = wanted if candidates is None else operator.index(candidates)
        if wanted < 1:
            message = f"k is the number of rows to find, 1 or more, got {wanted}"
            raise ArgumentError(message)
        if asked < wanted:
            message = (
                f"candidates, the rows asked of each search, are k ({wanted}) or more, got {asked}"
            )
            raise ArgumentError(message)
        if not 0 <= float(constant) < np.inf:
            message = f"the constant of the ranks is 0 or more, got {constant}"
            raise ArgumentError(message)
        return cls(wanted, asked, float(constant))

    def search(self, vectors: VectorSearch, texts: TextSearch) -> HybridSearch:
        """Return the search whose rows are those of two, made one list."""
        return HybridSearch(vectors, texts, self)

    def join(self, lists: Sequence[tuple[str, Found]]) -> Found:
        """Return the best rows of lists, each best first; of each list the column of that name comes along."""
        rows = np.unique(np.concatenate([found.addresses for _, found in lists]))
        sums = np.zeros(len(rows), np.float64)
        columns: dict[str, npt.NDArray[np.float32]] = {}
        for name, found in lists:
            _, firsts = np.unique(found.addresses, return_index=True)
            firsts.sort()  # of the items of a row the best one counts
            places = np.searchsorted(rows, found.addresses[firsts])
            sums[places] += 1 / (self.constant + np.arange(1, len(firsts) + 1))
            columns[name] = np.full(len(rows), np.nan, np.float32)
            columns[name][places] = found.added[name].to_numpy()[firsts]
        columns[RELEVANCE] = sums.astype(np.float32)
        best = np.argsort(-sums, kind="stable")[: self.k]
        return Found(rows[best], {name: _or_null(each[best]) for name, each in columns.items()})


def _or_null(values: npt.NDArray[np.float32]) -> pa.Array[Any]:
    """Return values, NULL for NaN."""
    return pa.array(values, pa.float32(), mask=np.isnan(values))


@dataclass(frozen=True, slots=True, eq=False)
class HybridSearch:
    """A search for vectors and texts at once."""

    vectors: VectorSearch
    texts: TextSearch
    fusion: Fusion

    @property
    def source(self) -> str:
        """See `pennon.scan.plan.row_search.RowSearch`."""
        return "fusion:HybridSource"

    @property
    def prefilter(self) -> bool:
        """Return True: the condition is for what each of the two finds, and not for the rows of both."""
        return True

    @property
    def is_fast(self) -> bool:
        """Return whether rows that no index covers are left out."""
        return self.vectors.is_fast

    @property
    def added(self) -> AddedColumns:
        """Return distances and scores, and how relevant a row is by both."""
        return _ADDED


class HybridSource:
    """The rows of a version that fit a vector and a text best."""

    cuts: bool = False
    added: AddedColumns = _ADDED

    def __init__(self, snapshot: Snapshot, options: ScanOptions, asked: HybridSearch) -> None:
        """Bind a search.  Raises ArgumentError for one that cannot be answered."""
        vectors, texts, fusion = asked.vectors, asked.texts, asked.fusion
        if vectors.is_batch:
            message = (
                "a hybrid search has one query, a vector and a text; nearest has several vectors"
            )
            raise ArgumentError(message)
        bare = replace(
            options, columns=(), expressions={}, order=(), orderings=(), limit=None, offset=0
        )
        vectors = replace(vectors, k=vectors.k or fusion.candidates)
        self._near = Answer(
            snapshot, replace(bare, search=vectors), partial(NearestSource, asked=vectors)
        )
        bare = replace(bare, search=texts, limit=fusion.candidates)
        self._texts = Answer(snapshot, bare, partial(TextSource.of, asked=texts))
        self._fusion = fusion

    def find(self, limit: int | None, offset: int) -> Found:  # noqa: ARG002 - the k best are found before rows are cut
        """Return the best rows of both searches."""
        return self._join(self._near.found(), self._texts.found())

    def fuse(self, near: Neighbours, text: str | None) -> Found:
        """Return the rows for what was found near another vector, and for another text; None: for no text."""
        found = self._near.filtered(self._near.source.found(near))
        if text is None:
            return self._join(found, _NO_TEXTS)
        texts = self._texts.source.asking(text).find(self._fusion.candidates, 0)
        return self._join(found, self._texts.filtered(texts))

    def _join(self, near: Found, texts: Found) -> Found:
        return self._fusion.join([(DISTANCE, near), (SCORE, texts)])

    def steps(self, limit: int | None, offset: int) -> tuple[Plan, ...]:  # noqa: ARG002 - as `find`
        """Return the plan of both searches."""
        fusion = self._fusion
        parts = (*self._near.steps(), *self._texts.steps())
        return (Plan(FuseRanks(fusion), parts),)


@dataclass(frozen=True, slots=True)
class FuseRanks:
    """The ranks of rows in two lists are made one: a step of plans."""

    fusion: Fusion

    def __str__(self) -> str:
        return f"RankFusion: k={self.fusion.k}, constant={self.fusion.constant}"
