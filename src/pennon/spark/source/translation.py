"""SQL text of Spark as conditions and values of our own, where that means exactly the same."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import sqlglot
from pyspark.sql import types as st
from sqlglot import exp

from pennon.expr.tree import Call, Expression
from pennon.spark.pyspark_classes import ds
from pennon.spark.source.filters import COMPARE, column_of, condition_of
from pennon.spark.types import INTEGERS

_ORDERED = (
    *INTEGERS,
    st.BooleanType,
    st.DecimalType,
    st.DateType,
    st.TimestampType,
    st.TimestampNTZType,
)
"""Types of columns that may be compared with each other; NaN and collations are not in them."""
_UTC: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?\+00:00")
_EXACT_DOUBLE: Final = 1 << 53


class Translation:
    """Turns a parsed condition into ours; None for all that is not certain to mean the same."""

    def __init__(self, schema: st.StructType, alias: str | None) -> None:
        self._schema = schema
        self._alias = alias

    def condition(self, text: str) -> Expression | None:
        """Return what a text is for each row; None if that may not be Spark's answer."""
        try:
            return self.of(sqlglot.parse_one(text, dialect="spark"))
        except sqlglot.errors.SqlglotError:
            return None

    def scalar(self, text: str, name: str, kind: pa.DataType) -> pa.Scalar | None:
        """Return a literal as a column of that name holds it; None if it is none, or is not certain to fit."""
        try:
            tree = sqlglot.parse_one(text, dialect="spark")
            value = self._value(tree, (name,))
            found = pa.scalar(value, kind)
        except (
            sqlglot.errors.SqlglotError,
            pa.ArrowException,
            TypeError,
            ValueError,
            OverflowError,
        ):
            return None
        is_date = isinstance(self._schema[name].dataType, st.DateType)
        is_unknown = value is None and not isinstance(tree, exp.Null)
        return None if is_date or is_unknown else found

    def of(self, tree: exp.Expr) -> Expression | None:
        """Return a parsed condition as ours; None as `condition`."""
        if isinstance(tree, exp.Paren):
            return self.of(tree.this)
        if isinstance(tree, exp.Not):
            return self._call("NOT", [tree.this])
        if isinstance(tree, (exp.And, exp.Or)):
            return self._call(type(tree).__name__.upper(), [tree.this, tree.expression])
        if isinstance(tree, exp.Between) and not tree.args.get("symmetric"):
            low, high = tree.args["low"], tree.args["high"]
            return self._call(
                "AND",
                [exp.GTE(this=tree.this, expression=low), exp.LTE(this=tree.this, expression=high)],
            )
        two = self._two_columns(tree)
        if two is not None:
            return two
        leaf = self._leaf(tree)
        return None if leaf is None else condition_of(leaf, self._schema)

    def _two_columns(self, tree: exp.Expr) -> Expression | None:
        """Return a comparison of two columns of one type, whose values have the same order in Spark and in Arrow."""
        if type(tree) not in _COMPARISONS or isinstance(tree, exp.NullSafeEQ):
            return None
        paths = [self._path(tree.this), self._path(tree.expression)]
        known = [path for path in paths if path is not None]
        if len(known) < len(paths):
            return None
        left, right = (column_of(path, self._schema) for path in known)
        kinds = [self._schema[path[0]].dataType for path in known]
        if (
            left is None
            or right is None
            or kinds[0] != kinds[1]
            or not isinstance(kinds[0], _ORDERED)
        ):
            return None
        found = Call(COMPARE[_COMPARISONS[type(tree)]], (left, right), pa.bool_())
        return Call("NOT", (found,), pa.bool_()) if isinstance(tree, exp.NEQ) else found

    def _call(self, name: str, trees: Sequence[exp.Expression]) -> Expression | None:
        parts = [self.of(each) for each in trees]
        known = [each for each in parts if each is not None]
        return Call(name, tuple(known), known[0].type) if len(known) == len(parts) else None

    def _leaf(self, tree: exp.Expr) -> ds.Filter | None:
        path = self._path(tree.this)
        if path is None:
            return None
        if isinstance(tree, exp.Is):
            return ds.IsNull(path) if isinstance(tree.expression, exp.Null) else None
        if isinstance(tree, exp.In):
            values = [self._value(each, path) for each in tree.expressions]
            is_plain = values and None not in values and not tree.args.get("query")
            return ds.In(path, tuple(values)) if is_plain else None
        if isinstance(tree, exp.Like):
            leaf = self._like(tree, path)
            return ds.Not(leaf) if leaf is not None and tree.args.get("negate") else leaf
        kind = _COMPARISONS.get(type(tree))
        value = None if kind is None else self._value(tree.expression, path)
        if kind is None or value is None:
            return None
        leaf = kind(path, value)
        return ds.Not(leaf) if isinstance(tree, exp.NEQ) else leaf

    def _like(self, tree: exp.Like, path: tuple[str, ...]) -> ds.Filter | None:
        """Return a pattern with ``%`` at its ends alone as a test of the text between them."""
        kind = self._schema[path[0]].dataType
        pattern = tree.expression
        is_text = isinstance(pattern, exp.Literal) and pattern.is_string
        if not is_text or tree.args.get("escape") or not isinstance(kind, st.StringType):
            return None
        text = pattern.name.strip("%")
        if not text or any(sign in text for sign in "%_\\"):
            return None
        begins, ends = pattern.name.startswith("%"), pattern.name.endswith("%")
        if begins:
            return ds.StringContains(path, text) if ends else ds.StringEndsWith(path, text)
        return ds.StringStartsWith(path, text) if ends else ds.EqualTo(path, text)

    def _path(self, tree: object) -> tuple[str, ...] | None:
        """Return a column that is named as the table names it."""
        if not isinstance(tree, exp.Column) or tree.args.get("db"):
            return None
        if tree.table and tree.table != self._alias:
            return None
        return (tree.name,) if tree.name in self._schema.names else None

    def _value(self, tree: exp.Expr, path: Sequence[str]) -> Any:
        """Return a literal that Spark compares with the column as it is; None if it is not one."""
        kind = self._schema[path[0]].dataType
        if isinstance(tree, exp.Boolean):
            return bool(tree.this) if isinstance(kind, st.BooleanType) else None
        sign = 1
        if isinstance(tree, exp.Neg):
            tree, sign = tree.this, -1
        if isinstance(tree, exp.Cast) and sign == 1:
            return _moment_value(tree, kind)
        if not isinstance(tree, exp.Literal):
            return None
        if tree.is_string:
            return _text_value(tree.name, kind) if sign == 1 else None
        return _number_value(tree.name, sign, kind)


_COMPARISONS: Mapping[type[exp.Expr], Any] = {
    exp.EQ: ds.EqualTo,
    exp.NEQ: ds.EqualTo,
    exp.NullSafeEQ: ds.EqualNullSafe,
    exp.GT: ds.GreaterThan,
    exp.GTE: ds.GreaterThanOrEqual,
    exp.LT: ds.LessThan,
    exp.LTE: ds.LessThanOrEqual,
}


def _moment_value(tree: exp.Cast, kind: st.DataType) -> datetime | None:
    """Return a time whose text has its offset to UTC; others depend on the session."""
    inner = tree.this
    is_text = isinstance(inner, exp.Literal) and inner.is_string
    if type(kind) is not st.TimestampType or not is_text or not tree.is_type("timestamptz"):
        return None
    return datetime.fromisoformat(inner.name) if _UTC.fullmatch(inner.name) else None


def _text_value(text: str, kind: st.DataType) -> str | date | None:
    if isinstance(kind, st.StringType):
        return text
    if isinstance(kind, st.DateType) and re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        try:
            return date.fromisoformat(text)
        except ValueError:
            return None
    return None


def _number_value(text: str, sign: int, kind: st.DataType) -> int | float | Decimal | None:
    """Return a number of the column's own kind; what would be rounded is left to Spark."""
    if not re.fullmatch(r"\d+(\.\d+)?", text):
        return None
    is_whole = text.isdecimal()
    if isinstance(kind, INTEGERS):
        return sign * int(text) if is_whole else None
    if isinstance(kind, st.DecimalType):
        return sign * Decimal(text)
    if isinstance(kind, st.DoubleType):
        return sign * float(text) if abs(float(text)) < _EXACT_DOUBLE else None
    return None
