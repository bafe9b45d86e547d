"""Parameters of statements: a value becomes a literal of its type, which can be nothing but a literal."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from pennon.errors import ArgumentError
from pennon.spark.statements.words import Splice, Statement, Word, spliced

_INT: Final = 1 << 31
_LONG: Final = 1 << 63
_MOST_DIGITS: Final = 38


def literal(value: Any, name: str = "value") -> str:
    """Return a value as a literal of Spark's SQL.

    Text with quotes, backslashes or signs that do not print is written by its bytes, so that it means the same
    whatever the session's settings are.  Raises ArgumentError for a value of another type, or out of range.

    >>> literal("it's"), literal(-3), literal([1.5])
    ("CAST(X'69742773' AS STRING)", '(-3)', 'array(1.5D)')
    """
    if value is None:
        return "NULL"
    for kinds, write in _WRITERS:
        if isinstance(value, kinds):
            return write(value, name)
    if hasattr(value, "tolist"):
        return literal(value.tolist(), name)  # numpy's numbers and arrays
    message = f"parameter {name!r}: a value of type {type(value).__name__} is no literal of SQL; give text, a number, a time, a list or a dict"
    raise ArgumentError(message)


def _moment(value: datetime, _: str) -> str:
    shown = value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f").rjust(26, "0")
    return f"TIMESTAMP '{shown}+00:00'"


def _map(value: Mapping[Any, Any], name: str) -> str:
    return f"map({', '.join(literal(each, name) for pair in value.items() for each in pair)})"


def _list(value: Sequence[Any], name: str) -> str:
    return f"array({', '.join(literal(each, name) for each in value)})"


def _text(value: str, name: str) -> str:
    if value.isprintable() and not {"'", "\\", '"'} & set(value):
        return f"'{value}'"
    try:
        return f"CAST(X'{value.encode().hex()}' AS STRING)"
    except UnicodeEncodeError:
        message = f"parameter {name!r}: the text has half of a pair of surrogates"
        raise ArgumentError(message) from None


def _number(value: Any, name: str) -> str:
    if isinstance(value, float):
        if math.isnan(value):
            return "double('NaN')"
        if math.isinf(value):
            return f"double('{'-' if value < 0 else ''}Infinity')"
        text = f"{abs(value)!r}D"
    elif isinstance(value, Decimal):
        text = f"{abs(value):f}BD"
        if not value.is_finite() or sum(each.isdigit() for each in text) > _MOST_DIGITS:
            message = f"parameter {name!r}: a decimal has at most {_MOST_DIGITS} digits"
            raise ArgumentError(message)
    else:
        number = int(value)
        if not -_LONG < number < _LONG:
            message = f"parameter {name!r}: a whole number has 64 bits; give a Decimal"
            raise ArgumentError(message)
        text = str(abs(number)) if -_INT < number < _INT else f"{abs(number)}L"
    return f"(-{text})" if value < 0 else text


def _interval(value: timedelta, _: str) -> str:
    micros = value // timedelta(microseconds=1)
    sign = "-" if micros < 0 else ""
    seconds, rest = divmod(abs(micros), 1_000_000)
    return f"INTERVAL '{sign}{seconds}.{rest:06d}' SECOND"


_WRITERS: Final[tuple[tuple[tuple[type, ...], Callable[[Any, str], str]], ...]] = (
    ((bool,), lambda value, _: "TRUE" if value else "FALSE"),
    ((str,), _text),
    ((bytes, bytearray, memoryview), lambda value, _: f"X'{bytes(value).hex()}'"),
    ((datetime,), _moment),
    ((date,), lambda value, _: f"DATE '{value.isoformat()}'"),
    ((timedelta,), _interval),
    ((UUID,), lambda value, _: f"'{value}'"),
    ((Mapping,), _map),
    ((list, tuple), _list),
    ((int, float, Decimal), _number),
)
"""The first one whose types a value has writes it: a bool is an int, a datetime is a date."""


def markers(statement: Statement) -> list[tuple[str | None, Splice]]:
    """Return the places of parameters: ``:name`` with its name, ``?`` with None."""
    found: list[tuple[str | None, Splice]] = []
    words = statement.words
    for number, word in enumerate(words):
        if word.upper == "?":
            found.append((None, Splice(word.start, word.end, "")))
        elif word.upper == ":" and number + 1 < len(words):
            name = words[number + 1]
            before = words[number - 1] if number else None
            if name.is_name and name.start == word.end and not _joins(before, word):
                found.append((name.text, Splice(word.start, name.end, "")))
    return found


def _joins(before: Word | None, colon: Word) -> bool:
    """Return whether a colon belongs to what stands before it: the name of a struct's field, a path in JSON."""
    if before is None or before.end != colon.start:
        return False
    return before.is_name or before.is_text or before.upper in {")", "]", ":"}


def bound(statement: Statement, args: Mapping[str, Any] | Sequence[Any] | None) -> Statement:
    """Return a statement with literals in the places of its parameters.

    Raises ArgumentError for a parameter without a value, and for a value that no parameter takes.
    """
    places = markers(statement)
    named = args if isinstance(args, Mapping) else {}
    listed = [] if args is None or isinstance(args, Mapping) else list(args)
    if len([name for name, _ in places if name is None]) != len(listed):
        wanted = sum(name is None for name, _ in places)
        message = (
            f"{statement.title!r} has {wanted} parameters ?, and there are {len(listed)} values"
        )
        raise ArgumentError(message)
    splices: list[Splice] = []
    unused = set(named)
    following = iter(enumerate(listed))
    for name, place in places:
        if name is None:
            number, value = next(following)
            made = literal(value, str(number))
        elif name in named:
            unused.discard(name)
            made = literal(named[name], name)
        else:
            message = f"{statement.title!r}: parameter :{name} has no value"
            raise ArgumentError(message)
        splices.append(Splice(place.start, place.end, f" {made} "))
    if unused:
        message = f"{statement.title!r} has no parameter :{', :'.join(sorted(unused))}"
        raise ArgumentError(message)
    return Statement.of(spliced(statement.text, splices)) if splices else statement
