"""Spark's pushed filters, evaluated on decoded batches exactly as Spark would.

Spark does not check again what a source accepts, so a filter is accepted only where Arrow's answer
is Spark's answer: NULL is never true, NaN equals NaN and is larger than any number, text compares
by its UTF-8 bytes, and a literal must be representable in the column's type.  Everything else goes
back to Spark.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import datasource as ds
from pyspark.sql import types as st
from pyspark.sql.pandas.types import to_arrow_type

_COMPARABLE = (
    st.BooleanType,
    st.ByteType,
    st.ShortType,
    st.IntegerType,
    st.LongType,
    st.FloatType,
    st.DoubleType,
    st.DecimalType,
    st.BinaryType,
    st.DateType,
    st.TimestampType,
    st.TimestampNTZType,
)
_FLOATING = (st.FloatType, st.DoubleType)

_COMPARE: Mapping[type[ds.Filter], Callable[[Any, Any], Any]] = {
    ds.EqualTo: pc.equal,
    ds.EqualNullSafe: pc.equal,
    ds.GreaterThan: pc.greater,
    ds.GreaterThanOrEqual: pc.greater_equal,
    ds.LessThan: pc.less,
    ds.LessThanOrEqual: pc.less_equal,
}
_TEXT: Mapping[type[ds.Filter], Callable[..., Any]] = {
    ds.StringStartsWith: pc.starts_with,
    ds.StringEndsWith: pc.ends_with,
    ds.StringContains: pc.match_substring,
}
_NAN_IS_LARGER = (ds.GreaterThan, ds.GreaterThanOrEqual)


def is_supported(condition: ds.Filter, schema: st.StructType) -> bool:
    """Tell whether `evaluate` gives Spark's answer for this filter on this schema."""
    if isinstance(condition, ds.Not):
        child = condition.child
        return not (isinstance(child, ds.In) and None in child.value) and is_supported(
            child, schema
        )
    column = _column_type(schema, getattr(condition, "attribute", ()))
    if column is None:
        return False
    if isinstance(condition, ds.IsNull | ds.IsNotNull):
        return True
    if type(condition) in _TEXT:
        return _is_plain_text(column) and isinstance(_value(condition), str)
    if isinstance(condition, ds.In):
        return all(_is_literal(value, column) for value in condition.value)
    return type(condition) in _COMPARE and _is_literal(_value(condition), column)


def select_rows(batch: pa.RecordBatch, conditions: Sequence[ds.Filter]) -> pa.RecordBatch:
    """Return the rows for which every condition is true (neither false nor NULL)."""
    if not conditions:
        return batch
    mask = evaluate(conditions[0], batch)
    for condition in conditions[1:]:
        mask = pc.and_kleene(mask, evaluate(condition, batch))
    return batch.filter(mask)


def evaluate(condition: ds.Filter, batch: pa.RecordBatch) -> pa.BooleanArray:
    """Return true, false or NULL for each row of a batch in Spark's types."""
    if isinstance(condition, ds.Not):
        return pc.invert(evaluate(condition.child, batch))
    column = _resolve(batch, condition.attribute)  # type: ignore[attr-defined]
    if isinstance(condition, ds.IsNull):
        return pc.is_null(column)
    if isinstance(condition, ds.IsNotNull):
        return pc.is_valid(column)
    if isinstance(condition, ds.In):
        return _evaluate_in(column, condition.value)
    value = _value(condition)
    if type(condition) in _TEXT:
        return _TEXT[type(condition)](column, value)
    return _evaluate_comparison(condition, column, value)


def _evaluate_comparison(condition: ds.Filter, column: pa.Array, value: object) -> pa.Array:
    if value is None and isinstance(condition, ds.EqualNullSafe):
        return pc.is_null(column)
    answer = _COMPARE[type(condition)](column, pa.scalar(value, column.type))
    if isinstance(condition, _NAN_IS_LARGER) and pa.types.is_floating(column.type):
        answer = pc.or_(answer, pc.is_nan(column))
    if isinstance(condition, ds.EqualNullSafe):
        answer = pc.fill_null(answer, fill_value=False)
    return answer


def _evaluate_in(column: pa.Array, values: Sequence[object]) -> pa.Array:
    known = pa.array([value for value in values if value is not None], column.type)
    found = pc.is_in(column, value_set=known)
    # A NULL in the column makes the answer NULL, where is_in says false.
    return pc.if_else(pc.is_valid(column), found, pa.scalar(None, pa.bool_()))


def _value(condition: ds.Filter) -> Any:
    return condition.value  # type: ignore[attr-defined]


def _resolve(batch: pa.RecordBatch, path: tuple[str, ...]) -> pa.Array:
    column = batch.column(path[0])
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column


def _column_type(schema: st.StructType, path: Sequence[str]) -> st.DataType | None:
    here: st.DataType = schema
    for name in path:
        if not isinstance(here, st.StructType) or here.names.count(name) != 1:
            return None
        here = here[name].dataType
    return here


def _is_plain_text(column: st.DataType) -> bool:
    # A collation changes what equality means; its name is part of the simple string.
    return isinstance(column, st.StringType) and column.simpleString() == "string"


def _is_literal(value: object, column: st.DataType) -> bool:
    """Tell whether the value is one of the column's type, so that Arrow compares like with like."""
    if not _is_plain_text(column) and not isinstance(column, _COMPARABLE):
        return False
    if value is None:
        return True
    if isinstance(value, float) and math.isnan(value):
        return False
    try:
        scalar = pa.scalar(value, to_arrow_type(column, timezone="UTC"))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return isinstance(column, _FLOATING) or bool(scalar.as_py() == value)
