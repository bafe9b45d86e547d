"""Conditions taken apart: the parts that all have to be true, and comparisons of a column with a value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from pennon.expr.tree import Call, Column, Expression, Literal

_TURNED: Final = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """Yield the conditions that a conjunction consists of."""
    if isinstance(condition, Call) and condition.function == "AND":
        for each in condition.arguments:
            yield from conjuncts(each)
    else:
        yield condition


def comparison(node: Expression) -> tuple[Column, str, pa.Scalar] | None:
    """Return which column is compared, how, and with what, the column first: ``5 < a`` is ``a > 5``.

    None where no column is compared with a value of its type that is not NULL.
    """
    if not isinstance(node, Call) or node.function not in _TURNED:
        return None
    function, (column, literal) = node.function, node.arguments
    if isinstance(column, Literal):
        function, column, literal = _TURNED[function], literal, column
    if not isinstance(column, Column) or not isinstance(literal, Literal):
        return None
    value = literal.value
    return (column, function, value) if value.is_valid and value.type == column.type else None
