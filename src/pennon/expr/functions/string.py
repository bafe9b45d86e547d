"""Functions of strings.  Positions count from 1, in characters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from pennon.expr.cast import Datum, cast
from pennon.expr.functions.string_search import contained, contains, contains_words, has_words
from pennon.expr.rowwise import (
    MOST_BYTES,
    Entry,
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
from pennon.expr.types import is_bytes, is_text

_FARTHEST: Final = 2**31


# --- tests ----------------------------------------------------------------------------------------


def _is_text_or_bytes(kind: pa.DataType) -> bool:
    return is_text(kind) or is_bytes(kind)


def _test(
    fast: Callable[..., Datum],
    slow: Callable[..., bool],
    takes: Callable[[pa.DataType], bool] = _is_text_or_bytes,
) -> Entry:
    """Return a test of strings against a text."""

    def run(values: Datum, text: Datum) -> Datum:
        wanted = text.as_py()
        if is_bytes(values.type) and isinstance(wanted, str):
            wanted = wanted.encode()
        return fast(values, wanted)

    compute = or_by_row(run, by_row(slow, pa.bool_(), is_text))

    def check(values: Datum, text: Datum) -> Datum:
        if t.is_null(values.type):
            return nulls_like([values, text], pa.bool_())
        check_types([values, text], [takes])
        return compute(values, text)

    return check, 2, 2


def _like(*, ignores_case: bool) -> Entry:
    def match(values: Datum, pattern: str | bytes) -> Datum:
        pattern = _closed(pattern) if isinstance(pattern, str) else pattern
        if ignores_case and isinstance(pattern, str) and pattern.isascii() and _is_ascii(values):
            values, pattern = pc.ascii_lower(values), pattern.lower()
        elif ignores_case:
            return pc.match_like(values, pattern, ignore_case=True)
        inside = contained(pattern)
        return pc.match_like(values, pattern) if inside is None else contains(values, inside)

    return _test(match, lambda text, pattern: bool(match(pa.scalar(text), pattern).as_py()))


def _closed(pattern: str) -> str:
    """Return a pattern whose last backslash stands for itself, if nothing follows that it escapes."""
    escapes = len(pattern) - len(pattern.rstrip("\\"))
    return pattern + "\\" * (escapes % 2)


# --- joining --------------------------------------------------------------------------------------


def _concat(*values: Datum) -> Datum:
    """Join strings; NULL is like the empty string."""
    kind, parts = _as_texts(values)
    empty = pa.scalar("", kind)
    return pc.binary_join_element_wise(*parts, empty, null_handling="replace", null_replacement="")


def join(*values: Datum) -> Datum:
    """Join strings, as the operator ``||`` does: NULL makes all NULL."""
    kind, parts = _as_texts(values)
    return pc.binary_join_element_wise(*parts, pa.scalar("", kind))


def _as_texts(values: tuple[Datum, ...]) -> tuple[pa.DataType, list[Datum]]:
    kinds = [each.type for each in values]
    if any(t.is_nested(kind) or is_bytes(kind) or t.is_duration(kind) for kind in kinds):
        message = "lists, structs, bytes and spans of time are no texts"
        raise pa.ArrowInvalid(message)
    large = any(t.is_large_string(each.type) for each in values)
    kind = pa.large_string() if large else pa.string()
    return kind, [cast(each, kind) for each in values]


def _concat_ws(separator: Datum, *values: Datum) -> Datum:
    """Join the strings that are not NULL; Arrow's own function loses rows where some are."""
    if is_null(separator):
        return nulls_like([separator, *values], pa.string())
    kind, texts = _as_texts(values)
    arguments = [cast(separator, pa.string()), *texts]

    def joined(mark: str | None, *parts: str | None) -> str | None:
        return None if mark is None else mark.join(part for part in parts if part is not None)

    if count_of(arguments) is None:
        return pa.scalar(joined(*(each.as_py() for each in arguments)), kind)
    return pa.array([joined(*row) for row in rows_of(arguments)], kind)


# --- pieces ---------------------------------------------------------------------------------------


def _substring(values: Datum, start: Datum, length: Datum | None = None) -> Datum:
    first = _whole(start) - 1
    stop = None if length is None else max(first + _whole(length), 0)
    return pc.utf8_slice_codeunits(values, max(first, 0), stop)


def _whole(value: Datum) -> int:
    found = value.as_py() if isinstance(value, pa.Scalar) else None
    if not isinstance(found, int):
        message = "positions and lengths are literal whole numbers"
        raise pa.ArrowInvalid(message)
    return max(min(found, _FARTHEST), -_FARTHEST)


def _replaced(values: Datum, part: Datum, by: Datum) -> Datum:
    """Replace a literal part everywhere."""
    text, new = part.as_py(), by.as_py()
    if not text:  # with which Arrow never ends
        return _replace_slowly(values, part, by)
    counts = pc.count_substring(values, text)
    total = pc.sum(counts).as_py() if isinstance(counts, pa.Array) else counts.as_py()
    check_bytes((total or 0) * len(new))
    return pc.replace_substring(values, text, new)


def _replace_slowly(values: Datum, part: Datum, by: Datum) -> Datum:
    most = MOST_BYTES // max(count_of([values, part, by]) or 1, 1)

    def replace(text: str, old: str, new: str) -> str:
        if text.count(old) * len(new) > most:
            check_bytes(MOST_BYTES + 1)
        return text.replace(old, new)

    return by_row(replace, first_type, is_text)(values, part, by)


def _trimmed(run: Callable[..., Datum], slow: Callable[..., str]) -> Entry:
    """Return a function that cuts characters off the ends, spaces if none are named."""

    def trim(values: Datum, characters: Datum | None = None) -> Datum:
        check_types([values], [is_text])
        return run(values, " " if characters is None else characters.as_py())

    return or_by_row(trim, by_row(slow, first_type, is_text)), 1, 2


# --- sizes and places -----------------------------------------------------------------------------


def _length(values: Datum) -> Datum:
    check_types([values], [_is_text_or_bytes])
    is_wide = is_text(values.type) and not _is_ascii(values)
    found = pc.utf8_length(values) if is_wide else pc.binary_length(values)
    return pc.cast(found, size_type(values.type))


def _length_of_bytes(values: Datum, factor: int = 1) -> Datum:
    check_types([values], [_is_text_or_bytes])
    kind = size_type(values.type)
    return pc.multiply(pc.cast(pc.binary_length(values), kind), pa.scalar(factor, kind))


def _place(text: str, part: str) -> int:
    """Return where a part begins, counted from 1; 0 where it does not occur."""
    return text.find(part) + 1


def _is_ascii(values: Datum) -> bool:
    """Tell whether strings have no other characters: a look at their bytes is soon done."""
    if not isinstance(values, (pa.StringArray, pa.LargeStringArray)) or not len(values):
        return False
    _, offsets, data = values.buffers()
    if data is None:
        return True
    width = np.dtype(np.int64 if t.is_large_string(values.type) else np.int32)
    ends = np.frombuffer(offsets, width, len(values) + 1, values.offset * width.itemsize)
    return bool(np.frombuffer(data, np.int8)[ends[0] : ends[-1]].min(initial=0) >= 0)


def _reversed(values: Datum) -> Datum:
    check_types([values], [is_text])
    return pc.ascii_reverse(values) if _is_ascii(values) else pc.utf8_reverse(values)


def _cased(run: Callable[[Datum], Datum], slow: Callable[[str], str]) -> Entry:
    """Return a function of letters: Arrow's knows one letter for each, which suffices for ASCII."""
    by_python = by_row(slow, first_type, is_text)

    def compute(values: Datum) -> Datum:
        if not isinstance(values, (pa.StringArray, pa.LargeStringArray)):
            return by_python(values)
        if _is_ascii(values):
            return run(values)
        is_odd = pc.invert(pc.fill_null(pc.string_is_ascii(values), True))  # noqa: FBT003
        return pc.replace_with_mask(run(values), is_odd, by_python(values.filter(is_odd)))

    return compute, 1, 1


def _capitals(text: str) -> str:
    """Begin each word, of letters and digits, with a capital."""
    found, starts_word = [], True
    for letter in text:
        found.append(letter.upper() if starts_word else letter.lower())
        starts_word = not letter.isalnum()
    return "".join(found)


_LENGTH: Entry = (_length, 1, 1)
_SUBSTRING: Entry = (_substring, 2, 3)
_PLACE: Entry = (by_row(_place, size_type, is_text), 2, 2)
_TRIM: Entry = _trimmed(pc.utf8_trim, str.strip)

TEXTS: Final[Mapping[str, Entry]] = {
    "like": _like(ignores_case=False),
    "ilike": _like(ignores_case=True),
    "starts_with": _test(pc.starts_with, str.startswith),
    "ends_with": _test(pc.ends_with, str.endswith),
    "contains": _test(contains, str.__contains__),
    "contains_tokens": _test(contains_words, has_words, is_text),
    "lower": _cased(pc.ascii_lower, str.lower),
    "upper": _cased(pc.ascii_upper, str.upper),
    "initcap": (by_row(_capitals, first_type, is_text), 1, 1),
    "reverse": (_reversed, 1, 1),
    "length": _LENGTH,
    "char_length": _LENGTH,
    "character_length": _LENGTH,
    "octet_length": (_length_of_bytes, 1, 1),
    "bit_length": (lambda values: _length_of_bytes(values, 8), 1, 1),
    "concat": (_concat, 1, None),
    "concat_ws": (_concat_ws, 2, None),
    "||": (join, 2, None),
    "substr": _SUBSTRING,
    "substring": _SUBSTRING,
    "strpos": _PLACE,
    "instr": _PLACE,
    "position": _PLACE,
    "replace": (or_by_row(_replaced, _replace_slowly), 3, 3),
    "trim": _TRIM,
    "btrim": _TRIM,
    "ltrim": _trimmed(pc.utf8_ltrim, str.lstrip),
    "rtrim": _trimmed(pc.utf8_rtrim, str.rstrip),
}
