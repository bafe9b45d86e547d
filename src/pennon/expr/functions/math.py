"""Functions of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from pennon.expr.cast import Datum, cast
from pennon.expr.functions.function import Function, NullRule
from pennon.expr.operators import greater_equal, less_equal
from pennon.expr.rowwise import Entry, Run, by_row, with_halves

_MOST_DIGITS: Final = 308
"""The largest power of ten that is a float."""


def floating(run: Run) -> Entry:
    """Return a function over floats; numbers of other types become 64-bit floats."""
    return lambda values: run(as_floats(values)), 1, 1


def as_floats(values: Datum) -> Datum:
    """Return numbers as floats of 32 or 64 bits; half floats become 64-bit ones, as in the reference."""
    is_wide = t.is_floating(values.type) and not t.is_float16(values.type)
    return values if is_wide else cast(values, pa.float64())


def _by_value(run: Callable[[float], float]) -> Entry:
    """Return a function over floats that Arrow does not have."""

    def compute(values: Datum) -> Datum:
        floats = as_floats(values)
        return by_row(run, floats.type)(floats)

    return compute, 1, 1


def _cotangent(value: float) -> float:
    if math.isinf(value):
        return math.nan
    tangent = math.tan(value)
    return 1 / tangent if tangent else math.copysign(math.inf, tangent)


def _log(*arguments: Datum) -> Datum:
    """Return the logarithm to the base 10, or to the base that goes first."""
    floats = [cast(each, pa.float64()) for each in arguments]
    return pc.log10(floats[0]) if len(floats) == 1 else pc.logb(floats[1], floats[0])


def _digits(digits: pa.Scalar | None) -> int:
    """Return to how many digits to round; Arrow counts up to them, however many there are."""
    return 0 if digits is None else max(-_MOST_DIGITS, min(digits.as_py(), _MOST_DIGITS))


def _round(values: Datum, digits: pa.Scalar | None = None) -> Datum:
    """Round halves away from 0; decimals lose the digits."""
    count = _digits(digits)
    if t.is_decimal(values.type):
        kept = max(min(count, values.type.scale), 0)
        rounded = pc.round(values, count, round_mode="half_towards_infinity")
        return pc.cast(rounded, pa.decimal128(values.type.precision, kept))
    return pc.round(as_floats(values), count, round_mode="half_towards_infinity")


def _truncate(values: Datum, digits: pa.Scalar | None = None) -> Datum:
    if digits is not None and t.is_integer(values.type):
        values = cast(values, pa.float32())  # as in the reference
    return pc.round(as_floats(values), _digits(digits), round_mode="towards_zero")


def _power(base: Datum, exponent: Datum) -> Datum:
    return pc.power(cast(base, pa.float64()), cast(exponent, pa.float64()))


def _factorial(number: int) -> int:
    most = 20  # of which 64 bits can hold the factorial
    if number > most:
        message = f"the factorial of {number} has more than 64 bits"
        raise pa.ArrowInvalid(message)
    return math.factorial(max(number, 0))


def _atan2(over: Datum, under: Datum) -> Datum:
    """Return the angle of a point; whole numbers and half floats become 32-bit floats, as in the reference."""
    if t.is_integer(over.type) or t.is_float16(over.type):
        over, under = pc.cast(over, pa.float32()), pc.cast(under, pa.float32())
    return pc.atan2(over, under)


def _extreme(comes_first: Run) -> Run:
    """Return a function of those values that are not NULL; NaN is above all numbers."""

    def choose(one: Datum, other: Datum) -> Datum:
        keeps = pc.fill_null(comes_first(one, other), pc.is_null(other))
        return pc.if_else(keeps, one, other)

    return lambda *values: reduce(choose, values)


def _is_zero(values: Datum) -> Datum:
    return pc.equal(values, pa.scalar(0, values.type))


def _is_nan(values: Datum) -> Datum:
    return pc.is_nan(pc.cast(values, pa.float64()))


def _nan_else(values: Datum, other: Datum) -> Datum:
    return pc.if_else(pc.is_nan(values), other, values)


def _scaled(values: Datum, factor: float) -> Datum:
    return pc.multiply(values, pa.scalar(factor, values.type))


def _cube_root(value: float) -> float:
    return float(np.cbrt(np.longdouble(value)))  # the C library's is off by one bit


_POWER: Entry = (_power, 2, 2)
_WHOLE = (t.is_integer,)

NUMBERS: Final[Mapping[str, Entry | Function]] = {
    "abs": (with_halves(pc.abs), 1, 1),
    "signum": floating(pc.sign),
    "round": Function(_round, 1, 2, null_rule=NullRule.ANY),
    "floor": floating(pc.floor),
    "ceil": floating(pc.ceil),
    "trunc": (_truncate, 1, 2),
    "sqrt": floating(pc.sqrt),
    "cbrt": _by_value(_cube_root),
    "exp": floating(pc.exp),
    "ln": floating(pc.ln),
    "log2": floating(pc.log2),
    "log10": floating(pc.log10),
    "log": (_log, 1, 2),
    "sin": floating(pc.sin),
    "cos": floating(pc.cos),
    "tan": floating(pc.tan),
    "cot": _by_value(_cotangent),
    "asin": floating(pc.asin),
    "acos": floating(pc.acos),
    "atan": floating(pc.atan),
    "sinh": floating(pc.sinh),
    "cosh": floating(pc.cosh),
    "tanh": floating(pc.tanh),
    "asinh": floating(pc.asinh),
    "acosh": floating(pc.acosh),
    "atanh": floating(pc.atanh),
    "degrees": floating(lambda values: _scaled(values, 180 / math.pi)),
    "radians": floating(lambda values: _scaled(values, math.pi / 180)),
    "pi": (lambda: pa.scalar(math.pi), 0, 0),
    "power": _POWER,
    "pow": _POWER,
    "factorial": (by_row(_factorial, pa.int64(), *_WHOLE), 1, 1),
    "gcd": (by_row(math.gcd, pa.int64(), *_WHOLE), 2, 2),
    "lcm": (by_row(math.lcm, pa.int64(), *_WHOLE), 2, 2),
    "isnan": (_is_nan, 1, 1),
    "iszero": (with_halves(_is_zero), 1, 1),
}
"""Functions whose arguments keep types of their own."""

ALIKE: Final[Mapping[str, Entry]] = {
    "atan2": (_atan2, 2, 2),
    "nanvl": (_nan_else, 2, 2),
    "greatest": (with_halves(_extreme(greater_equal)), 1, None),
    "least": (with_halves(_extreme(less_equal)), 1, None),
}
"""Functions whose arguments get one type."""
