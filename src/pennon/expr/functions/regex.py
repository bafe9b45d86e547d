"""Functions of regular expressions, which are those of RE2: their time is linear."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pennon.expr.cast import Datum
from pennon.expr.rowwise import Entry, by_row, check_types, is_null, nulls_like
from pennon.expr.types import is_text

_FLAGS: Final = frozenset("ims")


def _pattern(pattern: Datum, flags: Datum | None, also: str = "") -> str:
    """Return a literal pattern with its flags inside."""
    if isinstance(pattern, pa.Array) or isinstance(flags, pa.Array):
        message = "a pattern and its flags must be literals"
        raise pa.ArrowInvalid(message)
    given = set("" if flags is None or not flags.is_valid else flags.as_py())
    if not given <= _FLAGS | set(also):
        message = f"there are the flags {', '.join(sorted(_FLAGS | set(also)))}"
        raise pa.ArrowInvalid(message)
    shown = "".join(sorted(given & _FLAGS))
    return f"(?{shown}){pattern.as_py()}" if shown else str(pattern.as_py())


def _like(values: Datum, pattern: Datum, flags: Datum | None = None) -> Datum:
    check_types([values, pattern], [is_text])
    if is_null(pattern) or is_null(values):
        return nulls_like([values], pa.bool_())
    return pc.match_substring_regex(values, _pattern(pattern, flags))


def _match(values: Datum, pattern: Datum, flags: Datum | None = None) -> Datum:
    """Return the groups of the first match, or the match if there are no groups; else NULL."""
    check_types([values, pattern], [is_text])
    kind = pa.list_(values.type)
    if is_null(pattern) or is_null(values):
        return nulls_like([values], kind)
    text = _with_named_groups(_pattern(pattern, flags))
    found = pc.extract_regex(values, pattern=text)
    if isinstance(found, pa.Scalar):
        return pa.scalar(_groups(list(found.as_py().values())) if found.is_valid else None, kind)
    columns = [part.to_pylist() for part in found.flatten()]
    matched = found.is_valid().to_pylist()
    rows = zip(matched, zip(*columns, strict=True), strict=True)
    return pa.array([_groups(row) if is_match else None for is_match, row in rows], kind)


def _groups(row: Sequence[str]) -> list[str]:
    """Return the groups of a match; Arrow does not say which took part, if one is empty."""
    if "" in row:
        message = "which groups are in a match cannot be told where some are empty"
        raise pa.ArrowInvalid(message)
    return list(row)


def _with_named_groups(pattern: str) -> str:
    """Name the groups of a pattern, as Arrow wants it; a pattern without any becomes one."""
    names = 0

    def name(found: re.Match[str]) -> str:
        nonlocal names
        piece = found.group()
        if piece not in ("(", "(?<"):
            names += piece == "(?P<"
            return piece
        names += 1
        return f"(?P<g{names}>" if piece == "(" else "(?P<"

    # Escapes, quoted stretches and sets of characters have parentheses that open no group.
    parts = r"\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]?|\(\?P<|\(\?<|\(\?|\("
    named = re.sub(parts, name, pattern, flags=re.DOTALL)
    return named if names else f"(?P<g1>{pattern})"


def _replace(values: Datum, pattern: Datum, by: Datum, flags: Datum | None = None) -> Datum:
    """Replace the first match, or with the flag ``g`` all."""
    check_types([values, pattern, by], [is_text])
    if any(map(is_null, (values, pattern, by))):
        return nulls_like([values], values.type)
    every = flags is not None and flags.is_valid and "g" in str(flags.as_py())
    if isinstance(by, pa.Array):
        message = "a replacement must be a literal"
        raise pa.ArrowInvalid(message)
    return pc.replace_substring_regex(
        values,
        pattern=_pattern(pattern, flags, "g"),
        replacement=_replacement(by.as_py()),
        max_replacements=None if every else 1,
    )


def _replacement(text: str) -> str:
    r"""Return a replacement in RE2's terms: groups are ``\1``, not ``$1`` or ``${1}``."""
    found = re.sub(r"\$\{(\d)\}|\$(\d)|\\(?!\d)", _group, text)
    if re.search(r"\$\{?\w", found) or re.search(r"\$\d\w", text):
        message = f"in the replacement {text!r}, groups are numbers of one digit"
        raise pa.ArrowInvalid(message)
    return found


def _group(found: re.Match[str]) -> str:
    number = found.group(1) or found.group(2)
    return f"\\{number}" if number else "\\\\"


def _count(
    values: Datum, pattern: Datum, start: Datum | None = None, flags: Datum | None = None
) -> Datum:
    """Count matches from a character on; there are none in NULL."""
    check_types([values, pattern], [is_text])
    if is_null(pattern):
        return pc.if_else(pc.is_valid(values), pa.scalar(0), pa.scalar(0))
    rest = values if start is None else pc.utf8_slice_codeunits(values, _start(start))
    text = _pattern(pattern, flags)
    counts = pc.cast(pc.count_substring_regex(rest, pattern=text), pa.int64())
    if _matches_nothing(text):
        inside = pc.subtract(pc.binary_length(rest), pc.utf8_length(rest))
        counts = pc.subtract(counts, pc.cast(inside, pa.int64()))
    return pc.coalesce(counts, pa.scalar(0, pa.int64()))


def _matches_nothing(pattern: str) -> bool:
    """Tell whether Arrow finds a pattern that may be empty between the bytes of a character, too."""
    one, two = (pc.count_substring_regex(text, pattern=pattern).as_py() for text in ("☃", "☃☃"))
    return bool(two - one == len("☃".encode()))


def _place(values: Datum, pattern: Datum, start: Datum | None = None) -> Datum:
    """Return where the first match begins, in characters from 1; 0 if there is none."""
    check_types([values, pattern], [is_text])
    if is_null(pattern) or is_null(values):
        return nulls_like([values], pa.int64())
    first = 0 if start is None else _start(start)
    rest = pc.utf8_slice_codeunits(values, first)
    at = pc.cast(pc.find_substring_regex(rest, _pattern(pattern, None)), pa.int64())
    return by_row(lambda text, offset: _characters(text, offset, first), pa.int64())(rest, at)


def _characters(text: str, offset: int, before: int) -> int:
    """Return the number of the character, from 1, at an offset in UTF-8; 0 for none."""
    return len(text.encode()[:offset].decode()) + before + 1 if offset >= 0 else 0


def _start(value: Datum) -> int:
    number = value.as_py() if isinstance(value, pa.Scalar) else None
    if not isinstance(number, int) or not 1 <= number < 1 << 31:
        message = "the start must be a number from 1"
        raise pa.ArrowInvalid(message)
    return number - 1


REGEXPS: Final[Mapping[str, Entry]] = {
    "regexp_like": (_like, 2, 3),
    "regexp_match": (_match, 2, 3),
    "regexp_replace": (_replace, 3, 4),
    "regexp_count": (_count, 2, 4),
    "regexp_instr": (_place, 2, 3),
}
