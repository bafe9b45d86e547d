"""Constants that a query computes: ``DATE '1993-07-01' + INTERVAL '3' MONTH``, ``0.06 - 0.01``."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Final

from sqlglot import exp

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_NUMBER: Final = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)
_COUNT: Final = re.compile(r"-?\d{1,6}", re.ASCII)
_MONTHS: Final[Mapping[str, int]] = {"MONTH": 1, "YEAR": 12}
_DAYS: Final[Mapping[str, int]] = {"DAY": 1, "WEEK": 7}


def folded(tree: exp.Expr) -> exp.Expr | None:
    """Return what constants make as a literal, exactly Spark's; None if the tree is something else."""
    if isinstance(tree, exp.Paren):
        return folded(tree.this)
    if not isinstance(tree, (exp.Add, exp.Sub)):
        return None
    return _moved_date(tree) or _sum_of_numbers(tree)


def _sum_of_numbers(tree: exp.Add | exp.Sub) -> exp.Expr | None:
    """Return the sum or the difference of two numbers: integers or, with a point, decimals, so nothing is rounded."""
    both = [tree.this, tree.expression]
    if not all(isinstance(each, exp.Literal) and _NUMBER.fullmatch(each.name) for each in both):
        return None
    first, second = (Decimal(each.name) for each in both)
    found = first + second if isinstance(tree, exp.Add) else first - second
    literal = exp.Literal.number(f"{abs(found):f}")
    return exp.Neg(this=literal) if found < 0 else literal


def _moved_date(tree: exp.Add | exp.Sub) -> exp.Expr | None:
    """Return the date that a date plus or minus days, weeks, months or years is, as a literal; None if it is not that.

    As in Spark, a day that the month has not becomes its last one.
    """
    day = _date(tree.this)
    moved = tree.expression
    if day is None or not isinstance(moved, exp.Interval) or not isinstance(moved.unit, exp.Var):
        return None
    count = moved.this
    if not isinstance(count, exp.Literal) or _COUNT.fullmatch(count.name) is None:
        return None
    number = int(count.name) * (1 if isinstance(tree, exp.Add) else -1)
    unit = moved.unit.name.upper().removesuffix("S")
    try:
        if unit in _MONTHS:
            found = _by_months(day, number * _MONTHS[unit])
        elif unit in _DAYS:
            found = day + timedelta(days=number * _DAYS[unit])
        else:
            return None
    except (ValueError, OverflowError):  # no date that Python knows
        return None
    return exp.cast(exp.Literal.string(found.isoformat()), "date")


def _date(tree: exp.Expr) -> date | None:
    if not isinstance(tree, exp.Cast) or not tree.is_type("date"):
        return None
    given = tree.this
    if (
        not isinstance(given, exp.Literal)
        or not given.is_string
        or _DATE.fullmatch(given.name) is None
    ):
        return None
    try:
        return date.fromisoformat(given.name)
    except ValueError:
        return None


def _by_months(day: date, months: int) -> date:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
