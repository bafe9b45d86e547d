"""Numbers that are computed of the columns of a row, exactly as Spark computes them.

An aggregate may be of such a number: ``sum(price * (1 - discount))``, ``avg(length(url))``.  A task that aggregates
computes it of whole columns.  What Arrow and Spark might compute differently is not here: then Spark does it.

=========  =================================================================================
whole      ``+ - *`` of integers: the wider of both types; more than it holds is an error,
           as in Spark with ``spark.sql.ansi.enabled``
double     ``+ - *`` with doubles and integers
decimal    ``+ - *`` with decimals and integers, in Spark's precision; a number that needs
           more digits behind the point than Spark keeps is not computed here
length     characters of a text
=========  =================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as st

from pennon.spark.pyspark_classes import to_arrow
from pennon.spark.types import INTEGERS, MAX_SPARK_PRECISION, is_plain_text

Column: TypeAlias = Any
"""A column or a scalar of Arrow."""
_BY_WIDTH: Final[Sequence[type[st.DataType]]] = INTEGERS
_DIGITS_OF: Final[Mapping[type[st.DataType], int]] = {
    st.ByteType: 3,
    st.ShortType: 5,
    st.IntegerType: 10,
    st.LongType: 20,
}
"""The digits of the decimal that Spark makes of an integer's type."""
_LEAST_SCALE: Final = 6
"""Spark keeps at least this many digits behind the point where a result needs more digits than a decimal has."""
_MOST_INT: Final = (1 << 31) - 1
_MOST_LONG: Final = (1 << 63) - 1
_CHECKED: Final[Mapping[str, Callable[[Column, Column], Column]]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
}
_UNCHECKED: Final[Mapping[str, Callable[[Column, Column], Column]]] = {
    "+": pc.add,
    "-": pc.subtract,
    "*": pc.multiply,
}


class Number(Protocol):
    """A number of each row: a column, a constant, or what is computed of them.  It pickles."""

    @property
    def kind(self) -> st.DataType:
        """Return Spark's type of it."""

    def of(self, rows: pa.Table) -> Column:
        """Return it for some rows.  Raises OverflowError where the type does not hold it."""


def stored(name: str, kind: st.DataType) -> Number | None:
    """Return the number that a column is; None if it is none."""
    is_number = isinstance(kind, (*INTEGERS, st.DoubleType, st.DecimalType))
    return _Stored(name, kind) if is_number else None


def text_length(name: str, kind: st.DataType) -> Number | None:
    """Return the number of characters of a text column; None if it is none."""
    return _TextLength(name, st.IntegerType()) if is_plain_text(kind) else None


@dataclass(frozen=True, slots=True)
class _Stored:
    """A column."""

    name: str
    kind: st.DataType

    def of(self, rows: pa.Table) -> Column:
        return rows.column(self.name)


@dataclass(frozen=True, slots=True)
class _TextLength:
    """The number of characters of a text column."""

    name: str
    kind: st.DataType

    def of(self, rows: pa.Table) -> Column:
        return pc.utf8_length(rows.column(self.name)).cast(pa.int32())


@dataclass(frozen=True, slots=True)
class _Constant:
    """A number that the query has as text."""

    value: Decimal
    kind: st.DataType

    def of(self, rows: pa.Table) -> Column:  # noqa: ARG002 - the same for all rows
        if isinstance(self.kind, st.DecimalType):
            return pa.scalar(self.value, to_arrow(self.kind))
        return pa.scalar(int(self.value), pa.int64())


@dataclass(frozen=True, slots=True)
class _Computed:
    """A sum, a difference or a product of two numbers, in the type that Spark gives it."""

    operation: str
    left: Number
    right: Number
    kind: st.DataType

    def of(self, rows: pa.Table) -> Column:
        left, right = self.left.of(rows), self.right.of(rows)
        if isinstance(self.kind, st.DoubleType):
            doubles = [each.cast(pa.float64(), safe=False) for each in (left, right)]
            return _UNCHECKED[self.operation](*doubles)
        try:
            if isinstance(self.kind, st.DecimalType):
                return self._decimal(left, right, self.kind)
            wide = to_arrow(self.kind)
            return _CHECKED[self.operation](left.cast(wide), right.cast(wide))
        except pa.ArrowInvalid as error:
            message = f"a number of the query leaves the type {self.kind.simpleString()}: {error}"
            raise OverflowError(message) from None

    def _decimal(self, left: Column, right: Column, kind: st.DecimalType) -> Column:
        (p1, s1), (p2, s2) = _digits(self.left), _digits(self.right)
        made = pa.decimal128(kind.precision, kind.scale)
        operation = _UNCHECKED[self.operation]
        if _exact(self.operation, (p1, s1), (p2, s2))[0] <= MAX_SPARK_PRECISION:
            both = _decimal(left, pa.decimal128(p1, s1)), _decimal(right, pa.decimal128(p2, s2))
            return operation(*both).cast(made)
        if self.operation == "*" and p2 < MAX_SPARK_PRECISION - 1:
            try:  # few values have as many digits as their type allows, and those take four times as long
                fewer = _decimal(left, pa.decimal128(MAX_SPARK_PRECISION - 1 - p2, s1))
                return operation(fewer, _decimal(right, pa.decimal128(p2, s2))).cast(made)
            except pa.ArrowInvalid:
                pass
        both = _decimal(left, pa.decimal256(p1, s1)), _decimal(right, pa.decimal256(p2, s2))
        return operation(*both).cast(made)


def _decimal(values: Column, kind: pa.DataType) -> Column:
    """Return numbers as decimals.  Raises ArrowInvalid where one has too many digits."""
    if isinstance(values, pa.Scalar):  # casts of integers want room for all that their type holds
        return pa.scalar(Decimal(values.as_py()), kind)
    return values.cast(kind)


def constant(text: str) -> Number | None:
    """Return the number that is written in a query, such as ``1`` or ``0.05``; None for other ways to write one."""
    if not text.isascii() or not all(each.isdecimal() for each in text.split(".", 1)):
        return None
    value = Decimal(text)
    if "." in text:
        _, digits, exponent = value.as_tuple()
        scale = -int(exponent)
        precision = max(len(digits), scale)
        kind = st.DecimalType(precision, scale) if precision <= MAX_SPARK_PRECISION else None
        return None if kind is None else _Constant(value, kind)
    if value > _MOST_LONG:
        return None
    return _Constant(value, st.IntegerType() if value <= _MOST_INT else st.LongType())


def computed(operation: str, left: Number, right: Number) -> Number | None:
    """Return ``+``, ``-`` or ``*`` of two numbers; None where it is not certain to be Spark's."""
    kinds = [left.kind, right.kind]
    if any(isinstance(kind, st.DecimalType) for kind in kinds):
        if any(isinstance(kind, st.DoubleType) for kind in kinds):
            return None
        kind = _bounded(*_exact(operation, _digits(left), _digits(right)))
        return None if kind is None else _Computed(operation, left, right, kind)
    if any(isinstance(kind, st.DoubleType) for kind in kinds):
        return _Computed(operation, left, right, st.DoubleType())
    widest = max(kinds, key=lambda kind: _BY_WIDTH.index(type(kind)))
    return _Computed(operation, left, right, widest)


def _digits(number: Number) -> tuple[int, int]:
    """Return the precision and the scale of the decimal that Spark makes of a number beside a decimal."""
    kind = number.kind
    if isinstance(kind, st.DecimalType):
        return kind.precision, kind.scale
    if isinstance(number, _Constant):
        return len(str(number.value)), 0
    return _DIGITS_OF[type(kind)], 0


def _exact(operation: str, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    """Return the precision and the scale that hold all results."""
    (p1, s1), (p2, s2) = left, right
    if operation == "*":
        return p1 + p2 + 1, s1 + s2
    scale = max(s1, s2)
    return max(p1 - s1, p2 - s2) + scale + 1, scale


def _bounded(precision: int, scale: int) -> st.DecimalType | None:
    """Return Spark's type for results of so many digits; None where it rounds."""
    if precision <= MAX_SPARK_PRECISION:
        return st.DecimalType(precision, scale)
    kept = max(MAX_SPARK_PRECISION - (precision - scale), min(scale, _LEAST_SCALE))
    return st.DecimalType(MAX_SPARK_PRECISION, scale) if kept >= scale else None
