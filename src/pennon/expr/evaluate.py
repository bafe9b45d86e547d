"""The evaluation of an expression on the rows of a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from pennon.errors import ExpressionError
from pennon.expr.cast import Datum, cast, try_cast
from pennon.expr.operators import OPERATORS
from pennon.expr.tree import Call, Case, Cast, Column, Expression, Literal, nodes_of, paths_of

if TYPE_CHECKING:
    from pennon.expr.functions.function import Function

FEW: Final = 8
"""A condition is evaluated for the rows that are left if they are this part of all, or less."""
_COMPARISONS: Final = frozenset({"=", "!=", "<", "<=", ">", ">="})


def evaluate(node: Expression, batch: pa.RecordBatch) -> pa.Array:
    """Return an array with a value for each row.

    Raises ExpressionError where a value cannot be computed: a division by zero, a failed cast.
    """
    try:
        found = _evaluate(node, batch)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        message = f"the expression cannot be computed: {error}"
        raise ExpressionError(message) from error
    return found if isinstance(found, pa.Array) else pa.repeat(found, batch.num_rows)


def passing(node: Expression, batch: pa.RecordBatch) -> pa.BooleanArray:
    """Return true for the rows for which a condition is true; false or NULL for the others.

    The parts of a chain of ANDs are evaluated for the rows that those before them left, where these
    are few, and not at all where there are none.  Raises ExpressionError as `evaluate` does.
    """
    if not (isinstance(node, Call) and node.function == "AND"):
        return evaluate(node, batch)
    mask = passing(node.arguments[0], batch)
    for number, each in enumerate(node.arguments[1:], 1):
        left = mask.true_count
        if not left:
            return mask
        if left * FEW <= batch.num_rows and not _is_cheap(each):
            rest = replace(node, arguments=node.arguments[number:])
            return _among(mask, rest, batch)
        mask = pc.and_kleene(mask, evaluate(each, batch))
    return mask


def _is_cheap(node: Expression) -> bool:
    """Return whether to compare all rows costs less than to choose some of them first."""
    if not isinstance(node, Call) or node.function not in _COMPARISONS:
        return False
    return all(
        isinstance(each, Literal) or (isinstance(each, Column) and _is_number(each.type))
        for each in node.arguments
    )


def _is_number(kind: pa.DataType) -> bool:
    return bool(t.is_integer(kind) or t.is_floating(kind) or t.is_temporal(kind))


def _among(mask: pa.BooleanArray, rest: Call, batch: pa.RecordBatch) -> pa.BooleanArray:
    """Return which of the rows of a mask pass the rest of a condition as well."""
    names = list(dict.fromkeys(path[0] for path in paths_of(rest)))
    inputs = batch.select(names)
    if any(t.is_nested(kind) for kind in inputs.schema.types):
        return pc.and_kleene(mask, evaluate(rest, batch))  # Arrow does not filter all of them right
    mask = pc.fill_null(mask, False)  # noqa: FBT003 - Arrow's own order
    found = passing(rest, inputs.filter(mask))
    return pc.replace_with_mask(mask, mask, found)


def type_of(run: Callable[..., Datum], arguments: tuple[Expression, ...]) -> pa.DataType:
    """Return the type that a function gives, by asking it; Arrow's errors are the caller's."""
    return run(*[_sample(each) for each in arguments]).type


def _sample(node: Expression) -> Datum:
    return node.value if isinstance(node, Literal) else pa.array([], node.type)


def _evaluate(node: Expression, batch: pa.RecordBatch) -> Datum:
    run: Any = _BY_NODE[type(node)]
    return run(node, batch)


def _column(node: Column, batch: pa.RecordBatch) -> Datum:
    found = batch.column(node.path[0])
    if isinstance(found, pa.ExtensionArray):
        found = found.storage
    for name in node.path[1:]:
        found = pc.struct_field(found, [name])
    return cast(found, node.type)


def _literal(node: Literal, _: pa.RecordBatch) -> Datum:
    return node.value


def is_constant(node: Expression) -> bool:
    """Return whether an expression has the same value at any time: it calls no ``random`` or ``now``."""
    return all(
        each.function in OPERATORS or _function(each).is_constant
        for each in nodes_of(node)
        if isinstance(each, Call)
    )


def _function(node: Call) -> Function:
    from pennon.expr.functions.registry import FUNCTIONS  # noqa: PLC0415 - saves functions: most conditions call none

    return FUNCTIONS[node.function]


def _call(node: Call, batch: pa.RecordBatch) -> Datum:
    run = OPERATORS.get(node.function)
    if run is None:
        function = _function(node)
        if function.takes_rows:
            return function.run(batch.num_rows)
        run = function.run
    return run(*[_evaluate(each, batch) for each in node.arguments])


def _cast(node: Cast, batch: pa.RecordBatch) -> Datum:
    values = _evaluate(node.operand, batch)
    return try_cast(values, node.type) if node.gives_null else cast(values, node.type)


def _case(node: Case, batch: pa.RecordBatch) -> Datum:
    """Return the first branch that applies; a branch is computed for all rows."""
    found = _evaluate(node.otherwise, batch)
    for condition, value in reversed(node.branches):
        is_taken = pc.fill_null(_evaluate(condition, batch), False)  # noqa: FBT003 - Arrow's order
        found = pc.if_else(is_taken, _evaluate(value, batch), found)
    return found


_BY_NODE: dict[type, Callable[[Any, pa.RecordBatch], Datum]] = {
    Column: _column,
    Literal: _literal,
    Call: _call,
    Cast: _cast,
    Case: _case,
}
