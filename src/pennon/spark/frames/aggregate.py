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
from pennon.scan.read.tasks import live_row_counts
from pennon.spark.frames.partial_aggregates import AggregateTasks, Part, Partials, Way
from pennon.spark.frames.scan import frame_of, local_frame, numbers_of, parallelism_of, passing
from pennon.spark.names import quoted
from pennon.spark.source.data_source import shown_schema
from pennon.spark.source.options import ReadOptions
from pennon.spark.source.partitions import plan_partitions
from pennon.spark.source.scan_task import arrow_schema_of, plan_table_scan
from pennon.spark.types import arrow_schema, spark_schema

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
_WHOLE: Final = (st.ByteType, st.ShortType, st.IntegerType, st.LongType)
_FLOATING: Final = (st.FloatType, st.DoubleType)
_ORDERED: Final = (
    *_WHOLE,
    *_FLOATING,
    st.BooleanType,
    st.DecimalType,
    st.BinaryType,
    st.DateType,
    st.TimestampType,
    st.TimestampNTZType,
)
_MOST_DIGITS: Final = 28
"""Sums of decimals of more digits may have more than 38, and then Spark says what becomes of them."""
_SUM_DIGITS: Final = 10
"""So many digits more than its values has the sum of decimals in Spark."""


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
    parts = [_parts(number, each, schema) for number, each in enumerate(measures)]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or not all(_is_key(schema, key) for key in keys):
        rows = frame_of(spark, snapshot, options, where)
        return rows.groupBy(*map(_column, keys)).agg(*(each.in_spark for each in measures))
    partials = _partial_frame(spark, snapshot, options, where, schema, keys, known)
    by_name = [sf.col(quoted(key)) for key in keys]
    pairs = zip(measures, known, strict=True)
    return partials.groupBy(*by_name).agg(*(_put_together(m, p, schema) for m, p in pairs))


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


def _partial_frame(
    spark: SparkSession,
    snapshot: Snapshot,
    options: ReadOptions,
    where: str | Predicate | None,
    schema: st.StructType,
    keys: Sequence[str],
    parts: Sequence[Sequence[Part]],
) -> DataFrame:
    """Return keys and partial aggregates, of each task its own."""
    arrow = arrow_schema(schema)
    scan = plan_table_scan(snapshot, arrow, options.batch_size)
    if where is not None:
        scan = passing(scan, where)
    flat = tuple(part for several in parts for part in several)
    fields = [arrow.field(key).with_nullable(True) for key in keys]  # noqa: FBT003 - positional only
    partials = Partials(tuple(keys), flat, pa.schema([*fields, *(part.field for part in flat)]))
    kinds = [st.StructField(key, schema[key].dataType) for key in keys]
    kinds += [st.StructField(part.field.name, _spark_type(part.field.type)) for part in flat]
    most, parallelism = options.max_partition_bytes, parallelism_of(spark)
    partitions = tuple(plan_partitions(snapshot, most, parallelism, scan.read_columns))
    if not partitions:
        return spark.createDataFrame([], st.StructType(kinds))
    tasks = AggregateTasks(scan, partitions, partials)
    # Without keys a row comes of each task, and Spark may know it: a plain range is planned sooner.
    count = len(partitions)
    numbers = numbers_of(spark, partitions) if keys else spark.range(0, count, 1, count)
    return numbers.mapInArrow(tasks, st.StructType(kinds))


def _parts(number: int, measure: Measure, schema: st.StructType) -> tuple[Part, ...] | None:
    """Return the partial aggregates that a measure is made of; None where Spark has to aggregate."""
    if measure.column == ALL_ROWS:
        return (_part(number, 0, Way.ROWS, measure, pa.int64()),)
    if measure.column not in schema.names:
        return None
    kind = schema[measure.column].dataType
    if measure.function == "count":
        return (_part(number, 0, Way.COUNT, measure, pa.int64()),)
    if measure.function in {"min", "max"}:
        if not _is_ordered(kind):
            return None
        way = Way.MIN if measure.function == "min" else Way.MAX
        arrow = arrow_schema(st.StructType([schema[measure.column]])).field(0).type
        return (_part(number, 0, way, measure, arrow),)
    if measure.function == "avg":
        if not isinstance(kind, (*_WHOLE, *_FLOATING)):
            return None
        total = _part(number, 0, Way.SUM, measure, pa.float64())
        return (total, _part(number, 1, Way.COUNT, measure, pa.int64()))
    return _sum_parts(number, measure, kind)


def _sum_parts(number: int, measure: Measure, kind: st.DataType) -> tuple[Part, ...] | None:
    if isinstance(kind, st.LongType):
        high = _part(number, 0, Way.HIGH_SUM, measure, pa.int64())
        return (high, _part(number, 1, Way.LOW_SUM, measure, pa.int64()))
    if isinstance(kind, _WHOLE):
        return (_part(number, 0, Way.SUM, measure, pa.int64()),)
    if isinstance(kind, _FLOATING):
        return (_part(number, 0, Way.SUM, measure, pa.float64()),)
    if isinstance(kind, st.DecimalType) and kind.precision <= _MOST_DIGITS:
        arrow = pa.decimal128(kind.precision + _SUM_DIGITS, kind.scale)
        return (_part(number, 0, Way.SUM, measure, arrow),)
    return None


def _part(number: int, place: int, way: Way, measure: Measure, kind: pa.DataType) -> Part:
    return Part(way, measure.column, kind, pa.field(f"__pennon_{number}_{place}", kind))


def _is_key(schema: st.StructType, name: str) -> bool:
    return name in schema.names and _is_ordered(schema[name].dataType)


def _is_ordered(kind: st.DataType) -> bool:
    """Return whether equality and order are the same in Arrow, NaN and negative zero aside."""
    return isinstance(kind, _ORDERED) or (
        isinstance(kind, st.StringType) and kind.simpleString() == "string"
    )


def _spark_type(kind: pa.DataType) -> st.DataType:
    (field,) = shown_schema(pa.schema([pa.field("", kind)]), ReadOptions(uri="")).fields
    return field.dataType


# --- in Spark -------------------------------------------------------------------------------------


def _put_together(measure: Measure, parts: Sequence[Part], schema: st.StructType) -> Column:
    """Return a measure of partial aggregates, as Spark would give it of the rows."""
    columns = [sf.col(part.field.name) for part in parts]
    if measure.function == "count":
        found = sf.coalesce(sf.sum(columns[0]), sf.lit(0).cast("long"))
    elif measure.function in {"min", "max"}:
        found = getattr(sf, measure.function)(columns[0])
    elif measure.function == "avg":
        found = sf.sum(columns[0]) / sf.nullif(sf.sum(columns[1]), sf.lit(0))
    elif parts[0].way is Way.HIGH_SUM:
        high, low = (sf.sum(column.cast("decimal(20,0)")) for column in columns)
        found = (high * sf.lit(1 << 32) + low).cast("long")
    else:
        found = sf.sum(columns[0])
        kind = schema[measure.column].dataType
        if isinstance(kind, st.DecimalType):
            found = found.cast(st.DecimalType(kind.precision + _SUM_DIGITS, kind.scale))
    return found.alias(measure.name)
