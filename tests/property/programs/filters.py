"""Filters and expressions of random programs: trees, their SQL, and their values for a row."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from tests.property.programs.kinds import INTEGERS, KINDS

Tree = tuple[Any, ...]
Row = Mapping[str, Any]
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}
TESTS: dict[str, Callable[..., bool]] = {
    "between": lambda value, low, high: low <= value <= high,
    "contains": lambda value, text: text in value,
    "starts": lambda value, text: value.startswith(text),
    "has": lambda value, item: item in value,
    "has any": lambda value, items: not set(items).isdisjoint(value),
    "has all": lambda value, items: set(items) <= set(value),
}
"""Tests that an index may answer, (word, column, kind, ...), of a value that is there."""


def random_filter(
    rng: Random, columns: Sequence[tuple[str, str]], version: str, depth: int = 2
) -> Tree:
    """Return a filter over columns (name, kind)."""
    choice = rng.random()
    if depth and choice < 0.25:
        sides = [random_filter(rng, columns, version, depth - 1) for _ in range(2)]
        return (rng.choice(["and", "or"]), *sides)
    if depth and choice < 0.32:
        return ("not", random_filter(rng, columns, version, depth - 1))
    if choice < 0.42:
        return ("mod", "k", rng.randint(2, 5), rng.randint(0, 1))
    name, kind = rng.choice(columns)
    write = KINDS[kind].sql
    if write is None or choice < 0.55:
        return (rng.choice(["null", "not null"]), name)
    values = [KINDS[kind].make(rng, version) for _ in range(3)]
    if name == "k":
        values = [rng.randint(0, 120) for _ in range(3)]
    if choice < 0.65 and kind != "bool":
        return ("in", name, kind, tuple(values))
    if choice < 0.7 and kind == "string":
        return ("like", name, rng.choice(["a", "Z", "it"]))
    signs = ["=", "!="] if kind == "bool" else list(COMPARE)
    return ("compare", name, rng.choice(signs), kind, values[0])


def columns_of(tree: Tree) -> set[tuple[str, str | None]]:
    """Return the columns that a filter names, with the kind that it takes them for."""
    match tree:
        case ("and" | "or", left, right):
            return columns_of(left) | columns_of(right)
        case ("not", inner):
            return columns_of(inner)
        case ("mod" | "null" | "not null", name, *_):
            return {(name, None)}
        case ("in", name, kind, _) | ("compare", name, _, kind, _):
            return {(name, kind)}
        case (word, name, kind, *_) if word in TESTS:
            return {(name, kind)}
        case ("like", name, _):
            return {(name, "string")}
    return set()


def to_sql(tree: Tree, prefix: str = "") -> str:
    """Return a filter as SQL; ``prefix`` stands before the names of columns."""
    match tree:
        case ("and" | "or" as word, left, right):
            return f"({to_sql(left, prefix)} {word.upper()} {to_sql(right, prefix)})"
        case ("not", inner):
            return f"NOT ({to_sql(inner, prefix)})"
        case ("mod", name, by, rest):
            return f"{prefix}{name} % {by} = {rest}"
        case ("null" | "not null" as word, name):
            return f"{prefix}{name} IS {word.upper()}"
        case ("in", name, kind, values):
            written = ", ".join(_written(kind, value) for value in values)
            return f"{prefix}{name} IN ({written})"
        case ("like", name, start):
            return f"{prefix}{name} LIKE '{start}%'"
        case ("compare", name, sign, kind, value):
            return f"{prefix}{name} {sign} {_written(kind, value)}"
        case (word, name, kind, *rest) if word in TESTS:
            return _test_sql(word, prefix + name, kind, rest)
        case ("constant", value):
            return "true" if value else "false"
    raise ValueError(tree)


def holds(tree: Tree, row: Row) -> bool | None:
    """Return what a filter is for a row: true, false or NULL."""
    match tree:
        case ("and" | "or" as word, left, right):
            return _joined(word == "and", [holds(left, row), holds(right, row)])
        case ("not", inner):
            found = holds(inner, row)
            return None if found is None else not found
        case ("mod", name, by, rest):
            return None if row[name] is None else row[name] % by == rest
        case ("null" | "not null" as word, name):
            return (row[name] is None) == (word == "null")
        case ("constant", value):
            return bool(value)
    value = row[tree[1]]
    return None if value is None else _test(tree, value)


def _test(tree: Tree, value: Any) -> bool:
    """Return what a test is of a value that is not NULL."""
    match tree:
        case ("in", _, _, values):
            return value in values
        case ("like", _, start):
            return bool(value.startswith(start))
        case ("compare", _, sign, _, other):
            return COMPARE[sign](value, other)
        case (word, _, _, *rest) if word in TESTS:
            return TESTS[word](value, *rest)
    raise ValueError(tree)


def _joined(is_and: bool, sides: list[bool | None]) -> bool | None:
    decisive = not is_and
    if decisive in sides:
        return decisive
    return None if None in sides else not decisive


def _written(kind: str, value: Any) -> str:
    write = KINDS[kind].sql
    assert write is not None
    return write(value)


def _test_sql(word: str, column: str, kind: str, rest: Sequence[Any]) -> str:
    match word:
        case "between":
            low, high = (_written(kind, value) for value in rest)
            return f"{column} BETWEEN {low} AND {high}"
        case "starts":
            return f"{column} LIKE {_written(kind, rest[0] + '%')}"
        case "contains":
            return f"contains({column}, {_written(kind, rest[0])})"
        case "has":
            return f"array_has({column}, {_literal(rest[0])})"
    written = ", ".join(map(_literal, rest[0]))
    return f"array_{word.replace(' ', '_')}({column}, [{written}])"


def _literal(value: Any) -> str:
    return KINDS["string"].sql(value) if isinstance(value, str) else repr(value)  # type: ignore[misc]


# --- expressions ----------------------------------------------------------------------------------


def random_expression(
    rng: Random, columns: Sequence[tuple[str, str]], version: str
) -> tuple[Tree, str]:
    """Return an expression over columns, and the kind of what it makes."""
    name, kind = rng.choice(columns)
    choices: list[tuple[Tree, str]] = [
        (("plus", "k", rng.randint(1, 9)), "int64"),
        (("literal", "int64", rng.randint(0, 9)), "int64"),
        (("literal", "string", rng.choice("pq")), "string"),
        (("literal", "bool", rng.random() < 0.5), "bool"),
        (("column", name), kind),
        (("is null", name), "bool"),
    ]
    return rng.choice(choices)


def random_assignment(
    rng: Random, columns: Sequence[tuple[str, str]], target: tuple[str, str], *, null: bool
) -> Tree | None:
    """Return an expression that a column may be set to, None where there is none."""
    name, kind = target
    choices: list[Tree] = [("column", n) for n, k in columns if k == kind and n != "k"]
    if null:
        choices.append(("literal", kind, None))
    if KINDS[kind].sql is not None:
        choices += [("literal", kind, KINDS[kind].make(rng, "0.1"))] * 2
    if kind in INTEGERS[1:]:
        choices += [("plus", name, 1), ("rest", "k", 7)]
    if kind == "string":
        choices.append(("text", "k"))
    return rng.choice(choices) if choices else None


def names_in(tree: Tree) -> set[str]:
    """Return the columns that an expression names."""
    return set() if tree[0] == "literal" else {tree[1]}


def expression_sql(tree: Tree) -> str:
    """Return an expression as SQL."""
    match tree:
        case ("plus", name, number):
            return f"{name} + {number}"
        case ("rest", name, number):
            return f"{name} % {number}"
        case ("literal", _, None):
            return "NULL"
        case ("literal", kind, value):
            return _written(kind, value)
        case ("column", name):
            return str(name)
        case ("is null", name):
            return f"{name} IS NULL"
        case ("text", name):
            return f"CAST({name} AS STRING)"
    raise ValueError(tree)


def evaluate(tree: Tree, row: Row) -> Any:
    """Return the value of an expression for a row."""
    match tree:
        case ("literal", _, value):
            return value
        case ("is null", name):
            return row[name] is None
    value = row[tree[1]]
    if value is None:
        return None
    match tree:
        case ("plus", _, number):
            return value + number
        case ("rest", _, number):
            return value % number
        case ("column", _):
            return value
        case ("text", _):
            return str(value)
    raise ValueError(tree)
