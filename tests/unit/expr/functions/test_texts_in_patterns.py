"""Texts that strings must have in them where they match a pattern, beside Arrow's own matching."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from pennon.expr.functions.string_search import texts_like, texts_matching


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("alpha.*", ["alpha"]),
        ("^alpha$", ["alpha"]),
        ("word[ax] ?beta", ["word", "beta"]),
        ("ham+eray", ["ham", "eray"]),
        ("(alpha|gamma)ray", ["ray"]),
        ("x(a(b)c)*def", ["x", "def"]),
        ("ab{2,3}cd", ["a", "cd"]),
        (r"a\.b\d+cde", ["a.b", "cde"]),
        (r"(a[)]b)c\)e", ["c)e"]),
        ("alpha|fine", []),
        ("(?i)alpha", []),
        (r"ab\x41cde", []),
        (r"\Qabc\E", []),
        ("[[:alpha:]]abc", []),
        ("[]a]bcd", []),
        ("(abc", []),
        ("abc\\", []),
    ],
)
def test_texts_of_regular_expressions(pattern: str, texts: list[str]) -> None:
    assert texts_matching(pattern) == texts


@given(st.text("ab|()[]{}*+?.^$\\1,-d:P<i", max_size=10), st.lists(st.text("ab1d-)", max_size=8)))
def test_regular_expression_matches_contain_the_required_texts(
    pattern: str, strings: list[str]
) -> None:
    try:
        found = _matches(pattern, strings)
    except pa.ArrowInvalid:
        reject()
    for string in found:
        assert all(text in string for text in texts_matching(pattern)), string


def _matches(pattern: str, strings: list[str]) -> list[Any]:
    values = pa.array(strings, pa.string())
    return values.filter(pc.match_substring_regex(values, pattern)).to_pylist()


@given(st.text("ab%_\\", max_size=8), st.lists(st.text("ab%_\\", max_size=8)))
def test_like_matches_contain_the_required_texts(pattern: str, strings: list[str]) -> None:
    values = pa.array(strings, pa.string())
    for string in values.filter(pc.match_like(values, pattern)).to_pylist():
        assert all(text in string for text in texts_like(pattern)), string


def test_strings_between_wildcards() -> None:
    assert texts_like("ab%cd_e") == ["ab", "cd", "e"]
    assert texts_like(r"%a\%b\_c%") == ["a%b_c"]
    assert texts_like("%_") == []
