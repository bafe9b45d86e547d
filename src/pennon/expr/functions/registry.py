"""The functions that SQL text may call.

A function takes arrays and scalars (literals stay scalars: patterns and positions) and returns
either.  What it returns for empty arrays tells its type, so nothing is declared twice.  Names and
meaning are those of the reference.

Source: measured on pylance 14.0.2.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pennon.core.near_names import near_names
from pennon.errors import ArgumentError
from pennon.expr.cast import Datum
from pennon.expr.functions.datetime import TIMES
from pennon.expr.functions.encoding import CODES
from pennon.expr.functions.function import Function, NullRule
from pennon.expr.functions.json import JSON
from pennon.expr.functions.list import LISTS
from pennon.expr.functions.list_make import NEW_LISTS
from pennon.expr.functions.list_order import ITEMS
from pennon.expr.functions.math import ALIKE, NUMBERS
from pennon.expr.functions.regex import REGEXPS
from pennon.expr.functions.string import TEXTS
from pennon.expr.functions.string_parts import PARTS
from pennon.expr.functions.types import TYPES
from pennon.expr.rowwise import Entry, with_halves


def find_function(name: str) -> Function:
    """Return a function.  Raises ArgumentError that names those with names near it."""
    function = FUNCTIONS.get(name)
    if function is None:
        near = near_names(name, FUNCTIONS, 4)
        there = f"; near it are {', '.join(near)}" if near else ""
        message = f"there is no function {name!r}{there}"
        raise ArgumentError(message)
    return function


def _null_if(values: Datum, other: Datum) -> Datum:
    same = pc.fill_null(pc.equal(values, other), False)  # noqa: FBT003 - Arrow's own order
    return pc.if_else(same, pa.scalar(None, values.type), values)


def _nvl2(values: Datum, present: Datum, absent: Datum) -> Datum:
    return pc.if_else(pc.is_valid(values), present, absent)


def _random(rows: int) -> pa.Array:
    return pa.array([random.random() for _ in range(rows)], pa.float64())  # noqa: S311 - no secrets


def _uuids(rows: int) -> pa.Array:
    return pa.array([str(uuid.uuid4()) for _ in range(rows)], pa.string())


def _functions(table: Mapping[str, Entry | Function], *, is_mixed: bool) -> dict[str, Function]:
    return {
        name: replace(entry, is_mixed=is_mixed)
        if isinstance(entry, Function)
        else Function(*entry, is_mixed=is_mixed)
        for name, entry in table.items()
    }


_FIRST: Final = Function(pc.coalesce, 2, 2, null_rule=NullRule.ALL)
_CHOICES: Final[Mapping[str, Entry | Function]] = {
    "coalesce": Function(pc.coalesce, 1, None, null_rule=NullRule.ALL),
    "nvl": _FIRST,
    "ifnull": _FIRST,
    "nullif": (with_halves(_null_if), 2, 2),
}
_MIXED: Final[Mapping[str, Entry | Function]] = {
    **NUMBERS,
    **TEXTS,
    **PARTS,
    **CODES,
    **REGEXPS,
    **TIMES,
    **LISTS,
    **ITEMS,
    **JSON,
    **NEW_LISTS,
    **TYPES,
    "nvl2": (_nvl2, 3, 3),
    "is_valid": Function(pc.is_valid, null_rule=NullRule.NEVER),
}

FUNCTIONS: Final[Mapping[str, Function]] = {
    **_functions(_MIXED, is_mixed=True),
    **_functions({**ALIKE, **_CHOICES}, is_mixed=False),
    "random": Function(_random, 0, 0, takes_rows=True, is_constant=False),
    "uuid": Function(_uuids, 0, 0, takes_rows=True, is_constant=False),
}
