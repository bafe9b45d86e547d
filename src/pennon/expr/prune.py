"""The possible results of a condition in a unit of rows, from the bounds of its columns.

A unit may be a page, a zone of one, a fragment, or a range of rows; nothing here knows of files.  Each
part of the condition is given all results that it may have for a row of the unit.  If True is not
among those of the whole, no row passes, and the unit need not be read.  Nothing is ruled out
wrongly: a part that is not understood may come to anything.

::

    a > 5 AND b IS NULL      a lies in [1, 4], b has no NULLs
    a > 5                    {False}
    b IS NULL                {False}
    the whole                {False}        the unit is ruled out
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyarrow import types as t

from pennon.expr.tree import Call, Column, Expression, Literal, nodes_of


@dataclass(frozen=True, slots=True)
class Bounds:
    """The known bounds of a column's values in a unit; None: unknown.

    ``low`` and ``high`` hold for all values that are not NULL, and need not occur themselves.  They
    have the type of the column.  Floating-point numbers are in total order: NaN is above all others,
    so a statistic that leaves NaN out is no bound.
    """

    low: pa.Scalar | None = None
    high: pa.Scalar | None = None
    null_count: int | None = None
    rows: int | None = None


Path: TypeAlias = "tuple[str, ...]"
Unit: TypeAlias = "Mapping[Path, Bounds]"
"""The bounds of those columns of which some are known."""
Outcomes: TypeAlias = "frozenset[bool | None]"
"""What a condition may come to; None is NULL."""
Judge: TypeAlias = "Callable[[Unit], Outcomes]"

_ANYTHING: Final[Outcomes] = frozenset({True, False, None})
_WILD: Final = frozenset("%_\\")
"""Characters of a LIKE pattern that do not stand for themselves."""


class Pruner:
    """A condition, made ready to be asked about many units."""

    def __init__(self, condition: Expression) -> None:
        self._judge = _judge_of(condition)

    def can_match(self, unit: Unit) -> bool:
        """Tell whether a row of the unit may pass."""
        return True in self._judge(unit)


def literals_beside(condition: Expression, path: Path) -> Iterator[Any]:
    """Yield the values that a column is compared with, as Python values; NULLs are left out.

    As far as this module understands the condition, it cannot tell apart what lies between two of
    them that follow one another.
    """
    for node in nodes_of(condition):
        if isinstance(node, Call) and any(_is_column(each, path) for each in node.arguments):
            literals = [each.value for each in node.arguments if isinstance(each, Literal)]
            if node.function == "IN":
                literals = list(literals[0].values) if literals else []
            yield from (value.as_py() for value in literals if value.is_valid)


def can_prune(node: Expression) -> bool:
    """Return whether bounds can ever tell that a condition is not true."""
    if isinstance(node, (Column, Literal)):
        return bool(t.is_boolean(node.type))
    if not isinstance(node, Call) or node.function not in _JUDGES:
        return False
    if node.function in _LOGIC:
        some = any if node.function == "AND" else all
        return some(map(can_prune, node.arguments))
    return all(isinstance(each, (Column, Literal)) for each in node.arguments)


def _is_column(node: Expression, path: Path) -> bool:
    return isinstance(node, Column) and node.path == path


def _judge_of(node: Expression) -> Judge:
    if isinstance(node, Call) and node.function in _JUDGES:
        return _JUDGES[node.function](*node.arguments)
    if isinstance(node, (Column, Literal)) and t.is_boolean(node.type):
        return _judge_values(node)
    return lambda _: _ANYTHING


# --- logic ----------------------------------------------------------------------------------------


def _and(*arguments: Expression) -> Judge:
    judges = [_judge_of(each) for each in arguments]
    return lambda unit: reduce(_both, (judge(unit) for judge in judges))


def _or(*arguments: Expression) -> Judge:
    judges = [_judge_of(each) for each in arguments]
    return lambda unit: _opposite(reduce(_both, (_opposite(judge(unit)) for judge in judges)))


def _not(argument: Expression) -> Judge:
    judge = _judge_of(argument)
    return lambda unit: _opposite(judge(unit))


def _both(left: Outcomes, right: Outcomes) -> Outcomes:
    return frozenset(
        False if x is False or y is False else None if x is None or y is None else True
        for x in left
        for y in right
    )


def _opposite(outcomes: Outcomes) -> Outcomes:
    return frozenset(None if each is None else not each for each in outcomes)


def _is(wanted: bool) -> Callable[[Expression], Judge]:
    """Return what judges IS TRUE or IS FALSE."""

    def make(argument: Expression) -> Judge:
        judge = _judge_of(argument)
        return lambda unit: frozenset(each is wanted for each in judge(unit))

    return make


def _is_null(argument: Expression) -> Judge:
    if isinstance(argument, Call):
        judge = _judge_of(argument)
        return lambda unit: frozenset(each is None for each in judge(unit))
    span = _span_of(argument)

    def judge_span(unit: Unit) -> Outcomes:
        values = span(unit)
        return _outcomes(values.may_be_null, values.may_be_value, null=False)

    return judge_span


# --- values ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Span:
    """A range of possible values: keys between two known ones; see `_key`."""

    low: Any = None
    high: Any = None
    may_be_null: bool = True
    may_be_value: bool = True


_UNKNOWN: Final = _Span()
_ONLY_NULL: Final = _Span(may_be_value=False)


def _span_of(node: Expression) -> Callable[[Unit], _Span]:
    if isinstance(node, Literal):
        key = _key(node.value)
        span = _Span(key, key, may_be_null=False) if node.value.is_valid else _ONLY_NULL
        return lambda _: span
    if isinstance(node, Column):
        path = node.path
        return lambda unit: _span_within(unit.get(path))
    return lambda _: _UNKNOWN


def _span_within(bounds: Bounds | None) -> _Span:
    if bounds is None:
        return _UNKNOWN
    nulls = bounds.null_count
    is_only_null = nulls is not None and nulls == bounds.rows
    return _Span(_key(bounds.low), _key(bounds.high), nulls != 0, not is_only_null)


def _key(value: pa.Scalar | None) -> Any:
    """Return a Python value that sorts as the column does; None if there is none."""
    if value is None or not value.is_valid or t.is_nested(value.type):
        return None
    if not _needs_key(value.type):
        return value.as_py()
    if t.is_floating(value.type):
        number = value.as_py()
        return (1, 0.0) if math.isnan(number) else (0, number)
    return getattr(value, "value", None)


def _needs_key(kind: pa.DataType) -> bool:
    """Return whether the keys of values are other than their Python values."""
    return bool(t.is_floating(kind) or t.is_temporal(kind))


def _comparison(may: Callable[[_Span, _Span], tuple[bool, bool]]) -> Callable[..., Judge]:
    """Return what judges a comparison, given what tells whether it may be true, and may be false."""

    def make(left: Expression, right: Expression) -> Judge:
        if left.type != right.type:
            return lambda _: _ANYTHING
        spans = _span_of(left), _span_of(right)

        def judge(unit: Unit) -> Outcomes:
            x, y = spans[0](unit), spans[1](unit)
            if not (x.may_be_value and y.may_be_value):
                return frozenset({None})
            return _outcomes(*may(x, y), null=x.may_be_null or y.may_be_null)

        return judge

    return make


def _outcomes(true: bool, false: bool, *, null: bool) -> Outcomes:
    pairs = ((True, true), (False, false), (None, null))
    return frozenset(outcome for outcome, is_possible in pairs if is_possible)


def _less(left: _Span, right: _Span) -> tuple[bool, bool]:
    true = left.low is None or right.high is None or left.low < right.high
    false = left.high is None or right.low is None or left.high >= right.low
    return true, false


def _equal(left: _Span, right: _Span) -> tuple[bool, bool]:
    apart = _is_below(left.high, right.low) or _is_below(right.high, left.low)
    points = left.low, left.high, right.low, right.high
    is_one = None not in points and len(set(points)) == 1
    return not apart, not is_one


def _is_below(high: Any, low: Any) -> bool:
    return high is not None and low is not None and high < low


def _in(values: Expression, items: Expression) -> Judge:
    if not isinstance(items, Literal) or t.is_nested(values.type):
        return lambda _: _ANYTHING
    listed = items.value.values
    known = listed.drop_null()
    keys = sorted(map(_key, known) if _needs_key(known.type) else known.to_pylist())
    span, has_null = _span_of(values), len(known) < len(listed)

    def judge(unit: Unit) -> Outcomes:
        x = span(unit)
        if not x.may_be_value:
            return frozenset({None})
        low = 0 if x.low is None else bisect_left(keys, x.low)
        high = len(keys) if x.high is None else bisect_right(keys, x.high)
        is_point = x.low is not None and x.low == x.high
        is_found = low < high
        return _outcomes(is_found, not (is_found and is_point), null=x.may_be_null or has_null)

    return judge


def _starts_with(values: Expression, prefix: Expression) -> Judge:
    """Return what judges whether texts begin with one."""
    if not isinstance(prefix, Literal) or not prefix.value.is_valid:
        return lambda _: _ANYTHING
    return _judge_prefix(_span_of(values), prefix.value.as_py(), is_all=True)


def _like(values: Expression, pattern: Expression) -> Judge:
    """Return what judges LIKE: what a pattern begins with rules texts out."""
    if not isinstance(pattern, Literal) or not pattern.value.is_valid:
        return lambda _: _ANYTHING
    text = pattern.value.as_py()
    if not isinstance(text, str):
        return lambda _: _ANYTHING
    prefix = text[: next((at for at, each in enumerate(text) if each in _WILD), len(text))]
    if prefix == text:
        return _comparison(_equal)(values, pattern)
    return _judge_prefix(_span_of(values), prefix, is_all=text[len(prefix) :] == "%")


def _judge_prefix(span: Callable[[Unit], _Span], prefix: Any, *, is_all: bool) -> Judge:
    """Return what judges a prefix; ``is_all``: texts that have it pass."""

    def judge(unit: Unit) -> Outcomes:
        x = span(unit)
        if not x.may_be_value:
            return frozenset({None})
        low, high = (None if each is None else each[: len(prefix)] for each in (x.low, x.high))
        may = (low is None or low <= prefix) and (high is None or high >= prefix)
        is_inside = is_all and low == high == prefix
        return _outcomes(may, not is_inside, null=x.may_be_null)

    return judge


def _judge_values(node: Expression) -> Judge:
    """Return what judges a column or literal that is true or false by itself."""
    span = _span_of(node)

    def judge(unit: Unit) -> Outcomes:
        x = span(unit)
        true = x.may_be_value and x.high is not False
        false = x.may_be_value and x.low is not True
        return _outcomes(true, false, null=x.may_be_null)

    return judge


def _swapped(make: Callable[..., Judge]) -> Callable[[Expression, Expression], Judge]:
    return lambda left, right: make(right, left)


def _negated(make: Callable[..., Judge]) -> Callable[..., Judge]:
    def judge_of(*arguments: Expression) -> Judge:
        judge = make(*arguments)
        return lambda unit: _opposite(judge(unit))

    return judge_of


_LOGIC: Final = frozenset({"AND", "OR", "NOT", "IS TRUE", "IS FALSE"})
_JUDGES: Final[Mapping[str, Callable[..., Judge]]] = {
    "AND": _and,
    "OR": _or,
    "NOT": _not,
    "IS TRUE": _is(True),  # noqa: FBT003
    "IS FALSE": _is(False),  # noqa: FBT003
    "IS NULL": _is_null,
    "IN": _in,
    "starts_with": _starts_with,
    "like": _like,
    "=": _comparison(_equal),
    "!=": _negated(_comparison(_equal)),
    "<": _comparison(_less),
    ">": _swapped(_comparison(_less)),
    ">=": _negated(_comparison(_less)),
    "<=": _negated(_swapped(_comparison(_less))),
}
