"""A scan that searches vectors and texts at once: two lists of rows, made one by their ranks.

::

    vectors       rows by distance        1, 2, 3, ...      `pennon.scan.search.nearest`
    texts         rows by score           1, 2, 3, ...      `pennon.scan.search.full_text`
    fusion        each row: the sum of 1 / (constant + rank) over the lists that it is in
    rows          the best of them by that sum, those of equal sums by address; their columns are taken

Distances and scores are not comparable, ranks are: this is reciprocal rank fusion (Cormack, Clarke and Buettcher,
2009), with the constant of the paper, 60, and the first rank 1.  A filter is each search's own, before or behind it.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.errors import ArgumentError
from pennon.index.row_set import Numbers
from pennon.index.text.hits import NOTHING, Hits
from pennon.scan.plan.query import BoundQuery, ScanOptions, TextSearch, bind_query
from pennon.scan.projection import MetaColumn
from pennon.scan.run.sort import take_rows
from pennon.scan.search.full_text import SCORE, TextScan
from pennon.scan.search.nearest import DISTANCE, NearestScan
from pennon.scan.snapshot import Snapshot

if TYPE_CHECKING:
    from pennon.index.vector.base import Floats
    from pennon.index.vector.search.top_k import Neighbours
    from pennon.scan.plan.vector_query import VectorSearch

RELEVANCE: Final = "_relevance_score"
ADDED: Final = (DISTANCE, SCORE, RELEVANCE)
"""The columns that a search adds; the first two are NULL where a row was found by the other search alone."""
CONSTANT: Final = 60.0
"""The paper's; how much the first ranks count more than those behind them."""
_DEFAULT_K: Final = 10
_METAS: Final = (MetaColumn.ROW_ID.value, MetaColumn.ROW_ADDRESS.value)


@dataclass(frozen=True, slots=True, eq=False)
class Fused:
    """Rows, best first: addresses, and of each what it was found by; NaN where it was not."""

    addresses: Numbers
    distances: Floats
    scores: Floats
    relevance: Floats

    @classmethod
    def joined(cls, parts: Sequence[Fused]) -> Fused:
        """Return all of them in one, in order."""
        return cls(
            np.concatenate([np.empty(0, np.uint64), *(each.addresses for each in parts)]),
            np.concatenate([np.empty(0, np.float32), *(each.distances for each in parts)]),
            np.concatenate([np.empty(0, np.float32), *(each.scores for each in parts)]),
            np.concatenate([np.empty(0, np.float32), *(each.relevance for each in parts)]),
        )

    def columns(self) -> dict[str, pa.Array[Any]]:
        """Return the columns that a search adds."""
        values = (self.distances, self.scores, self.relevance)
        pairs = zip(ADDED, values, strict=True)
        return {name: pa.array(each, pa.float32(), mask=np.isnan(each)) for name, each in pairs}


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

    def join(self, near: Neighbours, hits: Hits) -> Fused:
        """Return the best rows of those near a vector, nearest first, and of those that fit a text, best first."""
        _, first = np.unique(hits.rows, return_index=True)
        hits = hits.at(np.sort(first))  # of the items of a row the best one counts
        rows = np.unique(np.concatenate([near.addresses, hits.rows]))
        sums = np.zeros(len(rows), np.float64)
        distances, scores = np.full((2, len(rows)), np.nan, np.float32)
        lists = ((near.addresses, near.distances, distances), (hits.rows, hits.scores, scores))
        for addresses, values, column in lists:
            places = np.searchsorted(rows, addresses)
            sums[places] += 1 / (self.constant + np.arange(1, len(addresses) + 1))
            column[places] = values
        best = np.argsort(-sums, kind="stable")[: self.k]
        relevance = sums[best].astype(np.float32)
        return Fused(rows[best], distances[best], scores[best], relevance)


class HybridScan:
    """A scan that searches vectors and texts, bound to a version."""

    def __init__(
        self,
        snapshot: Snapshot,
        options: ScanOptions,
        vectors: VectorSearch,
        texts: TextSearch,
        fusion: Fusion,
    ) -> None:
        """Bind a scan.  Raises ArgumentError for one that cannot be answered."""
        if vectors.is_batch:
            message = (
                "a hybrid search has one query, a vector and a text; nearest has several vectors"
            )
            raise ArgumentError(message)
        columns = options.columns
        self._names = None if columns is None or isinstance(columns, Mapping) else columns
        if self._names is not None:
            columns = tuple(name for name in self._names if name not in ADDED)
        bare = replace(options, columns=(), expressions={}, order=(), limit=None, offset=0)
        most = vectors.k or fusion.candidates
        self._near = NearestScan(snapshot, bare, replace(vectors, k=most))
        search = replace(bare, search=texts, limit=fusion.candidates)
        self._texts = TextScan.of(snapshot, search)
        shown = replace(options, columns=columns, predicate=None, limit=None, offset=0)
        self._query: BoundQuery = bind_query(snapshot, shown)
        self._fusion = fusion

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of what comes out: what a search adds comes last, unless it is named."""
        fields = {field.name: field for field in self._query.schema}
        metas = [name for name in _METAS if name in fields]
        names = [name for name in fields if name not in metas]
        if self._names is not None:
            names = [name for name in self._names if name not in metas]
        fields |= {name: pa.field(name, pa.float32()) for name in ADDED}
        last = [name for name in ADDED if name not in names]
        return pa.schema(
            [fields[name] for name in (*names, *last, *metas)], self._query.schema.metadata
        )

    def read(self) -> pa.Table:
        """Return the rows."""
        return self.rows(self._fusion.join(self._near.near(), self._texts.hits()))

    def fuse(self, near: Neighbours, text: str | None) -> Fused:
        """Return the rows that come out for rows found near another vector, and for another text; None: for no text."""
        texts = None if text is None else self._texts.asking(text)
        hits = NOTHING if texts is None else texts.hits()
        return self._fusion.join(self._near.filtered(near), hits)

    def rows(self, found: Fused) -> pa.Table:
        """Return the columns of rows that were found, in their order."""
        table = take_rows(self._query, found.addresses)
        columns: dict[str, Any] = dict(zip(table.column_names, table.columns, strict=True))
        columns |= found.columns()
        schema = self.schema
        return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)
