"""The rows whose texts fit a query, with their scores, best first: a source of rows.

::

    query, columns      "quick fox", ["text"], or a query of `pennon.query`
    prefilter           the condition rules rows out before the search
    search              addresses and scores, cut by offset and limit

``_score`` comes behind the columns of the table, and before it ``_doc_index`` where items of lists are found
(`pennon.scan.answer`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pennon.errors import ArgumentError
from pennon.index.text.queries import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    FullTextQuery,
    MatchQuery,
    MultiMatchQuery,
    PhraseQuery,
)
from pennon.scan.answer import Found
from pennon.scan.plan.query import ColumnOrdering, ScanOptions
from pennon.scan.plan.row_search import SCORE, AddedColumns, TextSearch
from pennon.scan.read.arrays import float32_array, int32_array
from pennon.scan.run.plan_steps import Limit, Plan, Sort, chained, fed_by
from pennon.scan.search.scope import Scope
from pennon.scan.search.text_columns import text_paths
from pennon.scan.search.text_search import Search
from pennon.scan.snapshot import Snapshot

ITEM: Final = "_doc_index"
_FIELDS: Final = {ITEM: pa.field(ITEM, pa.list_(pa.uint32())), SCORE: pa.field(SCORE, pa.float32())}
_ITEMS_SCORED: Final = AddedColumns(_FIELDS, last=(ITEM, SCORE))
_ITEMS_NOT_SCORED: Final = AddedColumns(_FIELDS, last=(ITEM,))
_BEST_FIRST: Final = (ColumnOrdering(SCORE, ascending=False),)


def query_of(snapshot: Snapshot, asked: TextSearch) -> FullTextQuery:
    """Return the query that a text stands for: a phrase in quotes, else any of its words.

    Without columns all that have a full-text index.  Raises ArgumentError if there is none.
    """
    given: Any = asked.query
    if isinstance(given, FullTextQuery):
        return given
    if not isinstance(given, str):
        message = f"a search in text is a text or a FullTextQuery, got {type(given).__name__}"
        raise TypeError(message)
    paths = list(asked.columns or text_paths(snapshot))
    if not paths:
        message = (
            "Cannot perform full text search unless an INVERTED index has been created on at least one "
            "column, or columns are named"
        )
        raise ArgumentError(message)
    if len(given) > 1 and given[0] == given[-1] == '"':
        if len(paths) > 1:
            message = f"a phrase is looked for in one column, and not in {', '.join(paths)}: the column must be specified in the query"
            raise ArgumentError(message)
        return PhraseQuery(given[1:-1], paths[0])
    return MatchQuery(given, paths[0]) if len(paths) == 1 else MultiMatchQuery(given, paths)


@dataclass(frozen=True, slots=True, eq=False)
class TextSource:
    """The rows of a version whose texts fit the query of a search."""

    asked: TextSearch
    search: Search
    cuts: bool = True

    @classmethod
    def of(cls, snapshot: Snapshot, options: ScanOptions, asked: TextSearch) -> TextSource:
        """Bind a search.  Raises ArgumentError for a query that cannot be answered."""
        if options.with_deleted:
            raise ArgumentError("Cannot include deleted rows in a full text search")
        scope = Scope.of(snapshot, options, asked)
        return cls(asked, Search.of(query_of(snapshot, asked), scope))

    def asking(self, query: str) -> TextSource:
        """Return the source for another query; the columns that are open stay so."""
        scope, asked = self.search.scope, replace(self.asked, query=query)
        search = Search.of(query_of(scope.snapshot, asked), scope, self.search.columns)
        return replace(self, asked=asked, search=search)

    @property
    def added(self) -> AddedColumns:
        """See `pennon.scan.answer.RowSource.added`."""
        if not self.search.by_item:
            return self.asked.added
        return _ITEMS_SCORED if self.asked.is_scored else _ITEMS_NOT_SCORED

    def find(self, limit: int | None, offset: int) -> Found:
        """Return the rows that fit best, behind the first ``offset``, no more than ``limit``."""
        hits = self.search.best(None if limit is None else offset + limit)
        hits = hits.at(slice(offset, None)) if offset else hits
        added: dict[str, pa.Array[Any]] = {SCORE: float32_array(hits.scores)}
        if self.search.by_item:
            items = np.zeros(len(hits), np.uint32) if hits.items is None else hits.items
            ends = int32_array(np.arange(len(items) + 1, dtype=np.int32))
            added[ITEM] = pa.ListArray.from_arrays(ends, pa.array(items))
        return Found(hits.rows, added)

    def steps(self, limit: int | None, offset: int) -> tuple[Plan, ...]:
        """Return the plan of the search."""
        above = [Plan(Limit(limit, offset))] if limit is not None or offset else []
        above.append(Plan(Sort(_BEST_FIRST)))
        plans = self._plans(self.search.query)
        return chained(above, fed_by(plans, self.search.scope.steps()))

    def _plans(self, query: FullTextQuery) -> tuple[Plan, ...]:
        if isinstance(query, (MatchQuery, PhraseQuery)):
            return tuple(map(Plan, self._matches(query)))
        parts = tuple(plan for part in query.parts for plan in self._plans(part))
        return (Plan(CombineQueries(query), parts),)

    def _matches(self, query: MatchQuery | PhraseQuery) -> Iterator[MatchTexts | ReadTexts]:
        column = self.search.columns[query.column, query.document_granularity]
        if column.has_index:
            yield MatchTexts(query, tuple(token for token, _ in column.asked(query.query)))
        if column.uncovered:
            yield ReadTexts(query, len(column.uncovered))


# --- steps of plans -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MatchTexts:
    """A full-text index is searched for tokens."""

    query: MatchQuery | PhraseQuery
    tokens: tuple[str, ...]

    def __str__(self) -> str:
        is_match = isinstance(self.query, MatchQuery)
        words = f"[{','.join(self.tokens)}]" if is_match else self.query.query
        return f"{type(self.query).__name__}: column={self.query.column}, query={words}"


@dataclass(frozen=True, slots=True)
class ReadTexts:
    """Texts of fragments that no index covers are read and searched."""

    query: MatchQuery | PhraseQuery
    fragments: int

    def __str__(self) -> str:
        query = self.query
        return f"FlatMatchQuery: column={query.column}, query={query.query}, num_fragments={self.fragments}"


@dataclass(frozen=True, slots=True)
class CombineQueries:
    """The combination of the hits of several queries."""

    query: FullTextQuery

    def __str__(self) -> str:
        query = self.query
        if isinstance(query, BooleanQuery):
            heads = [
                f"{occur.value.lower()}=[{', '.join(_short(each) for each in query.of(occur))}]"
                for occur in dict.fromkeys(each for each, _ in query.queries)
            ]
            return f"CompoundFtsScorer: query=Boolean({', '.join(heads)})"
        if isinstance(query, BoostQuery):
            return f"BoostQuery: negative_boost={query.negative_boost}"
        if isinstance(query, MultiMatchQuery):
            return f"MultiMatchQuery: query={query.query}"
        if isinstance(query, CombinedFieldsQuery):
            return f"CombinedFieldsQuery: columns=[{', '.join(query.columns)}], query={query.query}"
        return _short(query)


def _short(query: FullTextQuery) -> str:
    if isinstance(query, (MatchQuery, PhraseQuery)):
        name = type(query).__name__.removesuffix("Query")
        return f"{name}(column={query.column}, query={query.query})"
    return repr(query)
