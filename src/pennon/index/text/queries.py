"""Full-text queries: pylance's query classes, as values.

::

    MatchQuery("quick fox", "text")                            any of the tokens, or all
    PhraseQuery("quick fox", "text", slop=1)                   in order
    BoostQuery(positive, negative)                             worse if the negative one fits, too
    MultiMatchQuery("quick fox", ["title", "text"])            the best of several columns
    CombinedFieldsQuery("quick fox", ["title", "text"])        several columns as if they were one
    BooleanQuery([(Occur.MUST, query), ...]), a & b, a | b     several queries
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, StrEnum
from typing import Any

from pennon.errors import ArgumentError

_MOST_WEIGHT = 1 << 20


class FullTextQueryType(Enum):
    """The kinds of queries."""

    MATCH = "match"
    MATCH_PHRASE = "match_phrase"
    BOOST = "boost"
    MULTI_MATCH = "multi_match"
    COMBINED_FIELDS = "combined_fields"
    BOOLEAN = "boolean"


class FullTextOperator(Enum):
    """The number of tokens that a document must have: all, or any."""

    AND = "AND"
    OR = "OR"


class DocumentGranularity(StrEnum):
    """The unit that counts as a document: a row, or an item of a row's list.

    >>> from pennon.query import DocumentGranularity
    >>> DocumentGranularity.LIST_ELEMENT.value
    'list_element'
    """

    ROW = "row"
    LIST_ELEMENT = "list_element"


class Occur(Enum):
    """The role of a part in a `BooleanQuery`."""

    SHOULD = "SHOULD"
    MUST = "MUST"
    MUST_NOT = "MUST_NOT"


class FullTextQuery:
    """A query of texts; equal ones are equal, and it pickles.

    >>> from pennon.query import FullTextQuery, MatchQuery
    >>> isinstance(MatchQuery("fox", "text"), FullTextQuery)
    True
    """

    def query_type(self) -> FullTextQueryType:
        """Return the kind of the query."""
        raise NotImplementedError

    @property
    def inner(self) -> FullTextQuery:
        """Return the query itself: there is nothing inside."""
        return self

    @property
    def parts(self) -> tuple[FullTextQuery, ...]:
        """Return the queries that this one is made of."""
        return ()

    def __and__(self, other: FullTextQuery) -> BooleanQuery:
        """Return the query for what fits both."""
        return BooleanQuery([(Occur.MUST, self), (Occur.MUST, other)])

    def __or__(self, other: FullTextQuery) -> BooleanQuery:
        """Return the query for what fits one or both."""
        return BooleanQuery([(Occur.SHOULD, self), (Occur.SHOULD, other)])

    def __eq__(self, other: object) -> bool:
        """Compare kind and settings."""
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        """Hash the settings."""
        return hash((type(self).__name__, repr(self)))

    def __repr__(self) -> str:
        """Return the kind and the settings."""
        settings = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({settings})"


class MatchQuery(FullTextQuery):
    """Documents that have any token of a text, or all.

    ``fuzziness``: tokens may be so many edits of characters away; None: 0 of tokens of up to 2 characters,
    1 of up to 5, else 2.  ``prefix_length`` characters are the same, and no more than ``max_expansions``
    tokens are looked for.
    """

    def __init__(
        self,
        query: str,
        column: str,
        *,
        boost: float = 1.0,
        fuzziness: int | None = 0,
        max_expansions: int = 50,
        operator: FullTextOperator = FullTextOperator.OR,
        prefix_length: int = 0,
        document_granularity: DocumentGranularity | None = None,
    ) -> None:
        self.query, self.column = _text(query), _text(column)
        self.boost = _boost("MatchQuery", boost)
        self.fuzziness = None if fuzziness is None else _count("fuzziness", fuzziness)
        self.max_expansions = _count("max_expansions", max_expansions)
        self.operator = FullTextOperator(operator)
        self.prefix_length = _count("prefix_length", prefix_length)
        self.document_granularity = _granularity(document_granularity)

    def query_type(self) -> FullTextQueryType:
        """See `FullTextQuery.query_type`."""
        return FullTextQueryType.MATCH


class PhraseQuery(FullTextQuery):
    """Documents that have the tokens of a text in order, with at most ``slop`` others between neighbours."""

    def __init__(
        self,
        query: str,
        column: str,
        *,
        slop: int = 0,
        document_granularity: DocumentGranularity | None = None,
    ) -> None:
        self.query, self.column = _text(query), _text(column)
        self.slop = _count("slop", slop)
        self.document_granularity = _granularity(document_granularity)

    def query_type(self) -> FullTextQueryType:
        """See `FullTextQuery.query_type`."""
        return FullTextQueryType.MATCH_PHRASE


class BoostQuery(FullTextQuery):
    """Documents that fit one query, those that fit another one, too, with ``negative_boost`` times that score less."""

    def __init__(
        self, positive: FullTextQuery, negative: FullTextQuery, *, negative_boost: float = 0.5
    ) -> None:
        self.positive, self.negative = _query(positive), _query(negative)
        self.negative_boost = float(negative_boost)

    def query_type(self) -> FullTextQueryType:
        """See `FullTextQuery.query_type`."""
        return FullTextQueryType.BOOST

    @property
    def parts(self) -> tuple[FullTextQuery, ...]:
        """See `FullTextQuery.parts`."""
        return self.positive, self.negative


class _OfColumns(FullTextQuery):
    """A text that is looked for in several columns, each with its weight."""

    def __init__(
        self,
        query: str,
        columns: Sequence[str],
        *,
        boosts: Sequence[float] | None = None,
        operator: FullTextOperator = FullTextOperator.OR,
    ) -> None:
        self.query, self.columns = _text(query), tuple(map(_text, columns))
        given = [1.0] * len(self.columns) if boosts is None else boosts
        if len(given) != len(self.columns) or not self.columns:
            message = f"{len(self.columns)} columns cannot have {len(given)} boosts"
            raise ArgumentError(message)
        self.boosts = tuple(_boost(type(self).__name__, each) for each in given)
        self.operator = FullTextOperator(operator)


class MultiMatchQuery(_OfColumns):
    """A text in several columns: a row gets the score of the best one, times that column's boost."""

    def query_type(self) -> FullTextQueryType:
        """See `FullTextQuery.query_type`."""
        return FullTextQueryType.MULTI_MATCH

    @property
    def parts(self) -> tuple[FullTextQuery, ...]:
        """See `FullTextQuery.parts`."""
        return tuple(
            MatchQuery(self.query, column, boost=boost, operator=self.operator)
            for column, boost in zip(self.columns, self.boosts, strict=True)
        )


class CombinedFieldsQuery(_OfColumns):
    """A text in several columns that count as one, with so many times as many tokens as their boosts say."""

    def __init__(
        self,
        query: str,
        columns: Sequence[str],
        *,
        boosts: Sequence[float] | None = None,
        operator: FullTextOperator = FullTextOperator.OR,
    ) -> None:
        super().__init__(query, columns, boosts=boosts, operator=operator)
        if not all(1 <= each <= _MOST_WEIGHT for each in self.boosts):
            message = f"Invalid boosts: {list(self.boosts)} are not all from 1 to {_MOST_WEIGHT}"
            raise ArgumentError(message)

    def query_type(self) -> FullTextQueryType:
        """See `FullTextQuery.query_type`."""
        return FullTextQueryType.COMBINED_FIELDS


class BooleanQuery(FullTextQuery):
    """Documents that fit all queries that must, none that must not; where nothing must, one that should.

    Scores are sums.
    """

    def __init__(self, queries: Iterable[tuple[Occur, FullTextQuery]]) -> None:
        self.queries = tuple((Occur(occur), _query(query)) for occur, query in queries)

    def query_type(self) -> FullTextQueryType:
        """See `FullTextQuery.query_type`."""
        return FullTextQueryType.BOOLEAN

    @property
    def parts(self) -> tuple[FullTextQuery, ...]:
        """See `FullTextQuery.parts`."""
        return tuple(query for _, query in self.queries)

    def of(self, occur: Occur) -> tuple[FullTextQuery, ...]:
        """Return the queries that must, should, or must not fit."""
        return tuple(query for each, query in self.queries if each is occur)


def leaves(query: FullTextQuery) -> Iterator[FullTextQuery]:
    """Yield the queries that look into columns themselves.  Raises ArgumentError if something is missing."""
    if isinstance(query, BooleanQuery):
        if not query.queries:
            message = "FTS query must contain at least one leaf query"
            raise ArgumentError(message)
        if len(query.of(Occur.MUST_NOT)) == len(query.queries):
            message = "boolean query must have at least one should/must query"
            raise ArgumentError(message)
    if not query.parts:
        yield query
    for part in query.parts:
        yield from leaves(part)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        message = f"queries and columns of a search in text are texts, got {type(value).__name__}"
        raise TypeError(message)
    return value


def _query(value: Any) -> FullTextQuery:
    if not isinstance(value, FullTextQuery):
        message = f"a part of a query is a FullTextQuery, got {type(value).__name__}"
        raise TypeError(message)
    return value


def _count(name: str, value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        message = f"{name} is a number from 0 on, got {value!r}"
        raise ArgumentError(message)
    return value


def _boost(name: str, value: Any) -> float:
    if not math.isfinite(value) or value < 0:
        message = f"{name} boost must be finite and non-negative, got {value}"
        raise ArgumentError(message)
    return float(value)


def _granularity(value: Any) -> DocumentGranularity | None:
    return None if value is None else DocumentGranularity(value)
