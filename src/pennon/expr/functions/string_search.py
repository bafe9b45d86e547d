"""Searching strings for a text, as LIKE '%text%' and contains() do, or for words, as contains_tokens() does."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from pennon.core.word_characters import words
from pennon.expr.cast import Datum
from pennon.expr.kernels.range_search import find_in_strings

_WILD = frozenset("%_\\")
_CLASSES = frozenset("dDwWsSbB")
"""Letters that stand, behind a backslash, for classes of characters or borders of words."""
_SYNTAX = frozenset("\\[](){}|*+?.^$")
"""Characters of a regular expression that do not stand for themselves."""


def contains(values: Datum, wanted: str | bytes) -> Datum:
    """Tell which strings have a text in them.

    Arrow searches string after string, byte after byte; only for one byte is that quick.
    """
    text = wanted.encode() if isinstance(wanted, str) else wanted
    if not isinstance(values, pa.Array) or len(text) < 2 or not len(values):
        return pc.match_substring(values, wanted)
    kind = _offset_type(values.type)
    if kind is None:
        return pc.match_substring(values, wanted)
    _, offsets, data = values.buffers()
    ends: npt.NDArray[Any] = np.frombuffer(offsets, kind)[
        values.offset : values.offset + len(values) + 1
    ]
    bits = find_in_strings(_bytes(data), ends, _bytes(pa.py_buffer(text)))
    found: Datum = pa.BooleanArray.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])
    if values.null_count == 0:
        return found
    return pc.if_else(values.is_valid(), found, pa.scalar(None, pa.bool_()))


def contains_words(values: Datum, wanted: str) -> Datum:
    """Tell which texts have all words of another text among their own, in any order; of no words all have all.

    Only texts that contain each word somewhere are taken apart.
    """
    parts = set(words().findall(wanted))
    if not isinstance(values, pa.Array):
        return pa.scalar(has_words(values.as_py(), wanted) if values.is_valid else None, pa.bool_())
    found: Datum = pc.equal(values, values)  # NULL of NULL
    if not parts:
        return found
    for part in parts:
        found = pc.and_(found, contains(values, part))
    places = pc.indices_nonzero(found)
    texts = values.take(places).to_pylist()
    others = [
        place
        for place, text in zip(places.to_pylist(), texts, strict=True)
        if not parts.issubset(words().findall(text))
    ]
    if not others:
        return found
    is_other = np.zeros(len(values), np.bool_)
    is_other[others] = True
    return pc.and_(found, pa.array(~is_other))


def has_words(text: str, wanted: str) -> bool:
    """Tell whether a text has all words of another."""
    return set(words().findall(wanted)).issubset(words().findall(text))


def contained(pattern: str | bytes) -> str | bytes | None:
    """Return the text that strings have in them where they are LIKE a pattern, if that is all."""
    text = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
    is_search = len(text) > 2 and text[0] == text[-1] == "%"
    return pattern[1:-1] if is_search and not _WILD & set(text[1:-1]) else None


def is_itself(pattern: object) -> bool:
    """Return whether only one text is LIKE a pattern, the pattern itself."""
    return isinstance(pattern, str) and not _WILD & set(pattern)


def texts_like(pattern: str) -> list[str]:
    """Return the texts that strings have in them where they are LIKE a pattern: what lies between wildcards."""
    found, run, is_escaped = [], "", False
    for each in pattern:
        if is_escaped:
            if each not in _WILD:  # what a backslash means there is not agreed on
                found.append(run)
                run = ""
            run, is_escaped = run + each, False
        elif each == "\\":
            is_escaped = True
        elif each in _WILD:
            found.append(run)
            run = ""
        else:
            run += each
    return [text for text in [*found, run] if text]


def texts_matching(pattern: str) -> list[str]:
    """Return texts that strings have in them where they match a regular expression.

    They are the runs of characters outside of groups that stand for themselves.  Nothing is known of expressions
    with flags, of alternatives outside of groups, and of what is written in another way than most are.
    """
    found: list[str] = []
    run, at = "", 0
    while at < len(pattern):
        each, end = pattern[at], _end_of_piece(pattern, at)
        if end is None or each in "|)":
            return []
        piece, at = pattern[at:end], end
        if each in "*?{":  # the character before may be missing
            run = run[:-1]
        if each not in _SYNTAX:
            run += each
        elif each == "\\" and not piece[1].isalnum():
            run += piece[1]
        else:
            found.append(run)
            run = ""
    return [text for text in [*found, run] if text]


def _end_of_piece(pattern: str, at: int) -> int | None:
    """Return where a piece of a regular expression ends: a character, class, group or count; None if not known."""
    each = pattern[at]
    if each == "\\":
        escaped = pattern[at + 1 : at + 2]
        is_known = escaped in _CLASSES or (escaped.isascii() and not escaped.isalnum())
        return at + 2 if escaped and is_known else None
    if each == "[":
        end = pattern.find("]", at)
        inside = pattern[at + 1 : max(end, at)]
        return None if inside in {"", "^"} or set("[\\") & set(inside) else end + 1
    if each == "{":
        end = pattern.find("}", at)
        inside = pattern[at + 1 : max(end, at)]
        return end + 1 if inside and set(inside) <= set("0123456789,") else None
    return _end_of_group(pattern, at) if each == "(" else at + 1


def _end_of_group(pattern: str, at: int) -> int | None:
    if pattern.startswith("(?", at) and pattern[at + 2 : at + 3] not in {":", "P", "<"}:
        return None
    at += 1
    while at < len(pattern) and pattern[at] != ")":
        end = _end_of_piece(pattern, at)
        if end is None:
            return None
        at = end
    return at + 1 if at < len(pattern) else None


def _offset_type(kind: pa.DataType) -> type[np.int32 | np.int64] | None:
    if t.is_string(kind) or t.is_binary(kind):
        return np.int32
    return np.int64 if t.is_large_string(kind) or t.is_large_binary(kind) else None


def _bytes(buffer: Any) -> npt.NDArray[np.uint8]:
    return np.frombuffer(b"" if buffer is None else buffer, np.uint8)
