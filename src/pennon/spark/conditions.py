"""Conditions and values as Spark's users say them, SQL text or a Column, and what can be told of them.

Spark evaluates them.  Of text that compares columns with literals, and nothing more, our own scan gives the
same answer without Spark, page statistics first: `predicate_of`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
import sqlglot
from pyspark.sql import Column
from pyspark.sql import datasource as ds
from pyspark.sql import functions as sf
from pyspark.sql import types as st
from sqlglot import exp

from pennon.expr.tree import Call, Expression
from pennon.spark.filters import condition_of
from pennon.spark.scan_task import pushed_predicate
from pennon.spark.types import arrow_schema

if TYPE_CHECKING:
    from pennon.scan.filter import Predicate

Condition: TypeAlias = str | Column

_INTEGERS = (st.ByteType, st.ShortType, st.IntegerType, st.LongType)
_EXACT_DOUBLE: Final = 1 << 53
_STAR = re.compile(r"(?:^|[(,.])\s*\*(?!\()")
"""All columns; a Column shows a product as ``*(a, b)``."""
_NAME = r"[\w`]+"


def as_column(value: Condition) -> Column:
    """Return SQL text as a Column, and a Column as it is."""
    return sf.expr(value) if isinstance(value, str) else value


def check_kind(value: object, kind: type, message: str) -> None:
    """Raise TypeError with a message, which ends in what was given, for another kind of value."""
    if isinstance(value, bool) or not isinstance(value, kind):
        message = f"{message} '{type(value)}'"
        raise TypeError(message)


def check_flag(value: object, message: str) -> None:
    """Raise TypeError with a message for what is neither True nor False."""
    if not isinstance(value, bool):
        message = f"{message} '{type(value)}'"
        raise TypeError(message)


def check_text(value: object, what: str) -> None:
    """Raise TypeError for what is no text."""
    check_kind(value, str, f"{what} must be str, got")


def column_names(cols: Sequence[object], what: str) -> list[str]:
    """Return names that were given one by one, or as a list."""
    names: list[str] = []
    for each in cols:
        for name in each if isinstance(each, (list, tuple)) else [each]:
            check_text(name, f"{what} column")
            names.append(str(name))
    return names


def check_condition(value: object, what: str = "condition") -> None:
    """Raise TypeError for what is neither text nor a Column."""
    if not isinstance(value, (str, Column)):
        message = f"{what} must be a Spark SQL Column or a string, got {type(value).__name__}"
        raise TypeError(message)


def check_values(values: object, what: str) -> dict[str, Condition]:
    """Return a mapping of columns to what they become; raises TypeError for anything else."""
    if not isinstance(values, Mapping):
        message = f"{what} must be a dict, got {type(values).__name__}"
        raise TypeError(message)
    for name, value in values.items():
        if not isinstance(name, str):
            message = f"Keys of dict in {what} must contain only strings, got {name!r}"
            raise TypeError(message)
        if not isinstance(value, (str, Column)):
            message = f"Values of dict in {what} must contain only Spark SQL Columns or strings, got {value!r}"
            raise TypeError(message)
    return dict(values)


def columns_named(
    said: Iterable[Condition], columns: Sequence[str], alias: str | None
) -> list[str]:
    """Return the columns of a table that conditions may name; one too many costs time, no rows.

    A name behind that of something else (``s.id`` where the table is ``t``) is not the table's.  One
    that is missed makes the query fail when Spark analyses it, and it is asked again with all columns.
    """
    texts = [each if isinstance(each, str) else str(each) for each in said]
    if any(_STAR.search(text) for text in texts):
        return list(columns)
    return [name for name in columns if any(_may_name(text, name, alias) for text in texts)]


def _may_name(text: str, name: str, alias: str | None) -> bool:
    pattern = rf"(?:({_NAME})\s*\.\s*)?`?(?<!\w){re.escape(name.replace('`', '``'))}(?!\w)"
    for found in re.finditer(pattern, text, re.IGNORECASE):
        before = found.group(1)
        if before is None or alias is None or before.strip("`").lower() == alias.lower():
            return True
    return False


# --- conditions that need no Spark -----------------------------------------------------------------


def predicate_of(
    text: Condition, schema: st.StructType, stored: pa.Schema, alias: str | None = None
) -> Predicate | None:
    """Return a condition as one of our scans, if it has Spark's answer for every row; else None."""
    if not isinstance(text, str) or "\\" in text or "--" in text or "/*" in text:
        return None
    try:
        tree = sqlglot.parse_one(text, dialect="spark")
    except sqlglot.errors.SqlglotError:
        return None
    found = _Translation(schema, alias).of(tree)
    return None if found is None else pushed_predicate([found], arrow_schema(schema), stored)


def literals_of(
    values: Mapping[str, Condition], schema: st.StructType, stored: pa.Schema
) -> dict[str, pa.Scalar] | None:
    """Return literals as the columns of a table hold them, if all values are such; else None."""
    found: dict[str, pa.Scalar] = {}
    for name, text in values.items():
        if name not in schema.names or not isinstance(text, str) or "\\" in text:
            return None
        kind = stored.field(name).type
        try:
            tree = sqlglot.parse_one(text, dialect="spark")
            value = _Translation(schema, None).literal(tree, name)
            found[name] = pa.scalar(value, kind)
        except (
            sqlglot.errors.SqlglotError,
            pa.ArrowException,
            TypeError,
            ValueError,
            OverflowError,
        ):
            return None
        is_date = isinstance(schema[name].dataType, st.DateType)
        if is_date or (value is None and not isinstance(tree, exp.Null)):
            return None
    return found


class _Translation:
    """Turns a parsed condition into ours; None for all that is not certain to mean the same."""

    def __init__(self, schema: st.StructType, alias: str | None) -> None:
        self._schema = schema
        self._alias = alias

    def of(self, tree: exp.Expr) -> Expression | None:
        if isinstance(tree, exp.Paren):
            return self.of(tree.this)
        if isinstance(tree, exp.Not):
            return self._call("NOT", [tree.this])
        if isinstance(tree, (exp.And, exp.Or)):
            return self._call(type(tree).__name__.upper(), [tree.this, tree.expression])
        leaf = self._leaf(tree)
        return None if leaf is None else condition_of(leaf, self._schema)

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
        kind = _COMPARISONS.get(type(tree))
        value = None if kind is None else self._value(tree.expression, path)
        if kind is None or value is None:
            return None
        leaf = kind(path, value)
        return ds.Not(leaf) if isinstance(tree, exp.NEQ) else leaf

    def _path(self, tree: object) -> tuple[str, ...] | None:
        """Return a column that is named as the table names it."""
        if not isinstance(tree, exp.Column) or tree.args.get("db"):
            return None
        if tree.table and tree.table != self._alias:
            return None
        return (tree.name,) if tree.name in self._schema.names else None

    def literal(self, tree: exp.Expr, name: str) -> Any:
        """Return the value that a column of that name would get; None: NULL, or not a literal."""
        return self._value(tree, (name,))

    def _value(self, tree: exp.Expr, path: Sequence[str]) -> Any:
        """Return a literal that Spark compares with the column as it is; None if it is not one."""
        kind = self._schema[path[0]].dataType
        if isinstance(tree, exp.Boolean):
            return bool(tree.this) if isinstance(kind, st.BooleanType) else None
        sign = 1
        if isinstance(tree, exp.Neg):
            tree, sign = tree.this, -1
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
    if isinstance(kind, _INTEGERS):
        return sign * int(text) if is_whole else None
    if isinstance(kind, st.DecimalType):
        return sign * Decimal(text)
    if isinstance(kind, st.DoubleType):
        return sign * float(text) if abs(float(text)) < _EXACT_DOUBLE else None
    return None
