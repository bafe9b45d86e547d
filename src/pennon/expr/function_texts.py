"""Functions of strings.  Positions count from 1, in characters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from pennon.expr.cast import Datum

Run = Callable[..., Datum]
Entry = tuple[Run, int, int | None]


def _literal(value: Datum, what: str) -> object:
    """Return the value of a literal argument.  Raises ArrowInvalid for a column."""
    if isinstance(value, pa.Array):
        message = f"{what} must be a literal"
        raise pa.ArrowInvalid(message)
    return value.as_py()


def _with_pattern(run: Callable[..., Datum], what: str = "a pattern") -> Run:
    """Return a test of strings against a literal; a NULL literal gives NULL."""

    def test(values: Datum, pattern: Datum) -> Datum:
        text = _literal(pattern, what)
        if text is None:
            return pc.if_else(pc.is_null(values), *[pa.scalar(None, pa.bool_())] * 2)
        if t.is_binary(values.type) or t.is_large_binary(values.type):
            text = text if isinstance(text, bytes) else str(text).encode()
        return run(values, text)

    return test


def _regexp_like(values: Datum, pattern: Datum, flags: Datum | None = None) -> Datum:
    ignores_case = flags is not None and "i" in str(_literal(flags, "flags"))
    text = _literal(pattern, "a pattern")
    return pc.match_substring_regex(values, text, ignore_case=ignores_case)


def _regexp_replace(values: Datum, pattern: Datum, by: Datum, flags: Datum | None = None) -> Datum:
    every = flags is not None and "g" in str(_literal(flags, "flags"))
    return pc.replace_substring_regex(
        values,
        _literal(pattern, "a pattern"),
        str(_literal(by, "a replacement")).replace("$", "\\"),
        max_replacements=None if every else 1,
    )


def _length(values: Datum) -> Datum:
    is_text = t.is_string(values.type) or t.is_large_string(values.type)
    found = pc.utf8_length(values) if is_text else pc.binary_length(values)
    return pc.cast(found, pa.int32())


def _concat(*values: Datum) -> Datum:
    """Join strings; NULL is like the empty string."""
    parts = [pc.cast(each, pa.string()) for each in values]
    empty = pa.scalar("", pa.string())
    return pc.binary_join_element_wise(*parts, empty, null_handling="replace", null_replacement="")


def join(*values: Datum) -> Datum:
    """Join strings, as the operator ``||`` does: NULL makes all NULL."""
    parts = [pc.cast(each, pa.string()) for each in values]
    return pc.binary_join_element_wise(*parts, pa.scalar("", pa.string()))


def _concat_ws(separator: Datum, *values: Datum) -> Datum:
    """Join the strings that are not NULL."""
    if len(values) == 1:  # of which pyarrow 26 loses rows
        return pc.coalesce(values[0], pa.scalar("", values[0].type))
    parts = [pc.cast(each, pa.string()) for each in values]
    return pc.binary_join_element_wise(*parts, separator, null_handling="skip")


def _substring(values: Datum, start: Datum, length: Datum | None = None) -> Datum:
    first = int(str(_literal(start, "a position"))) - 1
    stop = None if length is None else max(first + int(str(_literal(length, "a length"))), 0)
    return pc.utf8_slice_codeunits(values, max(first, 0), stop)


def _left(values: Datum, count: Datum) -> Datum:
    return pc.utf8_slice_codeunits(values, 0, int(str(_literal(count, "a length"))))


def _right(values: Datum, count: Datum) -> Datum:
    number = int(str(_literal(count, "a length")))
    return pc.utf8_slice_codeunits(values, -number if number else 2**31)


def _position(values: Datum, part: Datum) -> Datum:
    """Return where a part begins, counted from 1; 0 where it does not occur."""
    text = str(_literal(part, "a part"))
    before = pc.find_substring(values, text)
    head = pc.replace_substring_regex(values, "(?s)" + _quoted(text) + ".*", "")
    found = pc.add(pc.utf8_length(head), 1)
    return pc.cast(pc.if_else(pc.less(before, 0), 0, found), pa.int32())


def _quoted(text: str) -> str:
    return "".join(c if c.isalnum() else f"\\x{{{ord(c):x}}}" for c in text)


def _replace(values: Datum, part: Datum, by: Datum) -> Datum:
    return pc.replace_substring(
        values, str(_literal(part, "a part")), str(_literal(by, "a replacement"))
    )


def _repeat(values: Datum, count: Datum) -> Datum:
    return pc.binary_repeat(values, count)


def _pad(run: Callable[..., Datum], trim: Callable[..., Datum]) -> Run:
    def pad(values: Datum, width: Datum, filling: Datum | None = None) -> Datum:
        count = int(str(_literal(width, "a width")))
        mark = " " if filling is None else str(_literal(filling, "a filling"))
        if len(mark) != 1:
            message = "strings are filled with one character"
            raise pa.ArrowInvalid(message)
        return trim(run(values, count, mark), 0, count)

    return pad


def _trimmed(run: Callable[..., Datum]) -> Run:
    """Return a function that cuts characters off the ends, spaces if none are named."""

    def trim(values: Datum, characters: Datum | None = None) -> Datum:
        marks = " " if characters is None else str(_literal(characters, "characters"))
        return run(values, marks)

    return trim


def _length_of_bytes(values: Datum, factor: int = 1) -> Datum:
    return pc.multiply(pc.cast(pc.binary_length(values), pa.int32()), pa.scalar(factor, pa.int32()))


_STRIP = _trimmed(pc.utf8_trim)
_LENGTH: Entry = (_length, 1, 1)
_SUBSTRING: Entry = (_substring, 2, 3)
_REGEXP: Entry = (_regexp_like, 2, 3)
_POSITION: Entry = (_position, 2, 2)

TEXTS: Final[Mapping[str, Entry]] = {
    "like": (_with_pattern(pc.match_like), 2, 2),
    "ilike": (_with_pattern(lambda v, p: pc.match_like(v, p, ignore_case=True)), 2, 2),
    "regexp_match": _REGEXP,
    "regexp_like": _REGEXP,
    "regexp_replace": (_regexp_replace, 3, 4),
    "starts_with": (_with_pattern(pc.starts_with), 2, 2),
    "ends_with": (_with_pattern(pc.ends_with), 2, 2),
    "contains": (_with_pattern(pc.match_substring), 2, 2),
    "lower": (pc.utf8_lower, 1, 1),
    "upper": (pc.utf8_upper, 1, 1),
    "initcap": (pc.utf8_title, 1, 1),
    "reverse": (pc.utf8_reverse, 1, 1),
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
    "left": (_left, 2, 2),
    "right": (_right, 2, 2),
    "strpos": _POSITION,
    "instr": _POSITION,
    "replace": (_replace, 3, 3),
    "repeat": (_repeat, 2, 2),
    "lpad": (_pad(pc.utf8_lpad, pc.utf8_slice_codeunits), 2, 3),
    "rpad": (_pad(pc.utf8_rpad, pc.utf8_slice_codeunits), 2, 3),
    "trim": (_STRIP, 1, 2),
    "btrim": (_STRIP, 1, 2),
    "ltrim": (_trimmed(pc.utf8_ltrim), 1, 2),
    "rtrim": (_trimmed(pc.utf8_rtrim), 1, 2),
}
