"""Searching texts: what each kind of query finds.

A query that is one column's asks for the best rows of each partition, and looks at as few documents as that takes
(`pennon.index.text.matching`).  One that is made of others asks for all that these find, and combines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from pennon.core.fast_dataclass import dataclass
from pennon.errors import ArgumentError
from pennon.index.row_set import Numbers
from pennon.index.text.arrays import Floats
from pennon.index.text.bm25 import Statistics, share
from pennon.index.text.hits import NOTHING, Best, Hits, among, greatest, summed, together
from pennon.index.text.matching import find_any, find_every, find_phrase
from pennon.index.text.queries import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    DocumentGranularity,
    FullTextOperator,
    FullTextQuery,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
    leaves,
)
from pennon.index.text.terms import EXACT, Fuzziness
from pennon.index.text.tokenizer import Placed
from pennon.scan.search.scope import Scope
from pennon.scan.search.text_columns import TextColumn

ColumnKey: TypeAlias = tuple[str, DocumentGranularity | None]


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """A query over the rows of a scope; the columns that it names, opened."""

    query: FullTextQuery
    columns: dict[ColumnKey, TextColumn]
    scope: Scope

    @classmethod
    def of(
        cls, query: FullTextQuery, scope: Scope, known: Mapping[ColumnKey, TextColumn] | None = None
    ) -> Search:
        """Open the columns but those known, of the same scope.

        Raises ArgumentError for a query that cannot be answered.
        """
        columns = dict(known or {})
        for leaf in leaves(query):
            for key in _columns_of(leaf):
                if key not in columns:
                    columns[key] = TextColumn(scope, *key)
        return cls(query, columns, scope)

    @property
    def by_item(self) -> bool:
        """Return whether what is found are items of lists."""
        return any(each.reader.by_item for each in self.columns.values())

    def best(self, most: int | None) -> Hits:
        """Return what fits the query, best first, those of equal scores by row; no more than ``most``."""
        return self._find(self.query, most).best(most).distinct()

    def _find(self, query: FullTextQuery, most: int | None) -> Hits:
        if isinstance(query, MatchQuery):
            return self._match(query, most)
        if isinstance(query, PhraseQuery):
            return self._phrase(query, most)
        if isinstance(query, MultiMatchQuery):
            return greatest([self._find(part, most) for part in query.parts])
        if isinstance(query, CombinedFieldsQuery):
            return self._combined(query)
        if isinstance(query, BoostQuery):
            pair = _Pair.of(query.positive, query.negative, -np.float32(query.negative_boost))
            return self._boosted(query) if pair is None else self._paired(pair, most)
        if isinstance(query, BooleanQuery):
            pair = _pair_of(query)
            return self._boolean(query) if pair is None else self._paired(pair, most)
        message = f"a search in text cannot be a {type(query).__name__}"
        raise TypeError(message)

    def _match(self, query: MatchQuery, most: int | None) -> Hits:
        column = self.columns[query.column, query.document_granularity]
        asked = column.asked(query.query)
        best = Best(most)
        for searched, terms in column.search(asked, _fuzziness(query)):
            if query.operator is FullTextOperator.AND:
                find_every(searched, terms, len({at for _, at in asked}), best)
            else:
                find_any(searched, terms, best)
        self._count(best)
        return best.found().scaled(query.boost)

    def _phrase(self, query: PhraseQuery, most: int | None) -> Hits:
        column = self.columns[query.column, query.document_granularity]
        asked = column.asked(query.query)
        best, positions = Best(most), len({at for _, at in asked})
        for searched, terms in column.search(asked, EXACT, places=True):
            find_phrase(searched, terms, positions, query.slop, best)
        self._count(best)
        return best.found()

    def _paired(self, pair: _Pair, most: int | None) -> Hits:
        column = self.columns[pair.found.column, pair.found.document_granularity]
        queries = [
            (column.asked(each.query), _fuzziness(each)) for each in (pair.found, pair.beside)
        ]
        best = Best(most)
        for searched, (terms, beside) in column.search_all(queries):
            find_any(searched, terms, best, beside, pair.factor)
        self._count(best)
        return best.found()

    def _count(self, best: Best) -> None:
        if self.scope.snapshot.meter is not None:
            self.scope.snapshot.meter.compare(best.given)

    def _boosted(self, query: BoostQuery) -> Hits:
        found = self._find(query.positive, None)
        worse = self._find(query.negative, None)
        is_worse, places = among(found, worse)
        scores = found.scores.copy()
        scores[is_worse] -= np.float32(query.negative_boost) * worse.scores[places[is_worse]]
        return Hits(found.rows, scores, found.items)

    def _boolean(self, query: BooleanQuery) -> Hits:
        should = summed([self._find(each, None) for each in query.of(Occur.SHOULD)])
        must = [self._find(each, None) for each in query.of(Occur.MUST)]
        found = must[0] if must else should
        for each in must[1:]:
            is_in, places = among(found, each)
            found = found.at(is_in)
            scores = found.scores + each.scores[places[is_in]]
            found = Hits(found.rows, scores, found.items)
        if must and len(should):
            is_in, places = among(found, should)
            scores = found.scores.copy()
            scores[is_in] += should.scores[places[is_in]]
            found = Hits(found.rows, scores, found.items)
        for part in query.of(Occur.MUST_NOT):
            is_out, _ = among(found, self._find(part, None))
            found = found.at(~is_out)
        return found

    def _combined(self, query: CombinedFieldsQuery) -> Hits:
        columns = [self.columns[path, DocumentGranularity.ROW] for path in query.columns]
        first = columns[0]
        if any(each.reader.parameters != first.reader.parameters for each in columns):
            message = f"the columns {', '.join(query.columns)} have indices of different tokenizers"
            raise ArgumentError(message)
        asked = first.asked(query.query)
        fields = [
            _Field.of(each, asked, weight)
            for each, weight in zip(columns, query.boosts, strict=True)
        ]
        return _combine(fields, asked, needs_all=query.operator is FullTextOperator.AND)


def _columns_of(leaf: FullTextQuery) -> list[ColumnKey]:
    if isinstance(leaf, (MatchQuery, PhraseQuery)):
        return [(leaf.column, leaf.document_granularity)]
    if isinstance(leaf, CombinedFieldsQuery):
        return [(path, DocumentGranularity.ROW) for path in leaf.columns]
    return []


def _fuzziness(query: MatchQuery) -> Fuzziness:
    return Fuzziness(query.fuzziness, query.prefix_length, query.max_expansions)


# --- two matches of one column --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Pair:
    """A match that finds rows, and one beside it that just changes their scores: of the same column.

    Both are scored together, and as few rows as for the first alone.
    """

    found: MatchQuery
    beside: MatchQuery
    factor: float

    @classmethod
    def of(cls, found: FullTextQuery, beside: FullTextQuery, factor: np.float32) -> _Pair | None:
        """Return two queries as a pair; None if they are not such."""
        if not isinstance(found, MatchQuery) or not isinstance(beside, MatchQuery):
            return None
        pair = found, beside
        is_plain = all(each.operator is FullTextOperator.OR and each.boost == 1 for each in pair)
        keys = {(each.column, each.document_granularity) for each in pair}
        return cls(*pair, float(factor)) if is_plain and len(keys) == 1 else None


def _pair_of(query: BooleanQuery) -> _Pair | None:
    """Return a query of one match that must be, and one that should be."""
    must, should = query.of(Occur.MUST), query.of(Occur.SHOULD)
    if len(must) != 1 or len(should) != 1 or query.of(Occur.MUST_NOT):
        return None
    return _Pair.of(must[0], should[0], np.float32(1))


# --- several columns as one -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Field:
    """A column of a query for several: its rows and their lengths, and how often each token is in them."""

    weight: np.float32
    documents: Hits
    """All rows that may be found, sorted; the lengths stand in place of scores."""
    found: dict[int, Hits]
    """By the number of the token asked for: rows, and how often they have it."""
    statistics: Statistics

    @classmethod
    def of(cls, column: TextColumn, asked: Sequence[Placed], weight: float) -> _Field:
        """Read the posting lists of a column."""
        rows, found = [NOTHING], [[NOTHING] for _ in asked]
        documents = tokens = 0
        having: dict[str, int] = {}
        for partition, searched in column.partitions():
            documents += len(partition.row_ids)
            tokens += partition.token_count
            everyone = np.arange(len(partition.lengths), dtype=np.uint32)
            rows.append(searched.hits(everyone, partition.lengths.astype(np.float32)))
            for at, (token, _) in enumerate(asked):
                number = partition.tokens.find(token)
                if number is None:
                    continue
                docs, frequencies = partition.postings([number], places=False)[0].decode()
                if all(token != other for other, _ in asked[:at]):
                    having[token] = having.get(token, 0) + len(docs)
                found[at].append(searched.hits(docs, frequencies.astype(np.float32)))
        together_ = together(rows)
        ordered = together_.at(np.argsort(together_.rows))
        by_token = {at: together(each) for at, each in enumerate(found)}
        return cls(
            np.float32(weight),
            Hits(ordered.rows, ordered.scores),
            by_token,
            Statistics(documents, tokens, having),
        )

    def of_rows(self, hits: Hits, rows: Numbers) -> Floats:
        """Return what stands beside rows among some hits; 0 where they are not."""
        is_in, places = among(Hits(rows, np.empty(len(rows), np.float32)), _plain(hits))
        values = np.zeros(len(rows), np.float32)
        values[is_in] = hits.scores[places[is_in]]
        return values


def _plain(hits: Hits) -> Hits:
    return Hits(hits.rows, hits.scores)


def _combine(fields: Sequence[_Field], asked: Sequence[Placed], *, needs_all: bool) -> Hits:
    documents = max(each.statistics.documents for each in fields)
    average = sum(each.weight * np.float32(each.statistics.tokens) for each in fields)
    average = np.float32(average) / np.float32(max(documents, 1))
    named = [each.found[at].rows for each in fields for at in range(len(asked))]
    rows = np.unique(np.concatenate([np.empty(0, np.uint64), *named]))
    lengths = np.sum(
        [each.weight * each.of_rows(each.documents, rows) for each in fields], axis=0
    ).astype(np.float32)
    scores = np.zeros(len(rows), np.float32)
    has_all = np.ones(len(rows), np.bool_)
    for at, (token, _) in enumerate(asked):
        frequencies = np.sum(
            [each.weight * each.of_rows(each.found[at], rows) for each in fields], axis=0
        ).astype(np.float32)
        having = max(each.statistics.having.get(token, 0) for each in fields)
        weight = Statistics(documents, 0, {token: having}).idf(token)
        has = frequencies > 0
        scores[has] += np.float32(weight) * share(frequencies[has], lengths[has], float(average))
        has_all &= has
    hits = Hits(rows, scores)
    return hits.at(has_all) if needs_all else hits
