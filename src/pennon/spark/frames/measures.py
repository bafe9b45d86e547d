"""Aggregates as tasks make them and Spark puts them together: what is partial of each function, and what merges it.

What merges is SQL over the columns of the partial aggregates, which gives the value and the type that Spark's function gives of
the rows themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import types as st

from pennon.spark.frames.partial_aggregates import Part, Way
from pennon.spark.names import quoted
from pennon.spark.pyspark_classes import to_arrow
from pennon.spark.types import INTEGERS, MAX_SPARK_PRECISION, is_plain_text

_FLOATING: Final = (st.FloatType, st.DoubleType)
_ORDERED: Final = (
    *INTEGERS,
    *_FLOATING,
    st.BooleanType,
    st.DecimalType,
    st.BinaryType,
    st.DateType,
    st.TimestampType,
    st.TimestampNTZType,
)
_MOST_DIGITS: Final = 28
"""The sum of decimals with more digits than this may need more than 38 digits; then Spark makes the sum."""
_SUM_DIGITS: Final = 10
"""Spark gives the sum of decimals this many digits more than its values."""
_MOST_DIGITS_OF_MEAN: Final = 12
"""Spark's quotient of decimals with at most this many digits has twelve digits more than the mean shows: a second rounding
changes nothing."""


@dataclass(frozen=True, slots=True)
class MergedAggregate:
    """An aggregate of a column: the parts that tasks make of it, and the SQL that merges them."""

    parts: tuple[Part, ...]
    sql: str


def merged_aggregate(
    number: int, function: str, column: str, kind: st.DataType | None, *, is_ansi: bool = False
) -> MergedAggregate | None:
    """Return how tasks make an aggregate of a column of Spark's type; None where Spark has to make it.

    ``function`` is count, sum, min, max or avg.  ``kind`` None: of rows, whatever is in them.  ``number`` tells the aggregates of
    a frame apart.  ``is_ansi``: a sum that its type does not hold is an error.
    """
    if kind is None:
        return _count((_part(number, 0, Way.ROWS, column, pa.int64()),))
    if function == "count":
        return _count((_part(number, 0, Way.COUNT, column, pa.int64()),))
    if function in {"min", "max"}:
        if not is_ordered(kind):
            return None
        way = Way.MIN if function == "min" else Way.MAX
        part = _part(number, 0, way, column, to_arrow(kind))
        return MergedAggregate((part,), f"{function}({quoted(part.field.name)})")
    if function == "avg":
        return _mean(number, column, kind)
    is_large = isinstance(kind, st.DecimalType) and kind.precision > _MOST_DIGITS
    return None if is_large and not is_ansi else _sum(number, column, kind)


def is_ordered(kind: st.DataType) -> bool:
    """Return whether equality and order are the same in Arrow, NaN and negative zero aside."""
    return isinstance(kind, _ORDERED) or is_plain_text(kind)


def _count(parts: tuple[Part, ...]) -> MergedAggregate:
    return MergedAggregate(parts, f"coalesce(sum({quoted(parts[0].field.name)}), 0L)")


def _sum(number: int, column: str, kind: st.DataType) -> MergedAggregate | None:
    if isinstance(kind, st.LongType):
        high = _part(number, 0, Way.HIGH_SUM, column, pa.int64())
        low = _part(number, 1, Way.LOW_SUM, column, pa.int64())
        sums = [f"sum(cast({quoted(each.field.name)} AS decimal(20,0)))" for each in (high, low)]
        return MergedAggregate((high, low), f"cast({sums[0]} * {1 << 32}L + {sums[1]} AS bigint)")
    values = _values_of_sum(kind)
    if values is None:
        return None
    part = _part(number, 0, Way.SUM, column, values)
    merged = f"sum({quoted(part.field.name)})"
    if isinstance(kind, st.DecimalType):
        merged = f"cast({merged} AS {_sum_type(kind).simpleString()})"
    return MergedAggregate((part,), merged)


def _mean(number: int, column: str, kind: st.DataType) -> MergedAggregate | None:
    count = _part(number, 1, Way.COUNT, column, pa.int64())
    rows = f"nullif(sum({quoted(count.field.name)}), 0L)"
    if isinstance(kind, (*INTEGERS, *_FLOATING)):
        total = _part(number, 0, Way.SUM, column, pa.float64())
        return MergedAggregate((total, count), f"(sum({quoted(total.field.name)}) / {rows})")
    if not isinstance(kind, st.DecimalType) or kind.precision > _MOST_DIGITS_OF_MEAN:
        return None
    total = _part(number, 0, Way.SUM, column, to_arrow(_sum_type(kind)))
    given = f"cast(sum({quoted(total.field.name)}) AS {_sum_type(kind).simpleString()})"
    mean = st.DecimalType(kind.precision + 4, kind.scale + 4)
    merged = f"cast({given} / cast({rows} AS decimal(20,0)) AS {mean.simpleString()})"
    return MergedAggregate((total, count), merged)


def _values_of_sum(kind: st.DataType) -> pa.DataType | None:
    if isinstance(kind, INTEGERS):
        return pa.int64()
    if isinstance(kind, _FLOATING):
        return pa.float64()
    if isinstance(kind, st.DecimalType):
        return to_arrow(_sum_type(kind))
    return None


def _sum_type(kind: st.DecimalType) -> st.DecimalType:
    """Return Spark's type of a sum of decimals."""
    return st.DecimalType(min(kind.precision + _SUM_DIGITS, MAX_SPARK_PRECISION), kind.scale)


def _part(number: int, place: int, way: Way, column: str, kind: pa.DataType) -> Part:
    return Part(way, column, kind, pa.field(f"__pennon_{number}_{place}", kind))
