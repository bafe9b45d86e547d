"""Spark's pushed filters as conditions of ours, with exactly Spark's answers.

Spark does not check again what a source accepts, so a filter is accepted only where our answer is
Spark's answer: NULL is never true, NaN equals NaN and is larger than any number, text compares by
its UTF-8 bytes, and a literal must be representable in the column's type.  Everything else goes
back to Spark.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import types as st

from pennon.expr.tree import Call, Column, Expression, Literal, is_among
from pennon.spark.pyspark_classes import ds, to_arrow
from pennon.spark.types import is_plain_text

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

COMPARE: Mapping[type[ds.Filter], str] = {
    ds.EqualTo: "=",
    ds.EqualNullSafe: "IS NOT DISTINCT FROM",
    ds.GreaterThan: ">",
    ds.GreaterThanOrEqual: ">=",
    ds.LessThan: "<",
    ds.LessThanOrEqual: "<=",
}
_TEXT: Mapping[type[ds.Filter], str] = {
    ds.StringStartsWith: "starts_with",
    ds.StringEndsWith: "ends_with",
    ds.StringContains: "contains",
}


def condition_of(condition: ds.Filter, schema: st.StructType) -> Expression | None:
    """Return what a filter is for rows of Spark's types; None where the answer may not be Spark's."""
    if isinstance(condition, ds.Not):
        child = condition_of(condition.child, schema)
        return None if child is None else _call("NOT", child)
    kind = _column_type(schema, getattr(condition, "attribute", ()))
    if kind is None:
        return None
    column = Column(tuple(condition.attribute), _arrow_type(kind))  # type: ignore[attr-defined]
    if isinstance(condition, ds.IsNull):
        return _call("IS NULL", column)
    if isinstance(condition, ds.IsNotNull):
        return _call("NOT", _call("IS NULL", column))
    if isinstance(condition, ds.In):
        literals = [_literal(value, kind) for value in condition.value]
        known = [each for each in literals if each is not None]
        return _among(column, known) if len(known) == len(literals) else None
    return _compared(condition, column, kind)


def _compared(condition: ds.Filter, column: Column, kind: st.DataType) -> Expression | None:
    literal = _literal(_value(condition), kind)
    name = COMPARE.get(type(condition))
    if type(condition) in _TEXT and is_plain_text(kind) and isinstance(_value(condition), str):
        name = _TEXT[type(condition)]
    return None if literal is None or name is None else _call(name, column, literal)


def _among(column: Column, literals: Sequence[Literal]) -> Expression:
    """Return a test for some values, NULL possibly among them; floats equal each other by value."""
    return is_among(column, pa.array([each.value for each in literals], column.type))


def _call(name: str, *arguments: Expression) -> Call:
    return Call(name, arguments, pa.bool_())


def _value(condition: ds.Filter) -> Any:
    return condition.value  # type: ignore[attr-defined]


def column_of(path: Sequence[str], schema: st.StructType) -> Column | None:
    """Return a column, or a field inside one, as conditions name it; None if there is none, or more than one."""
    kind = _column_type(schema, path)
    return None if kind is None else Column(tuple(path), _arrow_type(kind))


def _column_type(schema: st.StructType, path: Sequence[str]) -> st.DataType | None:
    here: st.DataType = schema
    for name in path:
        if not isinstance(here, st.StructType) or here.names.count(name) != 1:
            return None
        here = here[name].dataType
    return here


def _literal(value: object, kind: st.DataType) -> Literal | None:
    """Return a value in the column's type, so that like is compared with like; None: not one."""
    if not is_plain_text(kind) and not isinstance(kind, _COMPARABLE):
        return None
    if isinstance(value, float) and math.isnan(value):
        return None
    try:
        scalar = pa.scalar(value, _arrow_type(kind))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    is_same = value is None or isinstance(kind, _FLOATING) or scalar.as_py() == value
    return Literal(scalar) if is_same else None


def _arrow_type(kind: st.DataType) -> pa.DataType:
    return to_arrow(kind)
