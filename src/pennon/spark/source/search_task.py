"""Search tasks of Spark: rows of queries in, rows of queries and of the table out.

::

    SearchParts   queries, number of a part    ->  ... and what is nearest in that part: distances, ids, addresses
    ShowFound     queries, lists of all parts  ->  a row for each row found, with its columns

No row has a number that depends on where it came: a query is known by what is in it, a row of the table by its
address.  So it is the same whichever attempt of a task it comes from, and in whatever order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.units import MIB
from pennon.errors import ArgumentError, FormatError, LanceError
from pennon.index.vector.metric import default_metric
from pennon.index.vector.search.top_k import NOTHING, Neighbours
from pennon.scan.answer import Answer, Found, answer_search
from pennon.scan.plan.query import ScanOptions
from pennon.scan.plan.row_search import RowSearch, TextSearch
from pennon.scan.plan.vector_query import VectorColumn, VectorSearch
from pennon.scan.search.compare_vectors import Comparison, search_rows, vectors_query
from pennon.scan.search.fusion import Fusion, HybridSource
from pennon.scan.search.nearest import NearestSource, search_index
from pennon.scan.search.scope import Scope
from pennon.scan.search.vector_indices import distinct, find_index
from pennon.scan.snapshot import Snapshot
from pennon.spark.arrow_convert import convert_batch
from pennon.spark.source.partitions import Partition
from pennon.table.fragment import Fragment

PART: Final = "__pennon_part"
FOUND: Final = "__pennon_found"
TIMES: Final = "__pennon_times"
LISTS: Final = "__pennon_lists"
RANK: Final = "_rank"
_OWNER: Final = "__pennon_query"
_BLOCK_BYTES: Final = 32 * MIB
"""Queries, and what is found for them, that a task holds at a time."""
_MOST_QUERIES: Final = 4096
_SHOWN_ROWS: Final = 4096
"""Rows of the table whose columns are read at a time."""
_HIT_BYTES: Final = 96
"""What a row found takes: 24 bytes, and as many again while it is sorted."""

Block: TypeAlias = list[pa.RecordBatch]
HITS: Final = pa.list_(
    pa.struct(
        [
            pa.field("distance", pa.float32()),
            pa.field("id", pa.int64()),
            pa.field("address", pa.int64()),
        ]
    )
)


# --- searching ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VectorParts:
    """A table as tasks search it: runs of rows that are compared, and behind them what an index covers.

    ``asked`` has the metric, and no queries yet.  ``covered``: the fragments that the index has to cover; None: no
    index is asked.
    """

    snapshot: Snapshot
    options: ScanOptions
    asked: VectorSearch
    k: int
    compared: tuple[Partition, ...]
    covered: tuple[Fragment, ...] | None

    @property
    def count(self) -> int:
        """Return how many parts there are; each query goes to each of them."""
        return len(self.compared) + (self.covered is not None)

    @property
    def queries_at_once(self) -> int:
        """Return how many queries a task answers in one pass over its part."""
        bytes_each = 8 * self.asked.column.dimension + _HIT_BYTES * self.k
        return max(min(_BLOCK_BYTES // bytes_each, _MOST_QUERIES), 1)

    def search(
        self, number: int, queries: npt.NDArray[np.float64], are_many: bool = True
    ) -> Neighbours:
        """Return the ``k`` nearest rows of a part for each query, or for all of them together."""
        asked = replace(self.asked, queries=queries, is_batch=are_many)
        before = self.options.predicate if asked.prefilter else None
        scope = Scope(self.snapshot, before, uses_indices=self.options.uses_indices)
        comparison = Comparison.of(asked, asked.metric or default_metric(asked.column.element))
        if number < len(self.compared):
            query = vectors_query(scope, comparison).over(self.compared[number])
            return search_rows(query, comparison, self.k)
        indices = find_index(self.snapshot, asked)
        wanted = {each.id for each in self.covered or ()}
        if indices is None or not wanted <= indices.covered:
            message = f"the index on {asked.column.path!r} was read on the driver, and cannot be read here"
            raise FormatError(message)
        scope = replace(
            scope, fragments=None if len(wanted) == len(scope.searched) else self.covered
        )
        exactly = bool(self.compared)
        return search_index(indices, scope, asked, comparison, self.k, exactly=exactly).best(self.k)


@dataclass(frozen=True, slots=True)
class SearchParts:
    """``mapInArrow`` function: finds what is nearest to the queries in the part that each is beside.

    A batch without `PART` is for the first part.  ``schema``: that of what comes out, with `FOUND` last.
    """

    parts: VectorParts
    vector: str
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Search for the queries of a partition."""
        for part, block in _blocks(batches, self.parts.queries_at_once, len(self.parts.compared)):
            yield from self._answer(part, block)

    def _answer(self, part: int, block: Block) -> Iterator[pa.RecordBatch]:
        near = self._near(part, [_column(each, self.vector) for each in block])
        start = 0
        for batch in block:
            end = start + batch.num_rows
            mine = near.at(slice_of(near.queries, start, end))
            found = _lists(replace(mine, queries=mine.queries - start), batch.num_rows)
            whole = pa.RecordBatch.from_arrays(
                [*batch.columns, found], [*batch.schema.names, FOUND]
            )
            yield convert_batch(whole, self.schema)
            start = end

    def _near(self, part: int, columns: Sequence[pa.Array[Any]]) -> Neighbours:
        """Return what is nearest to each query, those of the first column first."""
        column = self.parts.asked.column
        if not column.is_multi:
            return self.parts.search(part, np.concatenate([self._matrix(each) for each in columns]))
        lists = [each for array in columns for each in array]
        parts = [NOTHING]
        for number, each in enumerate(lists):
            if each.is_valid and len(each):
                values = each.values
                vectors = self._matrix(values if pa.types.is_list(values.type) else _alone(values))
                near = self.parts.search(part, vectors, are_many=False)
                parts.append(replace(near, queries=near.queries + number))
        return Neighbours.joined(parts)

    def _matrix(self, vectors: pa.Array[Any]) -> npt.NDArray[np.float64]:
        """Return queries as rows; one that is NULL, or has a NULL in it, is NaN, which is near to nothing."""
        size = self.parts.asked.column.dimension
        is_there = np.asarray(vectors.is_valid().to_numpy(zero_copy_only=False), np.bool_)
        lengths = _lengths(vectors)[is_there]
        wrong = lengths[lengths != size]
        if len(wrong):
            raise wrong_length(self.vector, int(wrong[0]), self.parts.asked.column)
        items = vectors.flatten().cast(pa.float64())
        found = np.full((len(vectors), size), np.nan, np.float64)
        found[is_there] = items.to_numpy(zero_copy_only=False).reshape(-1, size)
        return found


def slice_of(sorted_numbers: npt.NDArray[np.int64], start: int, end: int) -> slice:
    """Return where numbers from ``start`` up to ``end`` are."""
    first, last = np.searchsorted(sorted_numbers, [start, end]).tolist()
    return slice(first, last)


def _blocks(
    batches: Iterator[pa.RecordBatch], most: int, index_part: int
) -> Iterator[tuple[int, Block]]:
    """Yield queries for a part, as many as are answered in one pass; numbers behind ``index_part`` are that."""
    held: dict[int, Block] = {}
    for batch in batches:
        for part, rows in _by_part(batch, index_part):
            for start in range(0, rows.num_rows, most):
                piece = rows.slice(start, most)
                block = held.setdefault(part, [])
                if sum(each.num_rows for each in block) + piece.num_rows > most:
                    yield part, held.pop(part)
                held.setdefault(part, []).append(piece)
    yield from held.items()


def _by_part(batch: pa.RecordBatch, index_part: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of each part that a batch has rows for."""
    if PART not in batch.schema.names:
        yield 0, batch
        return
    parts = np.minimum(np.asarray(batch.column(PART).to_numpy()), index_part)
    for part in np.unique(parts).tolist():
        mine = np.flatnonzero(parts == part)
        is_whole = len(mine) == batch.num_rows
        yield part, batch if is_whole else batch.take(_int64s(mine))


def _column(batch: pa.RecordBatch, name: str) -> pa.Array[Any]:
    """Return a column of lists, with offsets of 32 bits."""
    found = batch.column(name)
    return (
        found.cast(pa.list_(found.type.value_type)) if pa.types.is_large_list(found.type) else found
    )


def _alone(vector: pa.Array[Any]) -> pa.Array[Any]:
    """Return one vector as a list of it."""
    ends = pa.py_buffer(np.array([0, len(vector)], np.int32))
    return pa.Array.from_buffers(pa.list_(vector.type), 1, [None, ends], children=[vector])


# --- what is found, on its way --------------------------------------------------------------------


def _int64s(values: npt.NDArray[Any]) -> pa.Array[Any]:
    # `pa.array` would import pandas: 0.3 seconds of a fresh worker.
    return pa.Array.from_buffers(
        pa.int64(), len(values), [None, pa.py_buffer(values.astype(np.int64))]
    )


def _float32s(values: npt.NDArray[np.float32]) -> pa.Array[Any]:
    return pa.Array.from_buffers(pa.float32(), len(values), [None, pa.py_buffer(values)])


def _lists(near: Neighbours, queries: int) -> pa.Array[Any]:
    """Return rows near queries, those of a query in a list."""
    ends = np.searchsorted(near.queries, np.arange(queries + 1)).astype(np.int32)
    columns = [_float32s(near.distances), _int64s(near.ids), _int64s(near.addresses)]
    hits = pa.StructArray.from_arrays(columns, fields=list(HITS.value_type))
    return pa.Array.from_buffers(HITS, queries, [None, pa.py_buffer(ends)], children=[hits])


def _lengths(lists: pa.Array[Any]) -> npt.NDArray[np.int64]:
    """Return how long lists are; what is said of one that is NULL means nothing."""
    ends = np.asarray(lists.offsets.to_numpy(), np.int64)
    return ends[1:] - ends[:-1]


def _near(lists: pa.Array[Any], owner: npt.NDArray[np.int64]) -> Neighbours:
    """Return the content of lists, one list per query."""
    hits = lists.flatten()
    distances, ids, addresses = (hits.field(at).to_numpy() for at in range(3))
    return Neighbours(
        np.repeat(owner, _lengths(lists)),
        ids.astype(np.uint64),
        addresses.astype(np.uint64),
        np.asarray(distances, np.float32),
    )


# --- showing --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextColumns:
    """The text part of a hybrid search: the column with the words, and the columns that are searched."""

    words: str
    columns: tuple[str, ...] | None
    fusion: Fusion

    def beside(self, vectors: VectorSearch) -> RowSearch:
        """Return the search for vectors and texts; a query's own words come later."""
        texts = TextSearch("", self.columns, vectors.prefilter, vectors.is_fast)
        return self.fusion.search(vectors, texts)


@dataclass(frozen=True, slots=True)
class FoundRows:
    """The columns of found rows that are shown; it pickles.

    ``words``: the queries' column of words, if the search of the options is a hybrid one.
    """

    snapshot: Snapshot
    options: ScanOptions
    words: str | None = None

    def answer(self) -> Answer[Any]:
        """Return the scan whose columns are shown.  Raises ArgumentError for one that cannot be answered."""
        return answer_search(self.snapshot, self.options)

    @property
    def schema(self) -> pa.Schema:
        """Return the columns that are shown beside those of the queries."""
        return self.answer().schema


def wrong_length(vector: str, numbers: int, column: VectorColumn) -> ArgumentError:
    """Return the error for a query, in a column of the queries, of another dimension than the table's vectors."""
    message = (
        f"a query in column {vector!r} has {numbers} numbers, the vectors of column {column.path!r} of the table "
        f"have {column.dimension}"
    )
    return ArgumentError(message)


@dataclass(frozen=True, slots=True)
class ShowFound:
    """``mapInArrow`` function: puts together what the parts found for each query, and shows the best rows.

    A batch has the queries, and `FOUND`, what the only part found; or `LISTS`, what ``parts`` parts found, each with
    its number, and `TIMES`, how many rows that makes.
    """

    rows: FoundRows
    k: int
    parts: int
    given: tuple[str, ...]
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Show the rows found for the queries of a partition."""
        answer = self.rows.answer()
        step = max(_SHOWN_ROWS // self.k, 1)
        for given in batches:
            # By place: Spark gives a map that rows are grouped by a name of its own.
            names = [*self.given, *given.schema.names[len(self.given) :]]
            batch = pa.RecordBatch.from_arrays(given.columns, names)
            near, times = self._together(batch)
            asked = np.repeat(np.arange(batch.num_rows), times)
            for start in range(0, len(asked), step):
                yield from self._shown(answer, batch, near, asked[start : start + step])

    def _together(self, batch: pa.RecordBatch) -> tuple[Neighbours, npt.NDArray[np.int64]]:
        """Return what was found for each query, and how many equal ones there were."""
        count = batch.num_rows
        if LISTS not in batch.schema.names:
            near = _near(batch.column(FOUND), np.arange(count))
            return near.best(self.k), np.ones(count, np.int64)
        lists = batch.column(LISTS)
        each = lists.flatten()
        owner = np.repeat(np.arange(count), _lengths(lists))
        parts = np.asarray(each.field(0).to_numpy(), np.int64)
        met = np.unique(owner * self.parts + np.minimum(parts, self.parts - 1)) // self.parts
        rows = np.asarray(batch.column(TIMES).to_numpy(), np.int64)
        if (np.bincount(met, minlength=count) != self.parts).any() or (rows % self.parts).any():
            message = (
                "a query was computed twice, and was another one the second time: nothing can be said of it; "
                "write queries that are made by chance to a table first"
            )
            raise LanceError(message)
        near = distinct(_near(each.field(1), owner))
        return near.best(self.k), rows // self.parts

    def _shown(
        self,
        answer: Answer[Any],
        batch: pa.RecordBatch,
        near: Neighbours,
        asked: npt.NDArray[np.int64],
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows found for some queries, which are named by their places in a batch."""
        words = None if self.rows.words is None else batch.column(self.rows.words)
        counts, rows = (
            _left(answer, near, asked) if words is None else _fused(answer, near, asked, words)
        )
        owner = np.repeat(asked, counts)
        if not len(owner):
            return
        table = answer.rows(rows)
        firsts = np.repeat(np.cumsum(counts) - counts, counts)
        queries = batch.select(list(self.given)).take(_int64s(owner))
        found = table.combine_chunks().to_batches()[0]
        ranks = _int64s(np.arange(len(owner)) - firsts + 1).cast(pa.int32())
        names = [*queries.schema.names, *found.schema.names, RANK]
        whole = pa.RecordBatch.from_arrays([*queries.columns, *found.columns, ranks], names)
        yield convert_batch(whole, self.schema)


def _left(
    answer: Answer[NearestSource], near: Neighbours, asked: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], Found]:
    """Return how many rows near each query pass the condition, and these rows."""
    parts = [near.at(slice_of(near.queries, at, at + 1)) for at in asked.tolist()]
    owner = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    found = answer.source.found(Neighbours.joined(parts))
    left = answer.filtered(Found(found.addresses, {**found.added, _OWNER: _int64s(owner)}))
    return np.bincount(left.added[_OWNER].to_numpy(), minlength=len(asked)), left


def _fused(
    answer: Answer[HybridSource],
    near: Neighbours,
    asked: npt.NDArray[np.int64],
    words: pa.Array[Any],
) -> tuple[npt.NDArray[np.int64], Found]:
    """Return how many rows fit each query and its words best, and these rows."""
    known: dict[int, Found] = {}
    for at in asked.tolist():
        if at not in known:
            mine = near.at(slice_of(near.queries, at, at + 1))
            known[at] = answer.source.fuse(mine, words[at].as_py())
    parts = [known[at] for at in asked.tolist()]
    return np.array([len(part) for part in parts], np.int64), Found.joined(parts)
