"""Searches for many queries, on the executors: a DataFrame of queries joined with the rows near them.

::

    queries                                 each row, with all of its columns
    explode         part 0, 1, ...          runs of rows that are compared; the last one: what an index covers
    shuffle         by part                 a task has one part; queries of the index are spread over several
    SearchParts     what is nearest there   no more than k rows of each query
    groupBy         the query's columns     Spark brings together what all parts found
    ShowFound       the best k, shown       rows are taken by their addresses, whatever fragment they are in

A table of one part, as all are that an index covers, needs no shuffle: the queries stay where they are.  The
driver opens indices, and sees neither queries nor rows.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from pennon.errors import ArgumentError
from pennon.index.vector.metric import check_metric, default_metric
from pennon.scan.plan.query import ScanOptions, parse_columns, parse_predicate
from pennon.scan.plan.row_search import RowSearch
from pennon.scan.plan.vector_query import VectorColumn, column_of, vector_columns, vector_search
from pennon.scan.read.tasks import ScanTask, plan_tasks
from pennon.scan.search.fusion import Fusion
from pennon.scan.search.vector_indices import find_index
from pennon.spark.frames.scan import parallelism_of
from pennon.spark.names import quoted
from pennon.spark.placement import placed_by_id
from pennon.spark.run_tasks import named
from pennon.spark.source.partitions import Parallelism, Partition, pack_tasks
from pennon.spark.source.search_task import (
    FOUND,
    HITS,
    LISTS,
    PART,
    RANK,
    TIMES,
    FoundRows,
    SearchParts,
    ShowFound,
    TextColumns,
    VectorParts,
    wrong_length,
)
from pennon.spark.types import arrow_schema, spark_schema, spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from pennon.scan.snapshot import Snapshot

_DEFAULT_K: Final = 10
_OWN: Final = (PART, FOUND, LISTS, TIMES)


@dataclass(frozen=True, slots=True)
class RowOptions:
    """The options of `LanceTable.nearest` and `LanceTable.hybrid` about the rows that may be found, and what is shown of them."""

    columns: Sequence[str] | Mapping[str, str] | None
    filter: str | None
    prefilter: bool
    fast_search: bool
    with_row_id: bool
    with_row_address: bool
    use_scalar_index: bool

    @classmethod
    def among(cls, said: Mapping[str, Any]) -> RowOptions:
        """Return the options among all arguments of a call, by their names."""
        return cls(**{each.name: said[each.name] for each in fields(cls)})


def nearest_frame(
    queries: DataFrame,
    snapshot: Snapshot,
    k: int | None,
    column: str | None,
    vector: str | None,
    chosen: RowOptions,
    search: Mapping[str, Any],
    texts: TextColumns | None = None,
) -> DataFrame:
    """Return the rows of a DataFrame, each beside the rows of the table that a search finds for it.

    Raises ArgumentError for what the table or the queries do not have.
    """
    path = only_vectors(snapshot) if column is None else column
    size = column_of(snapshot, path).dimension
    wanted = _DEFAULT_K if k is None else k
    count = wanted if texts is None else texts.fusion.candidates
    asked = vector_search(snapshot, path, [0.0] * size, count, **search)
    asked = replace(asked, prefilter=chosen.prefilter, is_fast=chosen.fast_search)
    indices = find_index(snapshot, asked)
    element = asked.column.element
    metric = asked.metric or (default_metric(element) if indices is None else indices.metric)
    check_metric(metric, element)
    asked = replace(asked, metric=metric)
    named = _query_column(queries, asked.column, vector)
    _check_lengths(queries, named, asked.column)
    both: RowSearch = asked if texts is None else texts.beside(asked)
    text = chosen.filter
    options = ScanOptions(
        predicate=None if text is None else parse_predicate(snapshot, text, search=both),
        with_row_id=chosen.with_row_id,
        with_row_address=chosen.with_row_address,
        blobs_as_bytes=True,
        uses_indices=chosen.use_scalar_index,
        search=both,
    )
    shown = _with_columns(snapshot, options, asked.column.path, chosen.columns)
    rows = FoundRows(snapshot, shown, None if texts is None else texts.words)
    parallelism = parallelism_of(queries.sparkSession)
    covered = None if indices is None else indices.covered
    fragments = snapshot.manifest.fragments
    compared = [each for each in fragments if covered is None or each.id not in covered]
    tasks = plan_tasks(snapshot, [] if chosen.fast_search else compared)
    parts = VectorParts(
        snapshot,
        options,
        asked,
        asked.k or wanted,
        tuple(_runs(tasks, parallelism)),
        None if covered is None else tuple(each for each in fragments if each.id in covered),
    )
    most = wanted if texts is None else asked.k or wanted
    return _joined(queries, named, parts, rows, most, parallelism)


def _runs(tasks: Sequence[ScanTask], parallelism: Parallelism) -> list[Partition]:
    """Return the runs of rows that are compared, about as many as the session has cores, however large they are."""
    if not tasks:
        return []
    return pack_tasks(tasks, sys.maxsize, Parallelism.of_cores(parallelism.least))


# --- what is asked for ----------------------------------------------------------------------------


def only_vectors(snapshot: Snapshot) -> str:
    """Return the only column of vectors.  Raises ArgumentError if there are more, or none."""
    found = vector_columns(snapshot)
    if len(found) != 1:
        message = f"name the column to search: the table has {len(found)} of vectors {found}"
        raise ArgumentError(message)
    return found[0]


def _query_column(queries: DataFrame, column: VectorColumn, named: str | None) -> str:
    """Return the column of the queries that has the vectors.  Raises ArgumentError if there is none."""
    kinds = {field.name: field.dataType for field in queries.schema.fields}
    if len(kinds) < len(queries.columns):
        message = f"the queries have two columns of one name: {', '.join(queries.columns)}"
        raise ArgumentError(message)
    taken = [name for name in kinds if name in _OWN or name == RANK]
    if taken:
        message = f"queries cannot have a column {taken[0]!r}; rename it"
        raise ArgumentError(message)
    fitting = [name for name, kind in kinds.items() if _is_vector(kind, column)]
    if named is None:
        same = [name for name in fitting if name == column.path]
        if len(same or fitting) != 1:
            message = (
                f"name the column of the queries with the vectors (vector=...): {len(fitting)} of "
                f"{', '.join(kinds)} are arrays of numbers"
            )
            raise ArgumentError(message)
        return (same or fitting)[0]
    if named not in kinds:
        message = f"the queries have no column {named!r}; they have {', '.join(kinds)}"
        raise ArgumentError(message)
    if named not in fitting:
        message = (
            f"column {named!r} of the queries is {kinds[named].simpleString()}, and no vector of {column.dimension} "
            f"numbers, as those of column {column.path!r} of the table (for ML vectors: vector_to_array)"
        )
        raise ArgumentError(message)
    return named


def _is_vector(kind: st.DataType, column: VectorColumn) -> bool:
    if not isinstance(kind, st.ArrayType):
        return False
    if isinstance(kind.elementType, st.ArrayType):
        return column.is_multi and isinstance(kind.elementType.elementType, st.NumericType)
    return isinstance(kind.elementType, st.NumericType)


def _check_lengths(queries: DataFrame, vector: str, column: VectorColumn) -> None:
    """Raise ArgumentError for a query of another dimension, where Spark has the queries at hand and no job starts.

    Other queries are computed when the user asks for rows: then a task raises it, in an error of PySpark's.
    """
    if column.is_multi or not queries.isLocal():
        return
    length = sf.size(sf.col(quoted(vector)))
    wrong = sf.col(quoted(vector)).isNotNull() & (length != column.dimension)
    found = queries.where(wrong).select(length).head()
    if found is not None:
        raise wrong_length(vector, found[0], column)


def _with_columns(
    snapshot: Snapshot,
    options: ScanOptions,
    searched: str,
    columns: Sequence[str] | Mapping[str, str] | None,
) -> ScanOptions:
    """Return the options with the columns to show: all but the one that is searched, if none are named."""
    if isinstance(columns, Mapping):
        stored, expressions = parse_columns(snapshot, columns, search=options.search)
        return replace(options, columns=stored, expressions=expressions, order=tuple(columns))
    if isinstance(columns, str):
        message = f"columns is a list of names, or a dict, not {columns!r}"
        raise ArgumentError(message)
    names = [field.name for field in snapshot.manifest.schema.fields]
    shown = [name for name in names if name != searched] if columns is None else columns
    return replace(options, columns=tuple(shown))


# --- the plan -------------------------------------------------------------------------------------


def _joined(
    queries: DataFrame,
    vector: str,
    parts: VectorParts,
    rows: FoundRows,
    k: int,
    parallelism: Parallelism,
) -> DataFrame:
    shown = _shown(queries, rows)
    if not parts.count:
        return queries.sparkSession.createDataFrame([], shown)
    plain, names = named(queries)
    if names is not None:
        known = dict(zip(names, plain.columns, strict=True))
        if rows.words is not None:
            rows = replace(rows, words=known[rows.words])
        return _joined(plain, known[vector], parts, rows, k, parallelism).toDF(*shown.names)
    given = tuple(queries.columns)
    show = ShowFound(rows, k, parts.count, given, arrow_schema(shown))
    hits = st.StructField(FOUND, spark_type(pa.field(FOUND, HITS), FOUND))
    fields = list(queries.schema.fields)
    if parts.count == 1:
        schema = st.StructType([*fields, hits])
        search = SearchParts(parts, vector, arrow_schema(schema))
        return queries.mapInArrow(search, schema).mapInArrow(show, shown)
    schema = st.StructType([*fields, st.StructField(PART, st.IntegerType()), hits])
    search = SearchParts(parts, vector, arrow_schema(schema))
    spread = queries.withColumn(PART, sf.explode(_parts_of(vector, parts, parallelism.least)))
    placed = placed_by_id(spread, _most_parts(parts, parallelism.least), PART)
    return _grouped(placed.mapInArrow(search, schema), fields).mapInArrow(show, shown)


def _most_parts(parts: VectorParts, slices: int) -> int:
    return len(parts.compared) + (0 if parts.covered is None else slices)


def _parts_of(vector: str, parts: VectorParts, slices: int) -> Column:
    """Return the parts that a query goes to: all that are compared, and one slice of the queries for the index."""
    compared = len(parts.compared)
    every = [sf.sequence(sf.lit(0), sf.lit(compared - 1))]
    if parts.covered is not None:
        # By the vector, so that it is the same whenever it is computed.
        place = sf.pmod(sf.xxhash64(sf.col(quoted(vector))), sf.lit(slices)).cast("int")
        every.append(sf.array(place + sf.lit(compared)))
    return sf.concat(*every)


def _grouped(found: DataFrame, fields: Sequence[st.StructField]) -> DataFrame:
    """Return the queries with what all parts found, once for all that are equal."""
    keys, others = [], []
    for field in fields:
        column = sf.col(quoted(field.name))
        if "variant" in field.dataType.simpleString():
            # Spark compares none; two that are the same text are the same.
            keys.append(sf.to_json(sf.struct(column)).alias(f"{PART} {field.name}"))
            others.append(sf.first(column).alias(field.name))
        else:
            keys.append(column)
    lists = sf.collect_set(sf.struct(sf.col(PART), sf.col(FOUND))).alias(LISTS)
    together = found.groupBy(*keys).agg(*others, sf.count(sf.lit(1)).alias(TIMES), lists)
    return together.select(*(sf.col(quoted(field.name)) for field in fields), TIMES, LISTS)


def _shown(queries: DataFrame, rows: FoundRows) -> st.StructType:
    """Return the columns that come out.  Raises ArgumentError where two have one name."""
    found = spark_schema(rows.schema)
    given = {name.lower() for name in queries.columns}
    both = [name for name in found.names if name.lower() in given]
    if both:
        new = {f"row_{name}": name for name in both}
        message = (
            f"the queries and the rows that are shown both have a column {', '.join(map(repr, both))}: choose others, "
            f"or give them names, columns={new}"
        )
        raise ArgumentError(message)
    rank = st.StructField(RANK, st.IntegerType(), nullable=False)
    return st.StructType([*queries.schema.fields, *found.fields, rank])


def hybrid_frame(
    queries: DataFrame,
    snapshot: Snapshot,
    k: int | None,
    column: str | None,
    vector: str | None,
    chosen: RowOptions,
    search: Mapping[str, Any],
    *,
    words: str,
    text_columns: Sequence[str] | None,
    fusion: Fusion,
) -> DataFrame:
    """Return the rows of a DataFrame, each beside the rows of the table that fit its vector and its words."""
    kinds = {field.name: field.dataType for field in queries.schema.fields}
    if not isinstance(kinds.get(words), st.StringType):
        message = f"the queries have no column {words!r} of strings; they have {queries.schema.simpleString()}"
        raise ArgumentError(message)
    if isinstance(text_columns, str):
        message = f"text_columns is a list of names, not {text_columns!r}"
        raise ArgumentError(message)
    columns = None if text_columns is None else tuple(text_columns)
    texts = TextColumns(words, columns, fusion)
    return nearest_frame(queries, snapshot, k, column, vector, chosen, search, texts)
