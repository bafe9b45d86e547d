"""Index questions in plans: in pylance's words, if it has some."""

from __future__ import annotations

from functools import reduce
from typing import Any, Final

from pyarrow import types as t

from pennon.expr.tree import Call, Column, Expression, Literal, children

_HAS: Final = frozenset({"array_has", "array_contains", "list_has", "list_contains"})
"""Functions that ask a list for one item: pylance shows a list of that one."""


def shown(node: Expression, by: str, json_path: str | None) -> str:
    """Return what is asked, as plans show it."""
    if isinstance(node, Call) and node.function in {"AND", "OR"} and not _is_range(node):
        parts = [shown(each, by, json_path) for each in node.arguments]
        return reduce(f"{node.function}({{}},{{}})".format, parts)
    if isinstance(node, Call) and node.function == "NOT":
        return f"NOT({shown(node.arguments[0], by, json_path)})"
    text = _text(node)
    return f"[{text}]{by}" if json_path is None else f"[Json({text}->{json_path})]{by}"


def _is_range(node: Call) -> bool:
    """Return whether an AND says between which values a column lies."""
    sides = [each for each in node.arguments if isinstance(each, Call) and len(each.arguments) == 2]
    return (
        node.function == "AND"
        and len(sides) == len(node.arguments) == 2
        and sides[0].function in {">", ">="}
        and sides[1].function in {"<", "<="}
        and sides[0].arguments[0] == sides[1].arguments[0]
    )


def _text(node: Expression) -> str:
    if isinstance(node, Call) and _is_range(node):
        return " && ".join(map(_text, node.arguments))
    if isinstance(node, Column):
        return ".".join(node.path)
    if isinstance(node, Literal):
        return _value_text(node.value)
    if not isinstance(node, Call):
        return f"{type(node).__name__}({', '.join(map(_text, children(node)))})"
    arguments = [_text(each) for each in node.arguments]
    if node.function.startswith("IS ") and len(arguments) == 1:
        return f"{arguments[0]} {node.function}"
    if node.function == "like" and len(arguments) == 2:
        return f"{arguments[0]} LIKE '{arguments[1]}'"
    if (not node.function[0].isalpha() or node.function == "IN") and len(arguments) == 2:
        return f"{arguments[0]} {node.function} {arguments[1]}"
    if node.function in _HAS and isinstance(node.arguments[1], Literal):
        return f"array_has_any({arguments[0]}, List([{arguments[1]}]))"
    return f"{node.function}({', '.join(map(_argument, node.arguments))})"


def _argument(node: Expression) -> str:
    """Return an argument of a function, literals with their types."""
    if not isinstance(node, Literal) or not node.value.is_valid:
        return _text(node)
    if t.is_list(node.type) or t.is_large_list(node.type):
        return f"List({_text(node)})"
    if t.is_string(node.type) or t.is_large_string(node.type):
        return f'Utf8("{_text(node)}")'
    return _text(node)


def _value_text(value: Any) -> str:
    found = value.as_py()
    if isinstance(found, list):
        return f"[{','.join(map(str, found[:10]))}{',…' if len(found) > 10 else ''}]"
    if isinstance(found, bytes):
        return f"{found[:10].hex()}{'...' if len(found) > 10 else ''}"
    return str(found)
