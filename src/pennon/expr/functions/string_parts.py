"""Functions that take strings apart, and those that fill them up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from pennon.expr.cast import Datum
from pennon.expr.rowwise import (
    Entry,
    Run,
    by_row,
    check_bytes,
    check_types,
    count_of,
    first_type,
    is_null,
    nulls_like,
    or_by_row,
    rows_of,
    size_type,
)
from pennon.expr.types import is_text

_TEXT_AND_NUMBER = (is_text, t.is_integer)


# --- parts ----------------------------------------------------------------------------------------


def _split_part(text: str, mark: str, number: int) -> str:
    """Return a part of a text, counted from 1, or from the end with a negative number."""
    if not number:
        message = "the parts of a text count from 1"
        raise pa.ArrowInvalid(message)
    parts = text.split(mark) if mark else [text]
    at = number - 1 if number > 0 else number + len(parts)
    return parts[at] if 0 <= at < len(parts) else ""


def _until_mark(text: str, mark: str, count: int) -> str:
    """Return what is before the n-th mark, or behind the n-th from the end."""
    if not mark or not count:
        return ""
    parts = text.split(mark)
    return mark.join(parts[:count] if count > 0 else parts[count:])


def _translate(text: str, characters: str, by: str) -> str:
    """Replace each character by the one at its place, or by nothing."""
    table: dict[int, str | None] = {}
    for at, character in enumerate(characters):
        table.setdefault(ord(character), by[at] if at < len(by) else None)
    return text.translate(table)


def _distance(left: str, right: str) -> int:
    """Return how many characters must be changed, put in or left out."""
    if len(left) * len(right) > 1 << 20:
        message = "levenshtein compares shorter texts"
        raise pa.ArrowInvalid(message)
    row = list(range(len(right) + 1))
    for number, character in enumerate(left, 1):
        before, row[0] = row[0], number
        for at, other in enumerate(right, 1):
            cost = min(before + (character != other), row[at] + 1, row[at - 1] + 1)
            before, row[at] = row[at], cost
    return row[-1]


def _place_in_set(text: str, choices: str) -> int:
    """Return the place of a text among others that commas divide, from 1; 0 if it is not there."""
    among = choices.split(",") if choices else []
    return among.index(text) + 1 if text in among else 0


def _parts(text: Datum, mark: Datum, nothing: Datum | None = None) -> Datum:
    """Return the parts of each text, NULL for those that are ``nothing``."""
    check_types([text, mark], [is_text])
    kind = pa.list_(first_type(text.type))
    if is_null(text):
        return nulls_like([text, mark], kind)
    arguments = [text, mark, pa.scalar(None) if nothing is None else nothing]

    def split(whole: str | None, by: str | None, hidden: str | None) -> list[str | None] | None:
        if whole is None:
            return None
        parts = list(whole) if by is None else whole.split(by) if by else [whole]
        return [None if each == hidden else each for each in parts] if whole else []

    if count_of(arguments) is None:
        return pa.scalar(split(*(each.as_py() for each in arguments)), kind)
    return pa.array([split(*row) for row in rows_of(arguments)], kind)


# --- filling --------------------------------------------------------------------------------------


def _repeated(text: Datum, count: Datum) -> Datum:
    """Repeat strings; as often as NULL is NULL, and less than once is nothing."""
    if is_null(text) or is_null(count):
        return nulls_like([text, count], first_type(text.type))
    times = pc.max_element_wise(count, pa.scalar(0, count.type), skip_nulls=False)
    times = pc.cast(times, pa.int64())
    lengths = pc.cast(pc.binary_length(text), pa.float64())
    total = pc.multiply(lengths, pc.cast(times, pa.float64()))
    check_bytes(int((pc.sum(total) if isinstance(total, pa.Array) else total).as_py() or 0))
    found = pc.binary_repeat(text, times)
    return pc.if_else(pc.is_valid(times), found, pa.scalar(None, found.type))


def _padded(*, left: bool) -> Run:
    """Return a function that brings strings to a length; longer ones are cut."""

    def fill(text: str, width: int, marks: str = " ") -> str:
        missing = width - len(text)
        if missing <= 0 or not marks:
            return text[: max(width, 0)]
        filling = (marks * (missing // len(marks) + 1))[:missing]
        return filling + text if left else text + filling

    slow = by_row(fill, first_type, is_text, t.is_integer, is_text)

    def compute(text: Datum, width: Datum, *marks: Datum) -> Datum:
        rows = count_of([text, width, *marks]) or 1
        check_types([text, width, *marks], [is_text, t.is_integer, is_text])
        widest = (pc.max(width) if isinstance(width, pa.Array) else width).as_py() or 0
        check_bytes(rows * max(widest, 0))
        return slow(text, width, *marks)

    return compute


def _left(text: Datum, count: Datum) -> Datum:
    return pc.utf8_slice_codeunits(text, 0, _number(count))


def _right(text: Datum, count: Datum) -> Datum:
    number = _number(count)
    return pc.utf8_slice_codeunits(text, -number if number else _END)


def _number(value: Datum) -> int:
    found = value.as_py()
    if not isinstance(found, int):
        message = "the count must be a whole number"
        raise pa.ArrowInvalid(message)
    return max(min(found, _END), -_END)


_END: Final = 2**31
_SPLIT: Entry = (by_row(_split_part, first_type, is_text, is_text, t.is_integer), 3, 3)
_UNTIL: Entry = (by_row(_until_mark, first_type, is_text, is_text, t.is_integer), 3, 3)
_PARTS: Entry = (_parts, 2, 3)
_LEFT = by_row(lambda text, count: text[:count], first_type, *_TEXT_AND_NUMBER)
_RIGHT = by_row(lambda text, count: text[-count:] if count else "", first_type, *_TEXT_AND_NUMBER)

PARTS: Final[Mapping[str, Entry]] = {
    "split_part": _SPLIT,
    "substr_index": _UNTIL,
    "substring_index": _UNTIL,
    "translate": (by_row(_translate, first_type, is_text), 3, 3),
    "levenshtein": (by_row(_distance, size_type, is_text), 2, 2),
    "find_in_set": (by_row(_place_in_set, pa.int32(), is_text), 2, 2),
    "string_to_array": _PARTS,
    "string_to_list": _PARTS,
    "repeat": (_repeated, 2, 2),
    "lpad": (_padded(left=True), 2, 3),
    "rpad": (_padded(left=False), 2, 3),
    "left": (or_by_row(_left, _LEFT), 2, 2),
    "right": (or_by_row(_right, _RIGHT), 2, 2),
}
