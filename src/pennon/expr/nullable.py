"""A test whether an expression may be NULL, from the nullability of its columns.

The field of a column that is computed and stored says so, and a field that is never NULL must then
be in all rows that are appended.  So "may be NULL" is the answer wherever it is not sure.

Source: measured on pylance 14.0.2.
"""

from __future__ import annotations

import pyarrow as pa

from pennon.errors import ArgumentError
from pennon.expr.evaluate import evaluate
from pennon.expr.functions.function import NullRule
from pennon.expr.functions.registry import find_function
from pennon.expr.operators import NEVER_NULL, OPERATORS
from pennon.expr.tree import Call, Case, Cast, Column, Expression, Literal, paths_of


def may_be_null(node: Expression, schema: pa.Schema) -> bool:
    """Tell whether a value of an expression over rows of ``schema`` may be NULL."""
    if isinstance(node, Literal):
        return not node.value.is_valid
    if isinstance(node, Column):
        return _column(node, schema)
    if isinstance(node, Cast):
        return node.gives_null or may_be_null(node.operand, schema)
    if isinstance(node, Case):
        values = [node.otherwise, *(value for _, value in node.branches)]
        return any(may_be_null(value, schema) for value in values)
    return _call(node, schema)


def _column(node: Column, schema: pa.Schema) -> bool:
    field = schema.field(node.path[0])
    for name in node.path[1:]:
        if field.nullable or not pa.types.is_struct(field.type):
            return True
        field = field.type.field(name)
    return bool(field.nullable)


def _call(node: Call, schema: pa.Schema) -> bool:
    name = node.function
    if name in NEVER_NULL:
        return False
    rule = NullRule.ANY if name in OPERATORS else find_function(name).null_rule
    if rule is NullRule.NEVER:
        return False
    if rule is NullRule.UNKNOWN:
        return bool(paths_of(node)) or _takes_rows(node) or _is_null(node)
    arguments = (may_be_null(each, schema) for each in node.arguments)
    return any(arguments) if rule is NullRule.ANY else all(arguments)


def _takes_rows(node: Expression) -> bool:
    """Return whether each row has a value of its own, without columns."""
    if not isinstance(node, Call):
        return False
    is_here = node.function not in OPERATORS and find_function(node.function).takes_rows
    return is_here or any(map(_takes_rows, node.arguments))


def _is_null(node: Expression) -> bool:
    """Tell whether an expression without columns is NULL."""
    one_row = pa.RecordBatch.from_struct_array(pa.array([{}], pa.struct([])))
    try:
        return bool(evaluate(node, one_row).null_count)
    except ArgumentError:
        return True
