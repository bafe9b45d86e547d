"""From syntax to meaning: which columns and functions are meant, and what gets cast to what.

`pennon.expr.fit` gives the sides of an operator one type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
from pyarrow import types as t
from sqlglot import exp

from pennon.errors import ArgumentError
from pennon.expr.cast import cast
from pennon.expr.evaluate import type_of
from pennon.expr.fit import as_instants, as_timestamp, cast_to, comparable, fit_all, one_type
from pennon.expr.functions.registry import find_function
from pennon.expr.literal_lists import place_of, text_of
from pennon.expr.literals import hexadecimal, interval, list_of, number
from pennon.expr.names import field_of, find_name, sql_type
from pennon.expr.operators import OPERATORS
from pennon.expr.tree import Call, Case, Cast, Column, Expression, Literal, is_among
from pennon.expr.types import as_decimal, is_text, plain

MOST_ARGUMENTS: Final = 4096
"""A function that takes any number of arguments takes so many."""
NULL: Final = Literal(pa.NULL)  # pa.scalar would import pandas


class Binder:
    """Binds syntax to the columns of a schema.

    Every method raises ArgumentError for what has no meaning here.
    """

    def __init__(
        self,
        schema: pa.Schema,
        lists: Mapping[str, pa.Array] | None = None,
        values: Sequence[str] = (),
    ) -> None:
        """Take the columns, and what placeholders stand for (`take_out_lists`, `take_out_values`)."""
        self._schema = schema
        self._lists = lists or {}
        self._values = values
        self._top: exp.Expr | None = None

    def bind_top(self, node: exp.Expr) -> Expression:
        """Return the tree of a whole expression.

        ``int8 + 1`` is an int8 if it is all there is, and an int64 within another expression (as
        the reference has it).
        """
        self._top = node
        return self.bind(node)

    def bind(self, node: exp.Expr) -> Expression:
        """Return the typed tree of a piece of syntax."""
        method = _BY_SYNTAX.get(type(node))
        if method is None:
            message = f"{node.sql()} is not supported"
            raise ArgumentError(message)
        found: Expression = getattr(self, method)(node)
        return found

    # --- names and values -------------------------------------------------------------------------

    def _column(self, node: exp.Column) -> Expression:
        parts = [part.name for part in node.parts]
        top = find_name(parts[0], self._schema.names, "column")
        kind = self._schema.field(top).type
        found = Column((top,), plain(kind))
        for name in parts[1:]:
            found = field_of(found, name)
        return found

    def _bracket(self, node: exp.Bracket) -> Expression:
        whole = self.bind(node.this)
        if len(node.expressions) != 1:
            message = f"{node.sql()}: one index was expected"
            raise ArgumentError(message)
        index = self.bind(node.expressions[0])
        if not (isinstance(index, Literal) and is_text(index.type)):
            return self._call("array_element", (whole, index))
        return _field(whole, index) or self._call("get_field", (whole, index))

    def _dot(self, node: exp.Dot) -> Expression:
        name = Literal(pa.scalar(node.expression.name))
        whole = self.bind(node.this)
        return _field(whole, name) or self._call("get_field", (whole, name))

    def _literal(self, node: exp.Literal) -> Expression:
        return Literal(pa.scalar(node.this)) if node.is_string else number(node.this)

    def _placeholder(self, node: exp.Placeholder) -> Expression:
        place = place_of(node.name)
        if not 0 <= place < len(self._values):
            message = f"{node.sql()} is not supported"
            raise ArgumentError(message)
        value = self._values[place]
        return Literal(pa.scalar(text_of(value))) if value.startswith("'") else number(value)

    def _boolean(self, node: exp.Boolean) -> Expression:
        return Literal(pa.scalar(bool(node.this)))

    def _null(self, _: exp.Null) -> Expression:
        return NULL

    def _bytes(self, node: exp.HexString) -> Expression:
        return hexadecimal(node)

    def _array(self, node: exp.Expr) -> Expression:
        return list_of(node.sql(), [self.bind(each) for each in node.expressions])

    def _interval(self, node: exp.Interval) -> Expression:
        return interval(node)

    # --- logic ------------------------------------------------------------------------------------

    def _logic(self, name: str, kind: type[exp.Expr]) -> Callable[[exp.Expr], Expression]:
        def bind(node: exp.Expr) -> Expression:
            operands = tuple(self._condition(each) for each in _flat(node, kind))
            return Call(name, operands, pa.bool_())

        return bind

    def _and(self, node: exp.Expr) -> Expression:
        return self._logic("AND", exp.And)(node)

    def _or(self, node: exp.Expr) -> Expression:
        return self._logic("OR", exp.Or)(node)

    def _not(self, node: exp.Not) -> Expression:
        return Call("NOT", (self._condition(node.this),), pa.bool_())

    def _condition(self, node: exp.Expr) -> Expression:
        found = as_condition(self.bind(node))
        if t.is_null(found.type):
            return Literal(pa.scalar(None, pa.bool_()))
        if found.type != pa.bool_():
            message = f"{node.sql()} gives {found.type}, where true or false is expected"
            raise ArgumentError(message)
        return found

    def _is(self, node: exp.Is) -> Expression:
        if isinstance(node.expression, exp.Null):
            return Call("IS NULL", (self.bind(node.this),), pa.bool_())
        if isinstance(node.expression, exp.Boolean):
            name = "IS TRUE" if node.expression.this else "IS FALSE"
            return Call(name, (self._condition(node.this),), pa.bool_())
        message = f"{node.sql()} is not supported"
        raise ArgumentError(message)

    # --- comparison -------------------------------------------------------------------------------

    def _binary(self, node: exp.Binary) -> Expression:
        return self.compare(_COMPARES[type(node)], self.bind(node.this), self.bind(node.expression))

    def compare(self, name: str, left: Expression, right: Expression) -> Expression:
        """Return a comparison, both sides cast to one type."""
        if t.is_nested(left.type) and name in ("<", "<=", ">", ">="):
            message = f"values of {left.type} have no order"
            raise ArgumentError(message)
        return Call(name, comparable(left, right), pa.bool_())

    def _between(self, node: exp.Between) -> Expression:
        if node.args.get("symmetric"):
            message = "BETWEEN SYMMETRIC is not supported: BETWEEN takes the lower bound first"
            raise ArgumentError(message)
        values = self.bind(node.this)
        low, high = self.bind(node.args["low"]), self.bind(node.args["high"])
        both = self.compare(">=", values, low), self.compare("<=", values, high)
        return Call("AND", both, pa.bool_())

    def _in(self, node: exp.In) -> Expression:
        if node.args.get("query") is not None or not node.expressions:
            message = f"{node.sql()}: IN takes a list of values"
            raise ArgumentError(message)
        values = self.bind(node.this)
        found = self._list(node.expressions)
        if found is not None:
            fitted = fit_all(found, values.type)
            if fitted is not None:
                return is_among(values, fitted)
            return _one_of(values, list(map(Literal, found)))
        return _one_of(values, [self.bind(each) for each in node.expressions])

    def _list(self, nodes: Sequence[exp.Expr]) -> pa.Array | None:
        is_placeholder = len(nodes) == 1 and isinstance(nodes[0], exp.Placeholder)
        return self._lists.get(nodes[0].name) if is_placeholder else None

    def _like(self, node: exp.Like | exp.ILike) -> Expression:
        name = "ilike" if isinstance(node, exp.ILike) else "like"
        found = self._call(name, (self.bind(node.this), self.bind(node.expression)))
        return Call("NOT", (found,), pa.bool_()) if node.args.get("negate") else found

    def _escape(self, node: exp.Escape) -> Expression:
        if node.expression.name != "\\":
            message = f"{node.sql()}: LIKE has no other escape than the backslash"
            raise ArgumentError(message)
        return self.bind(node.this)

    # --- arithmetic -------------------------------------------------------------------------------

    def _arithmetic(self, node: exp.Binary) -> Expression:
        name = _COMPUTES[type(node)]
        left, right = self.bind(node.this), self.bind(node.expression)
        if t.is_duration(right.type) and (t.is_date(left.type) or t.is_timestamp(left.type)):
            left = as_timestamp(left)
            return Call(name, (left, cast_to(right, pa.duration(left.type.unit))), left.type)
        if name == "-" and t.is_timestamp(left.type) | t.is_timestamp(right.type):
            left, right = as_instants(left, right)
        beside_column = isinstance(left, Column) or isinstance(right, Column)
        fits = node is self._top and beside_column
        sides = _operands(left, right, fits_literals=fits)
        return Call(name, sides, self._asked(node.sql(), OPERATORS[name], sides))

    def _negative(self, node: exp.Neg) -> Expression:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return number("-" + node.this.this)
        operand = self.bind(node.this)
        if t.is_unsigned_integer(operand.type):
            message = f"{node.sql()}: {operand.type} has no negative numbers; cast it"
            raise ArgumentError(message)
        kind = self._asked(node.sql(), OPERATORS["NEGATE"], (operand,))
        return Call("NEGATE", (operand,), kind)

    # --- calls ------------------------------------------------------------------------------------

    def _function(self, node: exp.Anonymous) -> Expression:
        name = str(node.this).lower()
        arguments = tuple(map(self.bind, node.expressions))
        if name == "get_field" and len(arguments) == 2:
            return _field(*arguments) or self._call(name, arguments)
        return self._call(name, arguments)

    def _now(self, _: exp.Expr) -> Expression:
        return self._call("now", ())

    def _today(self, _: exp.Expr) -> Expression:
        return self._call("today", ())

    def _concat(self, node: exp.DPipe) -> Expression:
        return self._call("||", (self.bind(node.this), self.bind(node.expression)))

    def _extract(self, node: exp.Extract) -> Expression:
        part = Literal(pa.scalar(node.this.name))
        return self._call("date_part", (part, self.bind(node.expression)))

    def _call(self, name: str, arguments: tuple[Expression, ...]) -> Expression:
        function = find_function(name)
        if function.takes_rows:
            if arguments:
                message = f"{name} does not take {len(arguments)} arguments"
                raise ArgumentError(message)
            return Call(name, (), function.run(0).type)
        most = function.most if function.most is not None else MOST_ARGUMENTS
        if len(arguments) > MOST_ARGUMENTS:
            message = f"{name} of {len(arguments)} arguments; at most {MOST_ARGUMENTS} are taken"
            raise ArgumentError(message)
        if not function.least <= len(arguments) <= most:
            message = f"{name} does not take {len(arguments)} arguments"
            raise ArgumentError(message)
        sides = arguments if function.is_mixed else one_type(arguments, fits_literals=False)
        kind = self._asked(name, function.run, sides)
        values = [each.value for each in sides if isinstance(each, Literal)]
        if name == "arrow_cast" and len(values) == len(sides):
            return _computed(name, function.run, values)
        return Call(name, sides, kind)

    def _asked(
        self, what: str, run: Callable[..., Any], arguments: tuple[Expression, ...]
    ) -> pa.DataType:
        try:
            return type_of(run, arguments)
        except (pa.ArrowException, TypeError, ValueError, AttributeError, OverflowError) as error:
            types = ", ".join(str(each.type) for each in arguments)
            message = f"{what} does not take ({types}): {error}"
            raise ArgumentError(message) from error

    def _cast(self, node: exp.Cast) -> Expression:
        operand = self.bind(node.this)
        gives_null = isinstance(node, exp.TryCast)
        kind = sql_type(node.to)
        if isinstance(operand, Literal):
            try:
                return Literal(cast(operand.value, kind))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                if gives_null:
                    return Literal(pa.scalar(None, kind))
                message = f"{node.this.sql()} is no {kind}: {error}"
                raise ArgumentError(message) from error
        self._asked(node.sql(), lambda values: cast(values, kind), (operand,))
        return Cast(operand, kind, gives_null)

    def _case(self, node: exp.Case) -> Expression:
        subject = self.bind(node.this) if node.this is not None else None
        conditions = [self._branch(subject, each.this) for each in node.args["ifs"]]
        default = node.args.get("default")
        values = [self.bind(each.args["true"]) for each in node.args["ifs"]]
        otherwise = self.bind(default) if default is not None else NULL
        *typed, last = one_type([*values, otherwise])
        return Case(tuple(zip(conditions, typed, strict=True)), last, last.type)

    def _branch(self, subject: Expression | None, node: exp.Expr) -> Expression:
        if subject is None:
            return self._condition(node)
        return self.compare("=", subject, self.bind(node))

    def _parentheses(self, node: exp.Paren) -> Expression:
        return self.bind(node.this)


def _computed(name: str, run: Callable[..., Any], values: Sequence[pa.Scalar]) -> Literal:
    """Return what a function gives for literals, so that it can be compared with bounds and keys."""
    try:
        return Literal(run(*values))
    except (pa.ArrowException, ValueError, OverflowError) as error:
        message = f"{name} of {', '.join(map(str, values))} cannot be computed: {error}"
        raise ArgumentError(message) from error


def as_condition(found: Expression) -> Expression:
    """Return what an expression tells as a condition: regexp_match, whether there is a match."""
    if isinstance(found, Call) and found.function == "regexp_match":
        return Call(
            "IS TRUE", (replace(found, function="regexp_like", type=pa.bool_()),), pa.bool_()
        )
    return found


# --- pieces ---------------------------------------------------------------------------------------


def _one_of(values: Expression, items: Sequence[Expression]) -> Expression:
    """Return whether a value is one of others, each compared with it in a type of its own."""
    typed = [comparable(values, item) for item in items]
    literals = [item.value for _, item in typed if isinstance(item, Literal)]
    is_same = len(literals) == len(typed) and all(value == values for value, _ in typed)
    if is_same and not t.is_nested(values.type):
        return is_among(values, pa.array(literals, values.type))
    return Call("OR", tuple(Call("=", pair, pa.bool_()) for pair in typed), pa.bool_())


def _field(whole: Expression, name: Expression) -> Expression | None:
    """Return a field of a column; None of anything else."""
    if isinstance(whole, Column) and isinstance(name, Literal) and is_text(name.type):
        return field_of(whole, str(name.value.as_py()))
    return None


def _operands(
    left: Expression, right: Expression, *, fits_literals: bool
) -> tuple[Expression, ...]:
    """Return both sides of an arithmetic operator in types that go together."""
    mixed = t.is_decimal(left.type) != t.is_decimal(right.type)
    if mixed and all(t.is_integer(x.type) or t.is_decimal(x.type) for x in (left, right)):
        if fits_literals and (isinstance(left, Literal) or isinstance(right, Literal)):
            return one_type([left, right])
        return tuple(cast_to(each, as_decimal(each.type)) for each in (left, right))
    if t.is_decimal(left.type) and t.is_decimal(right.type):
        return left, right
    if t.is_floating(left.type) != t.is_floating(right.type):
        fits_literals = isinstance(left if t.is_floating(right.type) else right, Literal)
    return one_type([left, right], fits_literals=fits_literals)


def _flat(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    """Return the operands of a chain of ANDs or ORs, however long, in order."""
    found: list[exp.Expr] = []
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, kind):
            waiting += [each.args["expression"], each.args["this"]]
        else:
            found.append(each)
    return found


_COMPARES: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
}
_COMPUTES: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
}
_BY_SYNTAX: dict[type[exp.Expr], str] = {
    exp.Column: "_column",
    exp.Bracket: "_bracket",
    exp.Dot: "_dot",
    exp.Literal: "_literal",
    exp.Placeholder: "_placeholder",
    exp.Boolean: "_boolean",
    exp.Null: "_null",
    exp.HexString: "_bytes",
    exp.Array: "_array",
    exp.And: "_and",
    exp.Or: "_or",
    exp.Not: "_not",
    exp.Is: "_is",
    exp.Between: "_between",
    exp.In: "_in",
    exp.Like: "_like",
    exp.ILike: "_like",
    exp.Escape: "_escape",
    exp.Neg: "_negative",
    exp.Interval: "_interval",
    exp.Anonymous: "_function",
    exp.CurrentTimestamp: "_now",
    exp.CurrentDate: "_today",
    exp.DPipe: "_concat",
    exp.Extract: "_extract",
    exp.Cast: "_cast",
    exp.TryCast: "_cast",
    exp.Case: "_case",
    exp.Paren: "_parentheses",
    **dict.fromkeys(_COMPARES, "_binary"),
    **dict.fromkeys(_COMPUTES, "_arithmetic"),
}
