"""The functions that SQL text may call.

A function takes arrays and scalars (literals stay scalars: patterns and positions) and returns
either.  What it returns for empty arrays tells its type, so nothing is declared twice.  Names and
meaning are those of the reference.

Source: measured on pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from pennon.expr.cast import Datum
from pennon.expr.function_lists import LISTS
from pennon.expr.function_texts import TEXTS
from pennon.expr.function_times import TIMES


@dataclass(frozen=True, slots=True)
class Function:
    """How to call a function, and with how many arguments; ``most`` None: with any number."""

    run: Callable[..., Datum]
    least: int = 1
    most: int | None = 1
    is_mixed: bool = False
    """Whether the arguments keep types of their own; else they get one they have in common."""


def _floating(run: Callable[..., Datum]) -> Function:
    """Return a function over floats; numbers of other types become 64-bit floats."""
    return Function(lambda values: run(_as_floats(values)))


def _as_floats(values: Datum) -> Datum:
    return values if t.is_floating(values.type) else pc.cast(values, pa.float64())


def _log(*arguments: Datum) -> Datum:
    """Return the logarithm to the base 10, or to the base that goes first."""
    floats = [pc.cast(each, pa.float64()) for each in arguments]
    if len(floats) == 1:
        return pc.log10(floats[0])
    return pc.logb(floats[1], floats[0])


def _round(values: Datum, digits: pa.Scalar | None = None) -> Datum:
    """Round halves away from 0."""
    count = digits.as_py() if digits is not None else 0
    return pc.round(values, count, round_mode="half_towards_infinity")


def _power(base: Datum, exponent: Datum) -> Datum:
    return pc.power(pc.cast(base, pa.float64()), pc.cast(exponent, pa.float64()))


def _null_if(values: Datum, other: Datum) -> Datum:
    same = pc.fill_null(pc.equal(values, other), False)  # noqa: FBT003 - Arrow's own order
    return pc.if_else(same, pa.scalar(None, values.type), values)


def _nvl2(values: Datum, present: Datum, absent: Datum) -> Datum:
    return pc.if_else(pc.is_valid(values), present, absent)


def _is_nan(values: Datum) -> Datum:
    return pc.is_nan(pc.cast(values, pa.float64()))


def _is_zero(values: Datum) -> Datum:
    return pc.equal(values, pa.scalar(0, values.type))


def _nan_else(values: Datum, other: Datum) -> Datum:
    return pc.if_else(pc.is_nan(values), other, values)


def _field(values: Datum, name: pa.Scalar) -> Datum:
    return pc.struct_field(values, [name.as_py()])


_COALESCE = Function(pc.coalesce, 1, None)
_POWER = Function(_power, 2, 2, is_mixed=True)

NUMBERS: Final[Mapping[str, Function]] = {
    "abs": Function(pc.abs),
    "signum": _floating(pc.sign),
    "round": Function(_round, 1, 2, is_mixed=True),
    "floor": _floating(pc.floor),
    "ceil": _floating(pc.ceil),
    "trunc": _floating(pc.trunc),
    "sqrt": _floating(pc.sqrt),
    "exp": _floating(pc.exp),
    "ln": _floating(pc.ln),
    "log2": _floating(pc.log2),
    "log10": _floating(pc.log10),
    "log": Function(_log, 1, 2, is_mixed=True),
    "sin": _floating(pc.sin),
    "cos": _floating(pc.cos),
    "tan": _floating(pc.tan),
    "asin": _floating(pc.asin),
    "acos": _floating(pc.acos),
    "atan": _floating(pc.atan),
    "atan2": Function(pc.atan2, 2, 2),
    "power": _POWER,
    "pow": _POWER,
    "isnan": Function(_is_nan),
    "iszero": Function(_is_zero),
    "nanvl": Function(_nan_else, 2, 2),
    "greatest": Function(pc.max_element_wise, 1, None),
    "least": Function(pc.min_element_wise, 1, None),
}
CHOICES: Final[Mapping[str, Function]] = {
    "coalesce": _COALESCE,
    "nvl": Function(pc.coalesce, 2, 2),
    "ifnull": Function(pc.coalesce, 2, 2),
    "nullif": Function(_null_if, 2, 2),
    "nvl2": Function(_nvl2, 3, 3, is_mixed=True),
    "get_field": Function(_field, 2, 2, is_mixed=True),
}


def _mixed(
    table: Mapping[str, tuple[Callable[..., Datum], int, int | None]],
) -> dict[str, Function]:
    return {
        name: Function(run, least, most, is_mixed=True)
        for name, (run, least, most) in table.items()
    }


FUNCTIONS: Final[Mapping[str, Function]] = {
    **NUMBERS,
    **CHOICES,
    **_mixed(TEXTS),
    **_mixed(TIMES),
    **_mixed(LISTS),
}
