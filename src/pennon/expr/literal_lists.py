"""Long lists of literals in SQL text, taken out before it is parsed and read at once.

Programs that know their keys write ``id IN (1, 2, …)`` or ``id = 1 OR id = 2 …`` with very many of
them.  A parser makes an object of each; here the list becomes one Arrow array, and the text keeps a
placeholder for it:

    id IN (1, 2, … 300000) AND b > 0        id IN (:pennon_list_0) AND b > 0

What is not plainly such a list is left to the parser, which understands it just the same.

Programs that ask for one key after the other write the same text with other literals.  Of comparisons, and ANDs of
them, the literals are taken out, too: so the parser sees but one text, ``id = :pennon_value_0``.
"""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa

FEWEST_LITERALS: Final = 64
"""A list of fewer is parsed as it stands: that takes no longer."""
LONGEST_COMPARISONS: Final = 1000
"""Of a longer text literals are left where they are."""
_NAME: Final = "pennon_list_"
_VALUE: Final = "pennon_value_"
_INTEGER: Final = r"-?[0-9]++"
_TEXT: Final = r"'(?:[^']++|'')*+'"
_COLUMN: Final = r"(?:[A-Za-z_]\w*+|`[^`]++`)(?:\.(?:[A-Za-z_]\w*+|`[^`]++`))*+"


def _items(literal: str) -> str:
    return rf"{literal}(?:\s*+,\s*+{literal}){{{FEWEST_LITERALS - 1},}}+"


def _equals(literal: str, name: str) -> str:
    """Match ``name = literal OR name = literal …``, where no operator binds its ends tighter."""
    another = rf"\s++OR\s++(?-i:(?P={name}))\s*+=\s*+{literal}"
    return rf"(?P<{name}>{_COLUMN})\s*+=\s*+{literal}(?:{another}){{{FEWEST_LITERALS - 1},}}"


_PIECES: Final = re.compile(
    rf"""
    \bIN\s*+\(\s*+(?:(?P<integers>{_items(_INTEGER)})|(?P<texts>{_items(_TEXT)}))\s*+\)
    | (?P<before>\A\s*+|\(\s*+|\bOR\s++)
      (?:(?P<integer_terms>{_equals(_INTEGER, "a")})|(?P<text_terms>{_equals(_TEXT, "b")}))
      (?=\s*+(?:\Z|\)|\bOR\b))
    | {_TEXT} | `[^`]*+`
    """,
    re.IGNORECASE | re.VERBOSE,
)
_ALONE: Final = re.compile(_TEXT)
_TERM: Final = {
    "integer_terms": re.compile(rf"{_COLUMN}\s*+=\s*+({_INTEGER})"),
    "text_terms": re.compile(rf"{_COLUMN}\s*+=\s*+({_TEXT})"),
}
_COMPARISON: Final = (
    rf"({_COLUMN}\s*+(?:<=|>=|<>|!=|=|<|>)\s*+)({_TEXT}|(?:(?<=\s)-)?+[0-9]++(?![\w.]))"
)
_ONE: Final = re.compile(_COMPARISON)
_SOME: Final = re.compile(rf"\s*+{_COMPARISON}(?:\s++AND\s++{_COMPARISON})*+\s*+", re.IGNORECASE)


def take_out_values(text: str) -> tuple[str, list[str]]:
    """Return SQL text of comparisons with placeholders for their literals, and these as they were written.

    Any other text comes back as it is, without literals.
    """
    if len(text) > LONGEST_COMPARISONS or '"' in text or _VALUE in text:
        return text, []
    if _SOME.fullmatch(text) is None:
        return text, []
    found: list[str] = []

    def replace(match: re.Match[str]) -> str:
        found.append(match[2])
        return f"{match[1]}:{_VALUE}{len(found) - 1}"

    return _ONE.sub(replace, text), found


def place_of(name: str) -> int:
    """Return the number of the literal that a placeholder stands for; -1 if it stands for none."""
    number = name.removeprefix(_VALUE)
    return int(number) if number != name and number.isdecimal() else -1


def text_of(quoted: str) -> str:
    """Return the text that is written within quotes."""
    return quoted[1:-1].replace("''", "'")


def take_out_lists(text: str) -> tuple[str, dict[str, pa.Array]]:
    """Return SQL text with a placeholder for each long list, and the lists by the placeholders' names."""
    # Double quotes and comments follow rules of their own, which are the parser's.
    if len(text) < 2 * FEWEST_LITERALS or any(sign in text for sign in ('"', "--", "/*", _NAME)):
        return text, {}
    lists: dict[str, pa.Array] = {}

    def keep(items: pa.Array) -> str:
        name = f"{_NAME}{len(lists)}"
        lists[name] = items
        return f"IN (:{name})"

    def replace(match: re.Match[str]) -> str:
        items = _array(match)
        if items is None:
            return match.group()
        column = match["a"] or match["b"]
        return f"{match['before']}{column} {keep(items)}" if column else keep(items)

    return _PIECES.sub(replace, text), lists


def _array(match: re.Match[str]) -> pa.Array | None:
    """Return the literals of a list; None if this is none, or its numbers do not fit 64 bits."""
    try:
        if match["integers"]:
            return pa.array(list(map(int, match["integers"].split(","))), pa.int64())
        if match["integer_terms"]:
            found = _TERM["integer_terms"].findall(match["integer_terms"])
            return pa.array(list(map(int, found)), pa.int64())
    except (OverflowError, pa.ArrowInvalid):
        return None
    if match["texts"]:
        return _texts(_ALONE.findall(match["texts"]))
    if match["text_terms"]:
        return _texts(_TERM["text_terms"].findall(match["text_terms"]))
    return None


def _texts(quoted: list[str]) -> pa.Array:
    return pa.array(list(map(text_of, quoted)), pa.string())
