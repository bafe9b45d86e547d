"""From pyarrow's expressions to ours.

pyarrow shows an expression as text only, for people.  But an expression pickles: as an Arrow file
whose first row has the literals and options, and whose metadata tell, in order, what the calls are:

::

    (a > 5) and is_valid(s)         call and_kleene, call greater, field_ref a, literal 0, end greater,
                                    call is_valid, field_ref s, end is_valid, end and_kleene

It means what it would in SQL, which is what Polars expects and what the reference makes of it: NaN
is above all numbers, and whether NULL is among values is not known.  In pyarrow itself NaN has no
order, and NULL is not among values.  What is not understood is left to pyarrow: `from_arrow`
returns None.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc
from pyarrow import types as t

from pennon.errors import ArgumentError
from pennon.expr.fit import one_type
from pennon.expr.tree import Call, Column, Expression, Literal, is_among
from pennon.expr.types import is_text, plain

_COMPARES: Final = {
    "equal": "=",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_LOGIC: Final = {"and_kleene": "AND", "or_kleene": "OR", "invert": "NOT"}
_PATTERNS: Final = {
    "starts_with": "starts_with",
    "ends_with": "ends_with",
    "match_substring": "contains",
    "match_like": "like",
}


class _UnknownError(Exception):
    """An expression, or a part of it, that is left to pyarrow."""


def from_arrow(expression: pc.Expression, schema: pa.Schema) -> Expression | None:
    """Return the condition that a pyarrow expression is for rows of ``schema``; None: not known."""
    try:
        found = _Reader(*_pieces(expression), schema).read()
    except (_UnknownError, ArgumentError, pa.ArrowException, RecursionError):
        return None
    return found if found.type == pa.bool_() else None


def _pieces(expression: pc.Expression) -> tuple[list[tuple[str, str]], pa.RecordBatch]:
    """Return what an expression pickles as: its steps in order, and a row of values."""
    _, state = expression.__reduce__()[:2]
    with ipc.open_file(state[0]) as file:
        return list(_metadata(file.schema)), file.get_batch(0)


class _ArrowSchema(ctypes.Structure):
    """The beginning of a schema in Arrow's C interface."""

    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
    )


def _metadata(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """Yield the metadata of a schema with repeated keys, which pyarrow shows once only."""
    capsule = schema.__arrow_c_schema__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    address = _ArrowSchema.from_address(pointer(capsule, b"arrow_schema") or 0).metadata
    if address is None:
        return
    (count,) = struct.unpack("=i", ctypes.string_at(address, 4))
    at = address + 4
    for _ in range(count):
        key, at = _text(at)
        value, at = _text(at)
        yield key, value


def _text(address: int) -> tuple[str, int]:
    (size,) = struct.unpack("=i", ctypes.string_at(address, 4))
    return ctypes.string_at(address + 4, size).decode(), address + 4 + size


@dataclass(slots=True)
class _Reader:
    """Reads the steps of an expression one by one."""

    steps: Sequence[tuple[str, str]]
    values: pa.RecordBatch
    schema: pa.Schema
    at: int = 0

    def read(self) -> Expression:
        """Return the expression that begins at the current step."""
        key, value = self._next()
        if key == "literal":
            return Literal(self.values.column(int(value))[0])
        if key == "field_ref":
            return self._column([value])
        if key == "nested_field_ref":
            return self._column([self._name() for _ in range(int(value))])
        if key == "call":
            return self._call(value)
        raise _UnknownError

    def _next(self) -> tuple[str, str]:
        if self.at >= len(self.steps):
            raise _UnknownError
        self.at += 1
        return self.steps[self.at - 1]

    def _name(self) -> str:
        key, value = self._next()
        if key != "field_ref":
            raise _UnknownError
        return value

    def _column(self, names: list[str]) -> Expression:
        kind: Any = pa.struct(list(self.schema))
        for name in names:
            if not t.is_struct(kind) or kind.get_field_index(name) < 0:
                raise _UnknownError
            kind = plain(kind.field(name).type)
        return Column(tuple(names), kind)

    def _call(self, name: str) -> Expression:
        arguments: list[Expression] = []
        options: Mapping[str, Any] = {}
        while self.steps[self.at : self.at + 1] not in ([("end", name)], []):
            if self.steps[self.at][0] == "options":
                options = self.values.column(int(self._next()[1]))[0].as_py()
            else:
                arguments.append(self.read())
        self._next()
        return _call_of(name, arguments, options)


def _call_of(name: str, arguments: list[Expression], options: Mapping[str, Any]) -> Expression:
    make = _CALLS.get(name)
    if make is not None:
        return make(arguments, options)
    if name in _COMPARES and len(arguments) == 2:
        return _compare(_COMPARES[name], *arguments)
    if name in _LOGIC and all(each.type == pa.bool_() for each in arguments):
        return Call(_LOGIC[name], tuple(arguments), pa.bool_())
    if name in _PATTERNS and not options.get("ignore_case"):
        (values,) = arguments
        if is_text(values.type):
            wanted = Literal(pa.scalar(str(options["pattern"])))
            return Call(_PATTERNS[name], (values, wanted), pa.bool_())
    raise _UnknownError


# --- comparison -----------------------------------------------------------------------------------


def _compare(name: str, left: Expression, right: Expression) -> Expression:
    _check_alike(left, right)
    return Call(name, one_type([left, right]), pa.bool_())


def _check_alike(left: Expression, right: Expression) -> None:
    """Raise unless both libraries compare such values in the same way."""
    one, other = left.type, right.type
    if one == other and not t.is_nested(one):
        return
    if any(both(one) and both(other) for both in (t.is_integer, is_text, t.is_floating)):
        return
    if t.is_timestamp(one) and t.is_timestamp(other) and bool(one.tz) == bool(other.tz):
        return
    for values, literal in ((left, right), (right, left)):
        is_whole = isinstance(literal, Literal) and t.is_integer(literal.type)
        if is_whole and t.is_floating(values.type):
            return
    raise _UnknownError


# --- other calls ----------------------------------------------------------------------------------


def _is_null(arguments: list[Expression], options: Mapping[str, Any]) -> Expression:
    found = Call("IS NULL", tuple(arguments), pa.bool_())
    if options.get("nan_is_null") and t.is_floating(arguments[0].type):
        return Call("OR", (found, _is_nan(arguments, {})), pa.bool_())
    return found


def _is_valid(arguments: list[Expression], _: Mapping[str, Any]) -> Expression:
    return Call("NOT", (_is_null(arguments, {}),), pa.bool_())


def _is_nan(arguments: list[Expression], _: Mapping[str, Any]) -> Expression:
    if not t.is_floating(arguments[0].type):
        raise _UnknownError
    return Call("isnan", tuple(arguments), pa.bool_())


def _is_in(arguments: list[Expression], options: Mapping[str, Any]) -> Expression:
    """Return whether a value is among others; NULL may be one of them, and is found as such."""
    (values,) = arguments
    items = options["value_set"]
    if options.get("null_matching_behavior") not in (0, "MATCH"):
        raise _UnknownError
    known = [pa.scalar(each, values.type) for each in items if each is not None]
    found = is_among(values, pa.array(known, values.type))
    if None not in items:
        return found
    is_true = Call("IS TRUE", (found,), pa.bool_())
    return Call("OR", (is_true, _is_null(arguments, {})), pa.bool_())


def _if_else(arguments: list[Expression], _: Mapping[str, Any]) -> Expression:
    """Return what DuckDB means by ``if_else(is_valid(x), is_in(x, …), NULL)``: SQL's IN."""
    condition, found, otherwise = arguments
    if not isinstance(otherwise, Literal) or otherwise.value.is_valid:
        raise _UnknownError
    if not isinstance(found, Call) or found.function != "IN":
        raise _UnknownError
    if condition != _is_valid([found.arguments[0]], {}):
        raise _UnknownError
    return found


def _arithmetic(name: str) -> Callable[[list[Expression], Mapping[str, Any]], Expression]:
    """Return what makes a call of an operator of floats; whole numbers overflow in pyarrow."""

    def make(arguments: list[Expression], _: Mapping[str, Any]) -> Expression:
        if not any(t.is_floating(each.type) for each in arguments):
            raise _UnknownError
        sides = one_type(arguments)
        if not t.is_floating(sides[0].type):
            raise _UnknownError
        return Call(name, sides, sides[0].type)

    return make


_CALLS: Final[Mapping[str, Callable[[list[Expression], Mapping[str, Any]], Expression]]] = {
    "is_null": _is_null,
    "is_nan": _is_nan,
    "add_checked": _arithmetic("+"),
    "subtract_checked": _arithmetic("-"),
    "multiply_checked": _arithmetic("*"),
    "is_valid": _is_valid,
    "is_in": _is_in,
    "if_else": _if_else,
}
