"""Parameters become literals of their types, and can be nothing else."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from pennon.errors import ArgumentError
from pennon.spark.statements.values import bound, literal, markers
from pennon.spark.statements.words import Statement, cut_words

VALUES = some.recursive(
    some.none()
    | some.booleans()
    | some.integers(-(2**62), 2**62)
    | some.floats()
    | some.text()
    | some.binary()
    | some.dates()
    | some.datetimes(min_value=datetime(1900, 1, 2)),
    lambda inner: some.lists(inner, max_size=3),
    max_leaves=4,
)
SIGNS = {
    "NULL",
    "TRUE",
    "FALSE",
    "ARRAY",
    "CAST",
    "AS",
    "STRING",
    "DOUBLE",
    "DATE",
    "TIMESTAMP",
    "(",
    ")",
    ",",
    "-",
    "",
}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (5, "5"),
        (-5, "(-5)"),
        (1 << 40, "1099511627776L"),
        (1.5, "1.5D"),
        (-1e300, "(-1e+300D)"),
        (math.inf, "double('Infinity')"),
        (Decimal("1.50"), "1.50BD"),
        ("plain", "'plain'"),
        ("it's", "CAST(X'69742773' AS STRING)"),
        (b"\x00\xff", "X'00ff'"),
        (date(2026, 1, 31), "DATE '2026-01-31'"),
        (datetime(2026, 1, 31, 12, tzinfo=UTC), "TIMESTAMP '2026-01-31 12:00:00.000000+00:00'"),
        (timedelta(seconds=-1.5), "INTERVAL '-1.500000' SECOND"),
        ([1, [2.5]], "array(1, array(2.5D))"),
        ({"a": 1}, "map('a', 1)"),
        (np.float32(0.5), "0.5D"),
        (np.array([1, 2]), "array(1, 2)"),
    ],
)
def test_literals_of_values(value: Any, text: str) -> None:
    assert literal(value) == text


@pytest.mark.parametrize("value", [object(), 1 << 70, Decimal("NaN"), "\ud800"])
def test_values_without_a_literal_are_refused(value: Any) -> None:
    with pytest.raises(ArgumentError, match="parameter 'p'"):
        literal(value, "p")


@given(VALUES)
def test_a_literal_is_never_more_than_a_literal(value: Any) -> None:
    words = cut_words(f"SELECT {literal(value)} AS last")
    assert [word.upper for word in words[-2:]] == ["AS", "LAST"]
    for word in words[1:-2]:
        assert (
            word.is_number
            or word.is_text
            or word.upper in SIGNS
            or word.text.startswith(("0x", "0X"))
            or _is_hex(word.text)
        )


def _is_hex(text: str) -> bool:
    return all(each in "0123456789abcdefABCDEF" for each in text)


def test_parameter_markers_beside_types_casts_and_paths() -> None:
    text = "SELECT :a, b:c, d::int, CAST(e AS STRUCT<f:INT>) FROM t WHERE g = :h AND i > ? AND ':j' = `:k`"
    assert [name for name, _ in markers(Statement.of(text))] == ["a", "h", None]


def test_values_take_the_places_of_markers() -> None:
    statement = Statement.of("SELECT a-:p FROM t WHERE b = ? AND c = ':p'")
    with pytest.raises(ArgumentError, match="1 parameters"):
        bound(statement, {"p": -5})
    named = Statement.of("SELECT a-:p FROM t WHERE c = ':p' AND d = :P")
    assert (
        bound(named, {"p": -5, "P": "x"}).text
        == "SELECT a- (-5)  FROM t WHERE c = ':p' AND d =  'x' "
    )
    assert bound(Statement.of("a = ? OR b = ?"), ["?", 2]).text == "a =  '?'  OR b =  2 "


def test_missing_and_unused_values_are_refused_by_name() -> None:
    with pytest.raises(ArgumentError, match=":q has no value"):
        bound(Statement.of("a = :q"), {})
    with pytest.raises(ArgumentError, match="has no parameter :z"):
        bound(Statement.of("a = :q"), {"q": 1, "z": 2})
