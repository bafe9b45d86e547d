"""Finding what names in SQL text stand for."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyarrow import types as t
from sqlglot import exp

from pennon.core.near_names import did_you_mean
from pennon.errors import ArgumentError
from pennon.expr.tree import Column
from pennon.expr.types import BY_NAME, TIMESTAMP_UNITS, plain


def find_name(name: str, names: Sequence[str], what: str) -> str:
    """Return the name as it is spelled; case matters only where two names differ in nothing else.

    Raises ArgumentError that lists the names there are.
    """
    if name in names:
        return name
    alike = [each for each in names if each.lower() == name.lower()]
    if len(alike) == 1:
        return alike[0]
    there = f"; there are {', '.join(names)}"
    hint = did_you_mean(name, names) if what == "column" else ""
    message = f"there is no {what} {name!r}{hint or there}"
    raise ArgumentError(message)


def field_of(whole: Column, name: str) -> Column:
    """Return a field of a struct.  Raises ArgumentError if there is none."""
    if not t.is_struct(whole.type):
        message = f"{'.'.join(whole.path)} is {whole.type} and has no field {name!r}"
        raise ArgumentError(message)
    names = [field.name for field in whole.type]
    found = find_name(name, names, f"field in {'.'.join(whole.path)}:")
    return Column((*whole.path, found), plain(whole.type.field(found).type))


def sql_type(node: exp.DataType) -> pa.DataType:
    """Return the Arrow type that a type in SQL means.  Raises ArgumentError if there is none."""
    name = node.this.name if hasattr(node.this, "name") else str(node.this)
    numbers = [int(each.name) for each in node.expressions if each.name.isdigit()]
    if name == "DECIMAL":
        digits, scale = [*numbers, *(38, 10)[len(numbers) :]][:2]
        if 1 <= digits <= 38 and 0 <= scale <= digits:
            return pa.decimal128(digits, scale)
    elif name in ("TIMESTAMP", "DATETIME") and numbers and numbers[0] in TIMESTAMP_UNITS:
        return pa.timestamp(TIMESTAMP_UNITS[numbers[0]])
    elif name in BY_NAME and not node.expressions:
        return BY_NAME[name]
    message = f"there is no type {node.sql()}"
    raise ArgumentError(message)
