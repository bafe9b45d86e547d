"""The typed tree of an expression.

Every node knows the type of what it gives.  Trees are immutable and pickle, so that an executor can
be sent one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Column:
    """The values of a column, or of a field inside it; ``path`` has the names from the top."""

    path: tuple[str, ...]
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Literal:
    """One value for all rows."""

    value: pa.Scalar

    @property
    def type(self) -> pa.DataType:
        """Return the type of the value."""
        return self.value.type


@dataclass(frozen=True, slots=True)
class Call:
    """A function of `pennon.expr.functions.registry` or an operator of `pennon.expr.operators`."""

    function: str
    arguments: tuple[Expression, ...]
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Cast:
    """Values as another type; ``gives_null`` tells that what cannot be cast is NULL, no error."""

    operand: Expression
    type: pa.DataType
    gives_null: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """The value of the first branch whose condition is true, else ``otherwise``."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression
    type: pa.DataType


Expression: TypeAlias = Column | Literal | Call | Cast | Case


def is_among(values: Expression, items: pa.Array) -> Call:
    """Return a call of ``IN`` over some values of its type; one of these may be NULL.

    The items are one literal, a list, so that very many of them are as cheap as few.
    """
    offsets = pa.array([0, len(items)], pa.int64())
    listed = pa.LargeListArray.from_arrays(offsets, items)[0]
    return Call("IN", (values, Literal(listed)), pa.bool_())


def children(node: Expression) -> Iterator[Expression]:
    """Yield the expressions that a node is made of."""
    if isinstance(node, Call):
        yield from node.arguments
    elif isinstance(node, Cast):
        yield node.operand
    elif isinstance(node, Case):
        for branch in node.branches:
            yield from branch
        yield node.otherwise


def nodes_of(node: Expression) -> Iterator[Expression]:
    """Yield an expression, and all that it is made of, however deep."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        yield each
        if isinstance(each, Call):
            waiting.extend(each.arguments)
        elif not isinstance(each, (Column, Literal)):
            waiting.extend(children(each))


def paths_of(node: Expression) -> list[tuple[str, ...]]:
    """Return the paths of the columns, or fields inside them, that an expression needs, each once."""
    return list(dict.fromkeys(each.path for each in nodes_of(node) if isinstance(each, Column)))


def with_column(node: Expression, column: Column) -> Expression:
    """Return an expression that names one column in place of those that it names."""
    if isinstance(node, Column):
        return column
    if isinstance(node, Call):
        arguments = tuple([with_column(each, column) for each in node.arguments])
        return Call(node.function, arguments, node.type)
    if isinstance(node, Cast):
        return replace(node, operand=with_column(node.operand, column))
    if isinstance(node, Case):
        branches = tuple((with_column(a, column), with_column(b, column)) for a, b in node.branches)
        return replace(node, branches=branches, otherwise=with_column(node.otherwise, column))
    return node
