"""Giving expressions one type.

A literal takes the type of what it stands beside, if it is the same value there; otherwise all take
the type that they have in common.  Texts are not numbers and never become them unasked, but a text
literal beside a date or a time is read as one.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyarrow import types as t

from pennon.errors import ArgumentError
from pennon.expr.cast import cast, fits_exactly
from pennon.expr.tree import Cast, Expression, Literal
from pennon.expr.types import UNITS, common_type, is_bytes, is_number, is_text


def one_type(nodes: Sequence[Expression], *, fits_literals: bool = True) -> tuple[Expression, ...]:
    """Cast expressions to the type that they have in common; literals follow the others.

    Raises ArgumentError if they have none.
    """
    columns = [node for node in nodes if not isinstance(node, Literal)]
    kind = _common([node.type for node in columns or nodes])
    if fits_literals and columns:
        fitted = [_fit(node, kind) for node in nodes]
        if all(fitted):
            return tuple(cast_to(node, kind) for node in fitted if node is not None)
    kind = _common([kind, *(node.type for node in nodes)])
    try:
        return tuple(cast_to(node, kind) for node in nodes)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ArgumentError(str(error)) from error


def comparable(left: Expression, right: Expression) -> tuple[Expression, ...]:
    """Cast two expressions to a type in which they compare; Arrow compares no half floats."""
    sides = one_type([left, right])
    if t.is_float16(sides[0].type):
        return tuple(cast_to(each, pa.float32()) for each in sides)
    if t.is_null(sides[0].type):
        return tuple(cast_to(each, pa.bool_()) for each in sides)
    return sides


def fit_all(items: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """Return integers or texts as values of a type; None if one of them is another value there.

    This is what `one_type` does with a literal beside a column, for very many at once.
    """
    if is_text(items.type) != is_text(kind) or not (is_text(kind) or is_number(kind)):
        return None
    if t.is_float16(kind) or t.is_decimal(kind):
        return None
    try:
        found = items.cast(kind)
        return found if found.cast(items.type).equals(items) else None
    except pa.ArrowInvalid:
        return None


def cast_to(node: Expression, kind: pa.DataType) -> Expression:
    """Return an expression cast to a type; a literal at once.  May raise Arrow's errors."""
    if node.type == kind:
        return node
    if isinstance(node, Literal):
        return Literal(cast(node.value, kind))
    return Cast(node, kind)


def as_timestamp(node: Expression) -> Expression:
    """Return dates as timestamps."""
    return node if t.is_timestamp(node.type) else cast_to(node, pa.timestamp("ns"))


def as_instants(left: Expression, right: Expression) -> tuple[Expression, Expression]:
    """Return two times, or a time and a date, as UTC has them, so that their distance is known.

    Times are in the coarser of their units; beside a date they are in nanoseconds.
    """
    kinds = [node.type for node in (left, right)]
    if not all(t.is_timestamp(kind) or t.is_date(kind) for kind in kinds):
        return left, right
    units = [kind.unit if t.is_timestamp(kind) else "ns" for kind in kinds]
    zoned = [t.is_timestamp(kind) and kind.tz is not None for kind in kinds]
    if zoned[0] != zoned[1] and units[0] != units[1] and not any(map(t.is_date, kinds)):
        message = (
            f"{kinds[0]} and {kinds[1]}: one has no zone, and no distance to the other; cast it"
        )
        raise ArgumentError(message)
    unit = "ns" if any(map(t.is_date, kinds)) else min(units, key=UNITS.index)
    one, other = (_instant(node, unit) for node in (left, right))
    return one, other


def _instant(node: Expression, unit: str) -> Expression:
    if t.is_timestamp(node.type) and node.type.tz:
        node = cast_to(node, pa.timestamp(unit, "UTC"))
    return cast_to(node, pa.timestamp(unit))


def _common(kinds: list[pa.DataType]) -> pa.DataType:
    found = kinds[0]
    for kind in kinds[1:]:
        found = common_type(found, kind)
    return found


def _fit(node: Expression, kind: pa.DataType) -> Expression | None:
    """Return a literal as a value of ``kind``, None if it is none there; others as they are."""
    if not isinstance(node, Literal):
        return node
    if not _may_become(node.type, kind):
        return None
    value = fits_exactly(node.value, kind)
    is_moment = t.is_date(kind) or t.is_timestamp(kind) or t.is_time(kind)
    if value is None and is_moment and is_text(node.type):
        message = f"{node.value.as_py()!r} is no {kind}"
        raise ArgumentError(message)
    return None if value is None else Literal(value)


def _may_become(literal: pa.DataType, kind: pa.DataType) -> bool:
    """Tell whether a literal may take another type unasked."""
    if t.is_null(literal) or literal == kind or (is_number(literal) and is_number(kind)):
        return True
    if is_text(literal):
        return is_text(kind) or t.is_temporal(kind)
    if is_bytes(literal):
        return is_bytes(kind)
    if t.is_temporal(literal):
        return bool(t.is_timestamp(kind) or literal.id == kind.id)
    return bool(t.is_list(literal) and t.is_list(kind))
