"""Aggregates of a table: ``pennon.spark.read(..., aggregate=..., group_by=...)`` and counts.

What comes out is what Spark's ``groupBy(*group_by).agg(aggregate)`` gives, names and types too.  Where values
and groups mean the same to Arrow and Spark the tasks that read aggregate (`pennon.spark.frames.partial_aggregates`),
and Spark puts the partial aggregates together.  Where they do not, Spark aggregates the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from pennon.errors import ArgumentError
from pennon.scan.read.tasks import live_row_counts, plan_tasks
from pennon.spark.frames import driver_reads
from pennon.spark.frames.arithmetic import Number
from pennon.spark.frames.measures import MergedAggregate, is_ordered, merged_aggregate
from pennon.spark.frames.partial_aggregates import AggregateTasks, Part, Partials
from pennon.spark.frames.scan import (
    frame_of,
    local_frame,
    numbers_of,
    numbers_up_to,
    partitions_for,
    plan_frame,
)
from pennon.spark.names import quoted
from pennon.spark.source.data_source import shown_schema
from pennon.spark.source.options import ReadOptions
from pennon.spark.source.scan_task import arrow_schema_of
from pennon.spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from pennon.scan.predicate import Predicate
    from pennon.scan.snapshot import Snapshot

ALL_ROWS: Final = "*"
_NAMES: Final = {
    "count": "count",
    "sum": "sum",
    "min": "min",
    "max": "max",
    "mean": "avg",
    "avg": "avg",
}


@dataclass(frozen=True, slots=True)
class Measure:
    """A function of a column."""

    function: str
    column: str

    @property
    def name(self) -> str:
        """Return what Spark calls it."""
        return f"{self.function}({'1' if self.column == ALL_ROWS else self.column})"

    @property
    def in_spark(self) -> Column:
        """Return the function as Spark's own."""
        column = sf.lit(1) if self.column == ALL_ROWS else _column(self.column)
        found: Column = getattr(sf, self.function)(column)
        return found.alias(self.name)


def aggregate_frame(
    spark: SparkSession,
    snapshot: Snapshot,
    options: ReadOptions,
    where: str | Predicate | None,
    aggregate: Mapping[str, str | Sequence[str]],
    group_by: Sequence[str],
) -> DataFrame:
    """Return aggregates of the rows of a version that pass a condition, one row a group.

    ``aggregate`` maps columns to the names of functions (count, sum, min, max, mean), ``*`` to count.
    Raises ArgumentError for other functions, and columns that the table does not have.
    """
    measures = measures_of(aggregate)
    keys = _keys(group_by)
    if where is None and not keys and all(_is_count_of_rows(snapshot, each) for each in measures):
        return _count_of_manifest(spark, snapshot, measures)
    needed = dict.fromkeys([*keys, *(m.column for m in measures if m.column != ALL_ROWS)])
    options = replace(options, columns=tuple(needed))
    schema = shown_schema(arrow_schema_of(snapshot), options)
    made = [_merged(number, each, schema) for number, each in enumerate(measures)]
    known = [each for each in made if each is not None]
    if len(known) < len(made) or not all(is_key(schema, key) for key in keys):
        rows = frame_of(spark, snapshot, options, where)
        return rows.groupBy(*map(_column, keys)).agg(*(each.in_spark for each in measures))
    parts = [part for each in known for part in each.parts]
    partials = partial_frame(spark, snapshot, options, where, keys, parts)
    by_name = [sf.col(quoted(key)) for key in keys]
    pairs = zip(measures, known, strict=True)
    merged = (sf.expr(f"{merged.sql} AS {quoted(each.name)}") for each, merged in pairs)
    return partials.groupBy(*by_name).agg(*merged)


def measures_of(aggregate: Mapping[str, str | Sequence[str]]) -> list[Measure]:
    """Return what is asked for.  Raises ArgumentError for functions that there are not."""
    if not aggregate:
        message = (
            "an aggregate names a function for at least one column: {'price': 'sum', '*': 'count'}"
        )
        raise ArgumentError(message)
    found = []
    for column, functions in aggregate.items():
        for given in [functions] if isinstance(functions, str) else functions:
            function = _NAMES.get(given.lower())
            if function is None or (column == ALL_ROWS and function != "count"):
                known = "count" if column == ALL_ROWS else ", ".join(_NAMES)
                message = f"no aggregate {given!r} of column {column!r}; there are {known}"
                raise ArgumentError(message)
            found.append(Measure(function, column))
    return found


def _column(name: str) -> Column:
    """Return a column, or with dots a field of a struct."""
    return sf.col(name if "." in name else quoted(name))


def _keys(group_by: Sequence[str]) -> list[str]:
    if isinstance(group_by, str):
        message = f"group_by is a list of columns, not {group_by!r}"
        raise ArgumentError(message)
    return list(dict.fromkeys(group_by))


def _is_count_of_rows(snapshot: Snapshot, measure: Measure) -> bool:
    """Return whether a measure counts rows: all values of a column that has no NULLs are as many."""
    if measure.function != "count":
        return False
    fields = snapshot.manifest.schema.fields
    never_null = {field.name for field in fields if not field.nullable}
    return measure.column == ALL_ROWS or measure.column in never_null


def _count_of_manifest(
    spark: SparkSession, snapshot: Snapshot, measures: Sequence[Measure]
) -> DataFrame:
    rows = pa.array([sum(live_row_counts(snapshot))], pa.int64())
    table = pa.table([rows] * len(measures), [each.name for each in measures])
    return local_frame(spark, table, spark_schema(table.schema))


# --- in the tasks ---------------------------------------------------------------------------------


def partial_frame(
    spark: SparkSession,
    snapshot: Snapshot,
    options: ReadOptions,
    where: str | Predicate | None,
    keys: Sequence[str],
    parts: Sequence[Part],
    computed: Sequence[tuple[str, Number]] = (),
) -> DataFrame:
    """Return keys and partial aggregates, of each task its own; ``options`` name the columns that these need.

    Little is read by one task, after which Spark has nothing to shuffle.  Where its aggregates are few they are made
    here, and handed to Spark with its plan.
    """
    schema, scan = plan_frame(snapshot, options, where)
    fields = [scan.schema.field(key).with_nullable(True) for key in keys]  # noqa: FBT003 - positional only
    made = pa.schema([*fields, *(part.field for part in parts)])
    partials = Partials(tuple(keys), tuple(parts), made, tuple(computed))
    kinds = [st.StructField(key, schema[key].dataType) for key in keys]
    kinds += [st.StructField(part.field.name, _spark_type(part.field.type)) for part in parts]
    planned = plan_tasks(snapshot)
    if not planned:
        return spark.createDataFrame([], st.StructType(kinds))
    tasks = AggregateTasks(scan, (tuple(planned),), partials)
    if driver_reads.groups_little(tasks, planned):
        few = driver_reads.groups(tasks, planned)
        if few is not None:
            return local_frame(spark, few, st.StructType(kinds)).coalesce(1)
    else:
        tasks = replace(tasks, partitions=partitions_for(spark, planned, scan, options))
    # Without keys a row comes of each task, and Spark may know it: a plain range is planned sooner.
    count = len(tasks.partitions)
    numbers = numbers_of(spark, tasks.partitions) if keys else numbers_up_to(spark, count, count)
    return numbers.mapInArrow(tasks, st.StructType(kinds))


def is_key(schema: st.StructType, name: str) -> bool:
    """Return whether rows may be grouped by a column where they are read."""
    return name in schema.names and is_ordered(schema[name].dataType)


def _merged(number: int, measure: Measure, schema: st.StructType) -> MergedAggregate | None:
    if measure.column != ALL_ROWS and measure.column not in schema.names:
        return None
    kind = None if measure.column == ALL_ROWS else schema[measure.column].dataType
    return merged_aggregate(number, measure.function, measure.column, kind)


def _spark_type(kind: pa.DataType) -> st.DataType:
    (field,) = shown_schema(pa.schema([pa.field("", kind)]), ReadOptions(uri="")).fields
    return field.dataType
