"""A scan that searches texts: the rows that fit best, with their scores, best first.

::

    query, columns      "quick fox", ["text"], or a query of `pennon.query`
    prefilter           the condition rules rows out before the search, else of the rows that the search found
    search              addresses and scores, cut by offset and limit
    condition           ... those that pass
    rows                their columns, taken in that order; _doc_index, _score beside them
    order               of the rows that are left, if another one was asked for

``_score`` comes behind the columns, before row ids and addresses, unless it is named among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.errors import ArgumentError
from pennon.index.row_set import RowSet, Selection
from pennon.index.text.hits import Hits
from pennon.index.text.queries import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    FullTextQuery,
    MatchQuery,
    MultiMatchQuery,
    PhraseQuery,
)
from pennon.scan.plan.query import BoundQuery, ScanOptions, TextSearch, bind_query
from pennon.scan.projection import MetaColumn, plan_scan_projection
from pennon.scan.read.chosen_rows import rows_of_tasks
from pennon.scan.read.tasks import plan_tasks
from pennon.scan.run.filter import read_query
from pennon.scan.run.sort import sort_rows, take_rows, with_sort_keys
from pennon.scan.search.scope import Scope
from pennon.scan.search.text_columns import text_paths
from pennon.scan.search.text_search import Search
from pennon.scan.snapshot import Snapshot

SCORE: Final = "_score"
ITEM: Final = "_doc_index"
_ADDED: Final = (ITEM, SCORE)


# --- what is asked for ----------------------------------------------------------------------------


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


def _without_added(options: ScanOptions) -> tuple[ScanOptions, tuple[str, ...] | None]:
    """Return the options without the columns that the search adds; the names of all if these are among them."""
    columns = options.columns
    if columns is None:
        return options, None
    left: Any
    if isinstance(columns, Mapping):
        names = tuple(options.order or columns)
        left = {name: source for name, source in columns.items() if source not in _ADDED}
    else:
        names = columns
        left = tuple(name for name in columns if name not in _ADDED)
    is_shown = bool({*names} & {*_ADDED})
    return replace(options, columns=left), names if is_shown else None


# --- running --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class TextScan:
    """A scan that searches, bound to a version."""

    query: BoundQuery
    """The columns, the condition and the order; limit and offset are the search's."""
    options: ScanOptions
    asked: TextSearch
    search: Search
    scope: Scope
    shown: tuple[str, ...] | None
    """All columns in order, if those that the search adds are among them."""

    @classmethod
    def of(cls, snapshot: Snapshot, options: ScanOptions) -> TextScan:
        """Bind a scan.  Raises ArgumentError for a query that cannot be answered."""
        asked = options.search
        if not isinstance(asked, TextSearch):
            message = "this scan searches no texts"
            raise ArgumentError(message)
        if options.with_deleted:
            raise ArgumentError("Cannot include deleted rows in a full text search")
        scope = Scope(
            snapshot,
            options.predicate if asked.prefilter else None,
            options.fragments,
            asked.is_fast,
            options.uses_indices,
        )
        plain, shown = _without_added(replace(options, limit=None, offset=0))
        bound = bind_query(snapshot, plain)
        query = query_of(snapshot, asked)
        return cls(bound, options, asked, Search.of(query, scope), scope, shown)

    def asking(self, query: str) -> TextScan:
        """Return the scan for another query; the columns that are open stay so."""
        asked = replace(self.asked, query=query)
        search = Search.of(query_of(self.query.snapshot, asked), self.scope, self.search.columns)
        return replace(self, asked=asked, search=search)

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of what comes out."""
        fields = {field.name: field for field in self.query.schema}
        metas = [name for name in _META_NAMES if name in fields]
        names = [name for name in fields if name not in metas]
        fields[ITEM] = pa.field(ITEM, pa.list_(pa.uint32()))
        fields[SCORE] = pa.field(SCORE, pa.float32())
        added = [ITEM] if self.search.by_item else []
        added += [SCORE] if self.asked.is_scored else []
        if self.shown is not None:
            names = [name for name in self.shown if name in fields]
            added = [name for name in added if name not in names]
            metas = [name for name in metas if name not in names]
        return pa.schema(
            [fields[name] for name in (*names, *added, *metas)], self.query.schema.metadata
        )

    def hits(self) -> Hits:
        """Return the hits, best first, after limit, offset and condition."""
        limit, offset = self.options.limit, self.options.offset
        found = self.search.best(None if limit is None else offset + limit)
        found = found.at(slice(offset, None)) if offset else found
        if self.query.condition is None or self.asked.prefilter or not len(found):
            return found
        return found.at(self._passing(found).contains(found.rows))

    def count(self) -> int:
        """Return how many rows come out."""
        return len(self.hits())

    def _passing(self, found: Hits) -> RowSet:
        """Return the rows among those found that pass the condition."""
        snapshot = self.query.snapshot
        rows = Selection.superset(RowSet.of(found.rows))
        tasks = rows_of_tasks(snapshot, plan_tasks(snapshot, self.options.fragments), rows)
        lean = plan_scan_projection(self.query.source, [], [MetaColumn.ROW_ADDRESS])
        scan = replace(self.query.scan, projection=lean, tasks=tuple(tasks))
        query = replace(self.query, scan=scan, schema=lean.arrow, computed=None, orderings=())
        addresses = read_query(query).column(MetaColumn.ROW_ADDRESS.value).to_numpy()
        return RowSet.of(np.asarray(addresses, np.uint64))

    def read(self) -> pa.Table:
        """Return the rows."""
        hits = self.hits()
        orderings = self.query.orderings
        query = with_sort_keys(self.query) if orderings else self.query
        table = take_rows(
            query if query.condition is None else replace(query, condition=None), hits.rows
        )
        columns = dict(zip(table.column_names, table.columns, strict=True))
        columns[SCORE] = pa.chunked_array([pa.array(hits.scores, pa.float32())])
        if hits.items is not None or self.search.by_item:
            items = np.zeros(len(hits), np.uint32) if hits.items is None else hits.items
            ends = pa.array(np.arange(len(items) + 1, dtype=np.int32))
            columns[ITEM] = pa.chunked_array([pa.ListArray.from_arrays(ends, pa.array(items))])
        if orderings:
            ordered = sort_rows(pa.table(columns), orderings)
            columns = dict(zip(ordered.column_names, ordered.columns, strict=True))
        schema = self.schema
        return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)

    # --- words ------------------------------------------------------------------------------------

    def lines(self, uri: str) -> list[str]:
        """Return the plan, a line for each step, from the top down."""
        options, query = self.options, self.query
        condition = query.condition
        found = [f"Read: uri={uri}, columns=[{', '.join(self.schema.names)}]"]
        if query.orderings:
            found.append("Sort: " + ", ".join(map(str, query.orderings)))
        if condition is not None and not self.asked.prefilter:
            found.append(f"Filter: {condition.predicate}")
        if options.limit is not None or options.offset:
            found.append(f"Limit: limit={options.limit}, offset={options.offset}")
        found.append("Sort: _score DESC NULLS LAST")
        depth = len(found)
        lines = ["  " * at + line for at, line in enumerate(found)]
        lines += ["  " * depth + line for line in self._of_query(self.search.query)]
        return lines + ["  " * (depth + 1) + line for line in self.search.scope.lines()]

    def _of_query(self, query: FullTextQuery) -> list[str]:
        if isinstance(query, BooleanQuery):
            heads = [
                f"{occur.value.lower()}=[{', '.join(_short(each) for each in query.of(occur))}]"
                for occur in dict.fromkeys(each for each, _ in query.queries)
            ]
            own = f"CompoundFtsScorer: query=Boolean({', '.join(heads)})"
        elif isinstance(query, BoostQuery):
            own = f"BoostQuery: negative_boost={query.negative_boost}"
        elif isinstance(query, MultiMatchQuery):
            own = f"MultiMatchQuery: query={query.query}"
        elif isinstance(query, CombinedFieldsQuery):
            own = f"CombinedFieldsQuery: columns=[{', '.join(query.columns)}], query={query.query}"
        else:
            return self._of_leaf(query)
        return [own, *("  " + line for part in query.parts for line in self._of_query(part))]

    def _of_leaf(self, query: FullTextQuery) -> list[str]:
        if not isinstance(query, (MatchQuery, PhraseQuery)):
            return [_short(query)]
        column = self.search.columns[query.column, query.document_granularity]
        found = []
        if column.has_index:
            tokens = ",".join(token for token, _ in column.asked(query.query))
            words = f"[{tokens}]" if isinstance(query, MatchQuery) else query.query
            found.append(f"{type(query).__name__}: column={query.column}, query={words}")
        if column.uncovered:
            found.append(
                f"FlatMatchQuery: column={query.column}, query={query.query}, "
                f"num_fragments={len(column.uncovered)}"
            )
        return found


_META_NAMES: Final = tuple(meta.value for meta in (MetaColumn.ROW_ID, MetaColumn.ROW_ADDRESS))


def _short(query: FullTextQuery) -> str:
    if isinstance(query, (MatchQuery, PhraseQuery)):
        name = type(query).__name__.removesuffix("Query")
        return f"{name}(column={query.column}, query={query.query})"
    return repr(query)
